# Builds the code that a deployed module needs while it runs, in plain C: src/runtime/module/*.c,
# the operators of src/graph/routines/*.c, and src/support/*.c.
#
# The code is built twice. The first build is the library that our own layers link. The second build
# is one relocatable object, which the layer deploy holds as bytes (pruner_module_runtime_start to
# pruner_module_runtime_end) and links into every module. Each function has a section of its own, so
# that a module has only one of the executors.
#
# A second object is for modules of the other instruction set (x86-64 or aarch64), if there is a
# compiler for it.
add_library(pruner_module_runtime_interface INTERFACE)
add_library(pruner::module_runtime ALIAS pruner_module_runtime_interface)
add_library(pruner_module_runtime_bytes_interface INTERFACE)
add_library(pruner::module_runtime_bytes ALIAS pruner_module_runtime_bytes_interface)

file(GLOB runtime_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/runtime/module/*.c
     ${PROJECT_SOURCE_DIR}/src/graph/routines/*.c ${PROJECT_SOURCE_DIR}/src/support/*.c)
if(runtime_sources)
  add_library(pruner_module_runtime STATIC ${runtime_sources})
  target_link_libraries(pruner_module_runtime PRIVATE pruner_options)
  target_link_libraries(pruner_module_runtime_interface INTERFACE pruner_module_runtime
                                                                  Threads::Threads)

  add_library(pruner_module_runtime_parts OBJECT ${runtime_sources})
  target_compile_options(pruner_module_runtime_parts PRIVATE -Wall -Wextra -O2 -g0
                         -ffunction-sections -fdata-sections)
  set_target_properties(pruner_module_runtime_parts PROPERTIES POSITION_INDEPENDENT_CODE ON)
  foreach(target pruner_module_runtime pruner_module_runtime_parts)
    target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/include
                                                ${PROJECT_SOURCE_DIR}/src)
    target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
  endforeach()

  set(object ${PROJECT_BINARY_DIR}/module_runtime.o)
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -Wl,--unique -o ${object}
            $<TARGET_OBJECTS:pruner_module_runtime_parts>
    DEPENDS $<TARGET_OBJECTS:pruner_module_runtime_parts>
    COMMAND_EXPAND_LISTS VERBATIM)

  if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    set(other_triple x86_64-linux-gnu)
    set(other_flags)
  else()
    set(other_triple aarch64-linux-gnu)
    set(other_flags -mno-outline-atomics) # outlined atomics need libgcc, which no module links
  endif()
  find_program(PRUNER_OTHER_CC ${other_triple}-gcc)
  set(other_object)
  set(other_bytes)
  set(other_lacks TRUE)
  if(PRUNER_OTHER_CC) # a compiler may be there without a C library
    execute_process(COMMAND ${PRUNER_OTHER_CC} -include pthread.h -x c -E /dev/null
                    RESULT_VARIABLE other_lacks OUTPUT_QUIET ERROR_QUIET)
  endif()
  if(NOT other_lacks)
    set(other_object ${PROJECT_BINARY_DIR}/module_runtime_other.o)
    set(other_bytes ".incbin \"${other_object}\"")
    file(GLOB runtime_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/runtime/module/*.h
         ${PROJECT_SOURCE_DIR}/src/graph/routines/*.h ${PROJECT_SOURCE_DIR}/src/support/cpu_*.h
         ${PROJECT_SOURCE_DIR}/include/pruner/*.h)
    add_custom_command(
      OUTPUT ${other_object}
      COMMAND ${PRUNER_OTHER_CC} -r -nostdlib -Wl,--unique -std=gnu11 -O2 -g0 -fPIC ${other_flags} -Wall -Wextra
              -ffunction-sections -fdata-sections
              -D_GNU_SOURCE -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src
              -o ${other_object} ${runtime_sources}
      DEPENDS ${runtime_sources} ${runtime_headers}
      VERBATIM)
  else()
    message(STATUS "${other_triple}-gcc with its C library not found (gcc-${other_triple}): "
                   "no modules for it")
  endif()

  set(embedding ${PROJECT_BINARY_DIR}/module_runtime_bytes.S)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/module_runtime_bytes.S.in ${embedding} @ONLY)
  set(objects ${object} ${other_object})
  set_source_files_properties(${embedding} PROPERTIES OBJECT_DEPENDS "${objects}")
  add_library(pruner_module_runtime_bytes STATIC ${embedding})
  target_link_libraries(pruner_module_runtime_bytes_interface
                        INTERFACE pruner_module_runtime_bytes)
endif()
