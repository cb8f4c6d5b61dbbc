# Builds libraries that stand in for NVIDIA's libraries on machines without a GPU
# (tests/fakes/README.md). Tests with `// label: cuda-fake` use these fakes. No program links the
# fakes; the loader finds the fakes at run time. The fakes are not installed. Sanitizers are off in
# the fakes, because the emulated threads change stacks.
set(PRUNER_FAKES ${PROJECT_BINARY_DIR}/fakes)
set(fakes ${PROJECT_SOURCE_DIR}/tests/fakes)

# add_fake(target file prefix sources...) makes the library `file`, whose functions begin with
# `prefix`.
function(add_fake target file prefix)
  add_library(${target} SHARED EXCLUDE_FROM_ALL ${ARGN} ${fakes}/rules.cpp ${fakes}/symbols.cpp)
  target_include_directories(${target} PRIVATE ${fakes})
  target_compile_options(${target} PRIVATE -Wall -Wextra -Werror=return-type)
  if("$ENV{CI}" STREQUAL "true")
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  target_compile_definitions(
    ${target} PRIVATE FAKE_PREFIX="${prefix}" FAKE_CXX="${CMAKE_CXX_COMPILER}"
                      FAKE_PRELUDE="${fakes}/emulator_prelude.h"
                      FAKE_SOURCES="${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS} Threads::Threads)
  set_target_properties(
    ${target} PROPERTIES PREFIX "" OUTPUT_NAME ${file} SUFFIX "" NO_SONAME TRUE
                         LIBRARY_OUTPUT_DIRECTORY ${PRUNER_FAKES} CXX_VISIBILITY_PRESET hidden
                         VISIBILITY_INLINES_HIDDEN ON)
endfunction()

file(GLOB driver_sources CONFIGURE_DEPENDS ${fakes}/cuda/*.cpp)
add_fake(fake_cuda libcuda.so.1 cu ${driver_sources})
add_fake(fake_nvrtc libnvrtc.so nvrtc ${fakes}/nvrtc.cpp ${fakes}/ptx.cpp)
add_fake(fake_nvml libnvidia-ml.so.1 nvml ${fakes}/nvml.cpp)
add_custom_target(fakes DEPENDS fake_cuda fake_nvrtc fake_nvml)

# The library `faults` simulates faults of the machine, for tests with `// label: fault`. LD_PRELOAD
# names the library.
add_library(faults SHARED EXCLUDE_FROM_ALL ${fakes}/faults.cpp)
target_compile_options(faults PRIVATE -Wall -Wextra -Werror=return-type)
target_link_libraries(faults PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(faults PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PRUNER_FAKES})

# use_fakes(program) prepares a test program that runs with the fakes. LD_LIBRARY_PATH names their
# folder.
function(use_fakes program)
  add_dependencies(${program} fakes)
  target_compile_definitions(${program} PRIVATE FAKES="${PRUNER_FAKES}")
  target_link_libraries(${program} PRIVATE ${CMAKE_DL_LIBS})
endfunction()

# add_fakes_tests() adds the tests of the fakes; it is called after the layers exist.
function(add_fakes_tests)
  if(NOT GTest_FOUND OR PRUNER_STATIC)
    return()
  endif()
  add_library(pruner_fakes INTERFACE)
  target_link_libraries(pruner_fakes INTERFACE pruner_codegen)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fakes/*_test.cpp)
  add_test_program(fakes cuda-fake ${files})
endfunction()
