# add_layer(name [DEPS layers...] [TEST_DEPS layers...] [LIBS targets...]) makes the library
# pruner_<name> from src/<name>/**.cpp, and test programs from tests/<name>/**_test.cpp. The tests
# may also use the layers TEST_DEPS. A folder without a .cpp is a library of headers.
set(PRUNER_LAYERS)
set(PRUNER_PCH_HEADERS <nlohmann/json.hpp> <spdlog/spdlog.h> <algorithm> <cstdint> <functional>
                       <map> <memory> <optional> <span> <sstream> <string> <string_view>
                       <tl/expected.hpp> <unordered_map> <utility> <variant> <vector>)

# use_pch(target owner) makes `target` use the precompiled headers of `owner`. Both targets must
# have the same flags.
function(use_pch target owner)
  if(PRUNER_PCH)
    target_precompile_headers(${target} REUSE_FROM ${owner})
    target_compile_options(${target} PRIVATE ${PRUNER_PCH_OPTIONS})
  endif()
endfunction()

function(add_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 layer "" "" "DEPS;TEST_DEPS;LIBS")
  set(target pruner_${name})
  set(folder ${PROJECT_SOURCE_DIR}/src/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  # These parts have flags of their own: codegen/llvm (llvm_part.cmake), model/nn/torch
  # (torch_part.cmake), and the program's main.
  list(FILTER sources EXCLUDE REGEX "/src/codegen/llvm/|/src/model/nn/torch/|/src/cli/main\\.cpp$")
  list(TRANSFORM layer_DEPS PREPEND pruner_)
  list(TRANSFORM layer_TEST_DEPS PREPEND pruner_)
  if(sources)
    add_library(${target} STATIC ${sources})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE pruner_options)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope} ${PROJECT_SOURCE_DIR}/src
                                                ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${target} ${scope} ${layer_LIBS} ${layer_DEPS})
  if(sources)
    if(name STREQUAL "support" AND PRUNER_PCH)
      target_precompile_headers(${target} PRIVATE ${PRUNER_PCH_HEADERS})
      target_compile_options(${target} PRIVATE ${PRUNER_PCH_OPTIONS})
    else()
      use_pch(${target} pruner_support)
    endif()
  endif()
  set(PRUNER_LAYERS ${PRUNER_LAYERS} ${name} PARENT_SCOPE)
  add_layer_tests(${name})
endfunction()

# add_layer_tests(name) makes a test program for each label. The first line of a test file may name
# the label, such as `// label: slow`; without the line the file is a unit test. The labels
# cuda-fake and fault are described in fakes.cmake. Other .cpp files of the folder belong to every
# program.
set(PRUNER_TEST_LABELS unit codegen device cuda-fake fault slow)
function(add_layer_tests name)
  if(NOT GTest_FOUND)
    return()
  endif()
  set(folders ${PROJECT_SOURCE_DIR}/tests/${name}/*.cpp)
  # The tests of cli include the command lines of the founding documents (seeds), and tests of what
  # all layers make of a task (replay).
  if(name STREQUAL "cli")
    list(APPEND folders ${PROJECT_SOURCE_DIR}/tests/seeds/*.cpp
                        ${PROJECT_SOURCE_DIR}/tests/replay/*.cpp)
  endif()
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${folders})
  set(shared)
  foreach(label ${PRUNER_TEST_LABELS})
    set(tests_${label})
  endforeach()
  foreach(file IN LISTS files)
    if(NOT file MATCHES "_test\\.cpp$")
      list(APPEND shared ${file})
      continue()
    endif()
    file(STRINGS ${file} first LIMIT_COUNT 1)
    set(label unit)
    if(first MATCHES "^// label: ([a-z-]+)")
      set(label ${CMAKE_MATCH_1})
    endif()
    if(NOT label IN_LIST PRUNER_TEST_LABELS)
      message(FATAL_ERROR "${file}: label ${label} is none of ${PRUNER_TEST_LABELS}")
    endif()
    list(APPEND tests_${label} ${file})
  endforeach()
  if(PRUNER_STATIC) # the device tests of all layers are one program (portable.cmake)
    if(tests_device)
      set_property(GLOBAL APPEND PROPERTY PRUNER_DEVICE_TESTS ${tests_device} ${shared})
    endif()
    return()
  endif()
  foreach(label ${PRUNER_TEST_LABELS})
    if(label MATCHES "^(codegen|fault)$" AND NOT PRUNER_LLVM)
      continue()
    endif()
    if(label STREQUAL "fault" AND PRUNER_SANITIZE) # the sanitizers' libraries have to load first
      continue()
    endif()
    if(tests_${label})
      add_test_program(${name} ${label} ${tests_${label}} ${shared})
    endif()
  endforeach()
endfunction()

# Test code need not be fast: -O1 takes a fifth less time to build.
set(PRUNER_TEST_OPTIONS $<$<CONFIG:Release>:-O1>)

function(add_test_program layer label)
  set(program ${layer}_test)
  if(NOT label STREQUAL "unit")
    string(REPLACE "-" "_" program ${layer}_test_${label})
  endif()
  add_executable(${program} ${ARGN})
  target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_options(${program} PRIVATE ${PRUNER_TEST_OPTIONS})
  target_link_libraries(${program} PRIVATE pruner_options pruner_${layer} ${layer_TEST_DEPS}
                                           GTest::gtest_main)
  target_compile_definitions(
    ${program} PRIVATE PRUNER_TEST_DIR="${PROJECT_SOURCE_DIR}/tests"
                       PRUNER_SHARED_DATA="${PROJECT_SOURCE_DIR}/../shared/data")
  # Tests of these layers start the program, for its commands or as the workers that build and time
  # candidates.
  if(layer MATCHES "^(measure|fleet|tune|deploy|cli)$" AND EXISTS ${PROJECT_SOURCE_DIR}/src/cli/main.cpp)
    target_compile_definitions(${program} PRIVATE PRUNER_BINARY="$<TARGET_FILE:pruner>")
    add_dependencies(${program} pruner)
  endif()
  # A page of docs/ that these tests check runs the program on the fakes.
  if(layer STREQUAL "cli" AND label STREQUAL "codegen")
    add_dependencies(${program} fakes)
  endif()
  if(PRUNER_PCH)
    if(NOT TARGET pruner_test_pch)
      file(WRITE ${PROJECT_BINARY_DIR}/test_pch.cpp "")
      add_library(pruner_test_pch OBJECT ${PROJECT_BINARY_DIR}/test_pch.cpp)
      target_link_libraries(pruner_test_pch PRIVATE pruner_options pruner::base GTest::gtest_main)
      target_precompile_headers(pruner_test_pch PRIVATE <gtest/gtest.h> ${PRUNER_PCH_HEADERS})
      target_compile_options(pruner_test_pch PRIVATE ${PRUNER_PCH_OPTIONS} ${PRUNER_TEST_OPTIONS})
    endif()
    use_pch(${program} pruner_test_pch)
  endif()
  set(properties LABELS ${label} TIMEOUT 600)
  if(label STREQUAL "cuda-fake")
    use_fakes(${program})
    list(APPEND properties ENVIRONMENT_MODIFICATION LD_LIBRARY_PATH=path_list_prepend:${PRUNER_FAKES})
  endif()
  if(label STREQUAL "fault")
    add_dependencies(${program} faults)
    target_compile_definitions(${program} PRIVATE PRUNER_FAULTS="$<TARGET_FILE:faults>")
    list(APPEND properties RUN_SERIAL TRUE)
  endif()
  gtest_discover_tests(${program} DISCOVERY_MODE PRE_TEST PROPERTIES ${properties})
endfunction()
