# pruner_add_module(TARGET (MODEL FILE.onnx | NETWORK NAME) [STATIC] [RECORDS FILES...]
#                   [TARGET_DEVICE TEXT] [OPTIONS...])
#
# Adds a module that is compiled when the project is built. The target is an imported library,
# TARGET.so in the binary folder. A program links the library, or loads it by its path,
# $<TARGET_FILE:TARGET>. A program can link only one such module, because all modules have functions
# of the same names.
#
#   STATIC         makes libTARGET.a and TARGET.h instead; the functions begin with TARGET_, so that
#                  a program may link several modules
#   RECORDS        files of records of a tuning
#   TARGET_DEVICE  the value of --target; the default is this machine or, if CMake cross-compiles,
#                  the processor that CMAKE_SYSTEM_PROCESSOR names
#   OPTIONS        more flags of `pruner compile`
function(pruner_add_module target)
  cmake_parse_arguments(PARSE_ARGV 1 module "STATIC" "MODEL;NETWORK;TARGET_DEVICE" "RECORDS;OPTIONS")
  if(module_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "pruner_add_module: unknown arguments ${module_UNPARSED_ARGUMENTS}")
  endif()
  if(module_MODEL AND NOT module_NETWORK)
    get_filename_component(model "${module_MODEL}" ABSOLUTE)
    set(source "${model}")
  elseif(module_NETWORK AND NOT module_MODEL)
    set(source --network "${module_NETWORK}")
  else()
    message(FATAL_ERROR "pruner_add_module(${target}): give MODEL or NETWORK")
  endif()
  set(flags ${module_OPTIONS})
  set(inputs ${model})
  foreach(file IN LISTS module_RECORDS)
    get_filename_component(path "${file}" ABSOLUTE)
    list(APPEND flags --records "${path}")
    list(APPEND inputs "${path}")
  endforeach()
  if(NOT module_TARGET_DEVICE AND CMAKE_CROSSCOMPILING)
    set(module_TARGET_DEVICE "llvm -mtriple=${CMAKE_SYSTEM_PROCESSOR}-linux-gnu")
  endif()
  if(module_TARGET_DEVICE)
    list(APPEND flags --target "${module_TARGET_DEVICE}")
  endif()
  if(module_STATIC)
    set(kind STATIC)
    set(file "${CMAKE_CURRENT_BINARY_DIR}/lib${target}.a")
    set(header "${CMAKE_CURRENT_BINARY_DIR}/${target}.h")
  else()
    set(kind SHARED)
    set(file "${CMAKE_CURRENT_BINARY_DIR}/${target}.so")
    set(header)
  endif()
  add_custom_command(
    OUTPUT "${file}" ${header}
    COMMAND "${pruner_EXECUTABLE}" compile ${source} ${flags} -o "${file}"
    DEPENDS ${inputs} "${pruner_EXECUTABLE}"
    COMMENT "Compiling the module ${target}"
    VERBATIM)
  add_custom_target(${target}_module ALL DEPENDS "${file}")
  add_library(${target} ${kind} IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${file}")
  target_link_libraries(${target} INTERFACE pruner::module)
  if(module_STATIC)
    find_package(Threads REQUIRED)
    target_include_directories(${target} INTERFACE "${CMAKE_CURRENT_BINARY_DIR}")
    target_link_libraries(${target} INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
  endif()
  add_dependencies(${target} ${target}_module)
endfunction()
