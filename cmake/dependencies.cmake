# Makes a target for every third-party library, for layers to link. If a required library is
# missing, CMake stops here. A missing optional library turns its part off, with a message.
find_package(Threads REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(tl-expected REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Protobuf REQUIRED)
find_package(ONNX REQUIRED)
find_package(GTest)
find_package(benchmark QUIET)
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
find_library(XXHASH_LIBRARY xxhash REQUIRED)
# The CMake package of Debian 12's libzip also requires libzip's programs.
find_path(ZIP_INCLUDE_DIR zip.h REQUIRED)
find_library(ZIP_LIBRARY zip REQUIRED)
find_package(ZLIB REQUIRED)
find_package(zstd REQUIRED)

add_library(pruner_base INTERFACE)
add_library(pruner::base ALIAS pruner_base)
target_include_directories(pruner_base SYSTEM INTERFACE ${XXHASH_INCLUDE_DIR}
                                                           ${ZIP_INCLUDE_DIR})
target_link_libraries(pruner_base INTERFACE nlohmann_json::nlohmann_json fmt::fmt spdlog::spdlog
                      tl::expected ${XXHASH_LIBRARY} ${ZIP_LIBRARY} ZLIB::ZLIB
                      zstd::libzstd_shared Threads::Threads ${CMAKE_DL_LIBS})

# Only ONNX's protobuf classes are linked; the package's headers read ONNX_ML and ONNX_NAMESPACE.
add_library(pruner_onnx INTERFACE)
add_library(pruner::onnx ALIAS pruner_onnx)
target_link_libraries(pruner_onnx INTERFACE onnx_proto protobuf::libprotobuf)

add_library(pruner_llvm INTERFACE)
add_library(pruner::llvm ALIAS pruner_llvm)
if(PRUNER_LLVM)
  find_package(LLVM 19.1 CONFIG QUIET HINTS /usr/lib/llvm-19)
  if(LLVM_FOUND)
    # Debian builds LLVM as one shared library. LLVM's own flags (no exceptions, C++17) are not used
    # for our files.
    find_library(LLVM_LIBRARY LLVM-19 HINTS ${LLVM_LIBRARY_DIRS} REQUIRED)
    target_include_directories(pruner_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
    target_link_libraries(pruner_llvm INTERFACE ${LLVM_LIBRARY})
  else()
    message(STATUS "LLVM 19 not found (llvm-19-dev): no machine code for CPUs")
    set(PRUNER_LLVM OFF)
  endif()
else()
  message(STATUS "LLVM is off: no machine code for CPUs")
endif()

add_library(pruner_lld INTERFACE)
add_library(pruner::lld ALIAS pruner_lld)
if(PRUNER_LLD AND PRUNER_LLVM)
  find_library(LLD_ELF_LIBRARY lldELF HINTS ${LLVM_LIBRARY_DIRS})
  find_library(LLD_COMMON_LIBRARY lldCommon HINTS ${LLVM_LIBRARY_DIRS})
  find_path(LLD_INCLUDE_DIR lld/Common/Driver.h HINTS ${LLVM_INCLUDE_DIRS})
  if(LLD_ELF_LIBRARY AND LLD_COMMON_LIBRARY AND LLD_INCLUDE_DIR)
    target_include_directories(pruner_lld SYSTEM INTERFACE ${LLD_INCLUDE_DIR})
    target_link_libraries(pruner_lld INTERFACE ${LLD_ELF_LIBRARY} ${LLD_COMMON_LIBRARY}
                                               pruner_llvm ZLIB::ZLIB zstd::libzstd_shared)
  else()
    message(STATUS "lld 19 not found (liblld-19-dev): modules are linked by the system's linker")
    set(PRUNER_LLD OFF)
  endif()
else()
  set(PRUNER_LLD OFF)
endif()

# Layers test #if PRUNER_LLVM, #if PRUNER_LLD and #if PRUNER_ZIP.
target_compile_definitions(pruner_base INTERFACE PRUNER_LLVM=$<BOOL:${PRUNER_LLVM}>
                                                 PRUNER_LLD=$<BOOL:${PRUNER_LLD}> PRUNER_ZIP=1)
