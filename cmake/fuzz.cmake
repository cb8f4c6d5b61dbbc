# Adds the tests of tests/fuzz/. Every build has a test of random programs.
#
# Builds with the sanitizer fuzzer-no-link (preset asan) also have programs of libFuzzer, for all
# code that reads a user's bytes. The program dag_json_fuzz is built from dag_json_fuzz.cpp. The
# first line of the file names the layer that the program needs: `// layer: lower`.
#
# A test reads the same inputs in each run: libFuzzer chooses inputs by what the inputs before
# covered, and addresses that the system draws at random change that. Where a container may not
# switch that off, the inputs differ a little.
set(fuzz ${PROJECT_SOURCE_DIR}/tests/fuzz)

function(add_fuzz_tests)
  if(NOT GTest_FOUND OR PRUNER_STATIC)
    return()
  endif()
  if(PRUNER_LLVM)
    add_library(pruner_random_programs INTERFACE)
    target_link_libraries(pruner_random_programs INTERFACE pruner_runtime)
    add_test_program(random_programs cuda-fake ${fuzz}/programs_test.cpp
                     ${PROJECT_SOURCE_DIR}/tests/codegen/kernels.cpp)
  endif()
  if(NOT PRUNER_SANITIZE MATCHES "fuzzer-no-link")
    return()
  endif()
  add_library(pruner_fuzz STATIC ${fuzz}/fuzz_target.cpp ${PROJECT_SOURCE_DIR}/tests/model/checkpoints.cpp)
  target_include_directories(pruner_fuzz PUBLIC ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/src
                                                 ${PROJECT_SOURCE_DIR}/include)
  target_compile_definitions(pruner_fuzz PUBLIC PRUNER_TEST_DIR="${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(pruner_fuzz PUBLIC pruner_options pruner::base GTest::gtest)
  use_pch(pruner_fuzz pruner_support)
  add_custom_target(fuzz_targets)
  set(same_addresses setarch -R)
  execute_process(COMMAND ${same_addresses} true RESULT_VARIABLE refused OUTPUT_QUIET ERROR_QUIET)
  if(NOT refused STREQUAL 0)
    set(same_addresses "")
  endif()
  file(GLOB files CONFIGURE_DEPENDS ${fuzz}/*_fuzz.cpp)
  foreach(file IN LISTS files)
    get_filename_component(program ${file} NAME_WE)
    file(STRINGS ${file} first LIMIT_COUNT 1)
    string(REGEX REPLACE "^// layer: " "" layer "${first}")
    add_executable(${program} ${file})
    target_link_libraries(${program} PRIVATE pruner_fuzz pruner_${layer})
    target_link_options(${program} PRIVATE -fsanitize=fuzzer)
    use_pch(${program} pruner_support)
    add_dependencies(fuzz_targets ${program})
    set(corpus ${PROJECT_BINARY_DIR}/fuzz/${program})
    file(MAKE_DIRECTORY ${corpus})
    add_test(NAME ${program}
             COMMAND ${same_addresses} $<TARGET_FILE:${program}> ${corpus} -artifact_prefix=${corpus}- -seed=1
                     -reload=0 -runs=20000 -max_total_time=30 -timeout=60 -rss_limit_mb=4096
                     -print_final_stats=1)
    set_tests_properties(${program} PROPERTIES LABELS fuzz TIMEOUT 120)
  endforeach()
endfunction()
