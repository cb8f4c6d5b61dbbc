# Builds plugins/: libraries that other programs load to use Pruner. The plug-in for ONNX Runtime
# needs no ONNX Runtime to build. The tests of the plug-in need a Python with onnxruntime 1.23 or
# newer (python_tests.cmake).
if(TARGET pruner AND PRUNER_LLVM AND NOT PRUNER_SANITIZE AND NOT PRUNER_STATIC)
  set(PRUNER_ONNXRUNTIME_FOLDER lib/pruner)
  set(PRUNER_ONNXRUNTIME_COMPONENT program)
  add_subdirectory(plugins/onnxruntime)
  # The library lies beside the program.
  set_target_properties(pruner_onnxruntime PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endif()
