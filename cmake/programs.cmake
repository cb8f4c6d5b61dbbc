# Builds the program pruner and the micro-benchmarks.
if(EXISTS ${PROJECT_SOURCE_DIR}/src/cli/main.cpp)
  add_executable(pruner src/cli/main.cpp)
  target_link_libraries(pruner PRIVATE pruner_options pruner_cli)
  use_pch(pruner pruner_support)
endif()

file(GLOB micro_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/micro/*.cpp)
if(micro_sources AND benchmark_FOUND)
  add_executable(micro_bench ${micro_sources} ${PROJECT_SOURCE_DIR}/tests/codegen/kernels.cpp
                             ${PROJECT_SOURCE_DIR}/tests/model/checkpoints.cpp)
  target_include_directories(micro_bench PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  list(TRANSFORM PRUNER_LAYERS PREPEND pruner_ OUTPUT_VARIABLE layer_targets)
  target_link_libraries(micro_bench PRIVATE pruner_options ${layer_targets}
                                            benchmark::benchmark_main)
endif()

# The program onnx_cases runs the cases of bench/onnx_suite.py, all in one process.
if(PRUNER_LLVM AND TARGET pruner_deploy)
  add_executable(onnx_cases ${PROJECT_SOURCE_DIR}/bench/onnx_suite/run_cases.cpp)
  target_link_libraries(onnx_cases PRIVATE pruner_options pruner_deploy)
endif()

# Two tests compare modules with ONNX Runtime, and one runs ONNX's cases. All three need a Python
# that has the packages of bench/requirements.txt.
set(PRUNER_PEERS_PYTHON "" CACHE STRING "Python that has the packages of bench/requirements.txt")
if(PRUNER_PEERS_PYTHON AND PRUNER_LLVM AND TARGET pruner)
  # The list has a built-in network of each kind; `bench/accuracy.py networks` takes all networks.
  set(networks bert_tiny clip_vit_b32 convnext_tiny dcgan densenet_121 detr efficientnet_b0 googlenet gpt2 llama_135m
               mobilebert mobilenet_v3 r3d_18 regnet_y_400mf resnet_18 resnext_50 swin_t unet vit_pruner whisper_tiny)
  set(light) # empty: all
  foreach(what networks light)
    add_test(NAME accuracy_${what}
             COMMAND ${PRUNER_PEERS_PYTHON} ${PROJECT_SOURCE_DIR}/bench/accuracy.py ${what} ${${what}}
                     --program $<TARGET_FILE:pruner>)
    set_tests_properties(accuracy_${what} PROPERTIES LABELS slow TIMEOUT 1800)
  endforeach()
  add_test(NAME onnx_suite
           COMMAND ${PRUNER_PEERS_PYTHON} ${PROJECT_SOURCE_DIR}/bench/onnx_suite.py --check --jobs 1
                   --kind node --kind simple --program $<TARGET_FILE:onnx_cases>)
  set_tests_properties(onnx_suite PROPERTIES LABELS slow TIMEOUT 1800)
endif()

# Random models over ranges of shapes run on the fake CUDA driver, too.
if(TARGET deploy_test_codegen AND PRUNER_FAKES)
  add_test(NAME random_ranges_cuda
           COMMAND ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${PRUNER_FAKES} PRUNER_CHAINS=40
                   XDG_CACHE_HOME=${PRUNER_FAKES}/cache "PRUNER_CHAIN_TARGET=cuda --arch=sm_80"
                   $<TARGET_FILE:deploy_test_codegen> --gtest_filter=RandomRanges*)
  set_tests_properties(random_ranges_cuda PROPERTIES LABELS slow TIMEOUT 300)
endif()

# Two tests run the steps of bench/gpu_check.sh, on this machine's OpenCL device and on the fake
# CUDA driver. With the fake driver, operators and networks also have float16 and int8 products on
# tensor cores.
find_program(PRUNER_PYTHON python3)
function(add_gpu_check name target rounds rows)
  add_test(NAME ${name}
           COMMAND ${CMAKE_COMMAND} -E env BUNDLE=$<TARGET_FILE_DIR:pruner> PYTHON=${PRUNER_PYTHON} ${ARGN}
                   ${PROJECT_SOURCE_DIR}/bench/gpu_check.sh ${PROJECT_BINARY_DIR}/${name}_test --target ${target}
                   --rows "${rows}" --operator-trials 4 --network-trials 4 --search-trials 8
                   --rounds ${rounds} --look-s 0.02 --no-tests --no-plugin --strict)
  set_tests_properties(${name} PROPERTIES LABELS slow TIMEOUT 540 SKIP_RETURN_CODE 77)
endfunction()
if(TARGET pruner AND PRUNER_PYTHON)
  add_gpu_check(gpu_check opencl 2 "matmul 32 32 32 f32$<SEMICOLON>resnet_18 image_size=32 f32")
  add_gpu_check(gpu_check_cuda cuda 1
                "matmul 32 32 32 f16$<SEMICOLON>dense 16 16 32 int8$<SEMICOLON>resnet_18 image_size=32 f16$<SEMICOLON>search matmul 32 32 32 f16"
                LD_LIBRARY_PATH=${PRUNER_FAKES} FAKE_CUDA=arch=80)
endif()

# The test fleet_examples starts workers of a fleet in each way of examples/fleet.
if(TARGET pruner)
  add_test(NAME fleet_examples COMMAND ${PROJECT_SOURCE_DIR}/tests/fleet/examples.sh $<TARGET_FILE:pruner>
                                       ${PROJECT_BINARY_DIR})
  set_tests_properties(fleet_examples PROPERTIES LABELS slow TIMEOUT 180 SKIP_RETURN_CODE 77)
endif()
