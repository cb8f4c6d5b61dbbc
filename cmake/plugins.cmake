# plugins/: what other programs load to use this one. ONNX Runtime's is built everywhere, and tested where
# a Python has onnxruntime 1.23 or newer (python_tests.cmake).
if(TARGET pruner AND PRUNER_LLVM AND NOT PRUNER_SANITIZE AND NOT PRUNER_STATIC)
  set(PRUNER_ONNXRUNTIME_FOLDER lib/pruner)
  set(PRUNER_ONNXRUNTIME_COMPONENT program)
  add_subdirectory(plugins/onnxruntime)
  # Beside the program.
  set_target_properties(pruner_onnxruntime PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endif()
