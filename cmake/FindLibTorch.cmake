# Finds LibTorch and makes the target LibTorch::LibTorch. The CMake package of torch is not used:
# the package wants a CUDA toolkit if torch was built with CUDA.
#
# LibTorch is looked for under LIBTORCH_ROOT (a variable, or in the environment), then in Debian's
# folders, then in the packages of python3. Headers and libraries come from the same place.
set(libtorch_root "${LIBTORCH_ROOT}")
if(NOT libtorch_root)
  set(libtorch_root "$ENV{LIBTORCH_ROOT}")
endif()
if(libtorch_root)
  set(libtorch_roots ${libtorch_root})
else()
  set(libtorch_roots /usr)
  find_program(LIBTORCH_PYTHON python3)
  if(LIBTORCH_PYTHON AND NOT EXISTS /usr/include/torch/csrc/api/include/torch/torch.h)
    execute_process(
      COMMAND ${LIBTORCH_PYTHON} -c
              "import importlib.util as u; print(*u.find_spec('torch').submodule_search_locations)"
      OUTPUT_VARIABLE libtorch_package OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    list(APPEND libtorch_roots ${libtorch_package})
  endif()
endif()

foreach(root IN LISTS libtorch_roots)
  find_path(LIBTORCH_INCLUDE_DIR torch/csrc/api/include/torch/torch.h PATHS ${root}/include
            NO_DEFAULT_PATH)
  foreach(library torch_cpu c10)
    find_library(LIBTORCH_${library} ${library} PATHS ${root}/lib ${root}/lib/${CMAKE_LIBRARY_ARCHITECTURE}
                 NO_DEFAULT_PATH)
  endforeach()
  if(LIBTORCH_INCLUDE_DIR AND LIBTORCH_torch_cpu AND LIBTORCH_c10)
    break()
  endif()
  unset(LIBTORCH_INCLUDE_DIR CACHE)
  unset(LIBTORCH_torch_cpu CACHE)
  unset(LIBTORCH_c10 CACHE)
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch REQUIRED_VARS LIBTORCH_torch_cpu LIBTORCH_c10
                                                         LIBTORCH_INCLUDE_DIR)
if(LibTorch_FOUND AND NOT TARGET LibTorch::LibTorch)
  add_library(LibTorch::LibTorch INTERFACE IMPORTED)
  target_include_directories(LibTorch::LibTorch SYSTEM INTERFACE
                             ${LIBTORCH_INCLUDE_DIR}
                             ${LIBTORCH_INCLUDE_DIR}/torch/csrc/api/include)
  target_link_libraries(LibTorch::LibTorch INTERFACE ${LIBTORCH_torch_cpu} ${LIBTORCH_c10})
endif()
