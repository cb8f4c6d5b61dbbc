# Adds the tests of the packages in python/. PRUNER_PEERS_PYTHON, a Python with numpy, runs most
# tests. PRUNER_TORCH_PYTHON runs the tests that need torch 2.11 or newer.
set(PRUNER_TORCH_PYTHON "" CACHE STRING "Python that has torch 2.11 or newer, and numpy")
if(NOT PRUNER_LLVM OR NOT TARGET pruner)
  return()
endif()
function(add_python_test name python timeout)
  if(NOT python)
    return()
  endif()
  add_test(NAME ${name} COMMAND ${python} ${PROJECT_SOURCE_DIR}/tests/python/${name}_test.py)
  set_tests_properties(
    ${name} PROPERTIES LABELS slow TIMEOUT ${timeout} SKIP_RETURN_CODE 77
    ENVIRONMENT "PRUNER=$<TARGET_FILE:pruner>;PYTHONDONTWRITEBYTECODE=1;${ARGN}")
endfunction()
# The test report_browser opens the page of a run in headless Chromium. Without Chromium the test is
# skipped.
if(PRUNER_PYTHON)
  add_test(NAME report_browser COMMAND ${PRUNER_PYTHON} ${PROJECT_SOURCE_DIR}/tests/report/browser.py
                                       --program $<TARGET_FILE:pruner>)
  set_tests_properties(report_browser PROPERTIES LABELS codegen TIMEOUT 120 SKIP_RETURN_CODE 77)
endif()
# The test seeds runs the published command lines of examples/seeds.
add_python_test(seeds "${PRUNER_PYTHON}" 300)
add_python_test(package "${PRUNER_PEERS_PYTHON}" 300)
add_python_test(data "${PRUNER_PEERS_PYTHON}" 300)
add_python_test(device "${PRUNER_PEERS_PYTHON}" 300 "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/fakes"
                "XDG_CACHE_HOME=${PROJECT_BINARY_DIR}/fakes/cache")
add_python_test(ort_operators "${PRUNER_PEERS_PYTHON}" 300)
add_python_test(found_values "${PRUNER_PEERS_PYTHON}" 300)
add_python_test(torch "${PRUNER_TORCH_PYTHON}" 900)
add_python_test(torch_dynamic "${PRUNER_TORCH_PYTHON}" 600)
add_python_test(torch_cuda "${PRUNER_TORCH_PYTHON}" 300 "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/fakes"
                "XDG_CACHE_HOME=${PROJECT_BINARY_DIR}/fakes/cache")
add_python_test(torch_operators "${PRUNER_TORCH_PYTHON}" 300)
if(TARGET pruner_onnxruntime)
  add_python_test(onnxruntime "${PRUNER_PEERS_PYTHON}" 300
                  PRUNER_ONNXRUNTIME_LIBRARY=$<TARGET_FILE:pruner_onnxruntime>)
endif()
