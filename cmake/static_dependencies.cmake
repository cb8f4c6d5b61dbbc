# With PRUNER_STATIC, makes the targets of dependencies.cmake without shared libraries, except for
# the C library. Debian has no archives of some libraries: fmt and spdlog are compiled from their
# headers, ONNX's classes from their description, and libzip is left out (PRUNER_ZIP).
find_package(Threads REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tl-expected REQUIRED)
find_package(CLI11 REQUIRED)
find_package(GTest)
set(Protobuf_USE_STATIC_LIBS ON)
set(ZLIB_USE_STATIC_LIBS ON)
find_package(Protobuf REQUIRED)
find_package(ZLIB REQUIRED)
find_path(FMT_INCLUDE_DIR fmt/format-inl.h REQUIRED)
find_path(SPDLOG_INCLUDE_DIR spdlog/spdlog.h REQUIRED)
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
find_path(ONNX_PROTO_DIR onnx/onnx.proto REQUIRED)
find_library(XXHASH_ARCHIVE libxxhash.a REQUIRED)
find_library(ZSTD_ARCHIVE libzstd.a REQUIRED)

add_library(pruner_text STATIC ${PROJECT_SOURCE_DIR}/cmake/static_text.cpp)
target_include_directories(pruner_text SYSTEM PUBLIC ${FMT_INCLUDE_DIR} ${SPDLOG_INCLUDE_DIR})
target_compile_definitions(pruner_text PUBLIC SPDLOG_COMPILED_LIB SPDLOG_FMT_EXTERNAL)

add_library(pruner_base INTERFACE)
add_library(pruner::base ALIAS pruner_base)
target_include_directories(pruner_base SYSTEM INTERFACE ${XXHASH_INCLUDE_DIR})
target_link_libraries(pruner_base INTERFACE nlohmann_json::nlohmann_json pruner_text tl::expected
                      ${XXHASH_ARCHIVE} ZLIB::ZLIB ${ZSTD_ARCHIVE} Threads::Threads ${CMAKE_DL_LIBS})

# Other files include onnx/onnx_pb.h, which includes the header that is generated here. Without
# LITE_RUNTIME the classes are like the classes of libonnx, which know their fields and keep unknown
# fields by number.
set(onnx_proto ${PROJECT_BINARY_DIR}/onnx/onnx-ml.proto)
file(READ ${ONNX_PROTO_DIR}/onnx/onnx.proto onnx_text)
string(REPLACE "option optimize_for = LITE_RUNTIME;" "" onnx_text "${onnx_text}")
file(CONFIGURE OUTPUT ${onnx_proto} CONTENT "${onnx_text}" @ONLY)
add_custom_command(
  OUTPUT ${PROJECT_BINARY_DIR}/onnx/onnx-ml.pb.cc ${PROJECT_BINARY_DIR}/onnx/onnx-ml.pb.h
  COMMAND protobuf::protoc -I${PROJECT_BINARY_DIR} --cpp_out=${PROJECT_BINARY_DIR} ${onnx_proto}
  DEPENDS ${onnx_proto} VERBATIM)
add_library(pruner_onnx STATIC ${PROJECT_BINARY_DIR}/onnx/onnx-ml.pb.cc
                               ${PROJECT_BINARY_DIR}/onnx/onnx-ml.pb.h)
add_library(pruner::onnx ALIAS pruner_onnx)
target_include_directories(pruner_onnx SYSTEM PUBLIC ${PROJECT_BINARY_DIR})
target_compile_definitions(pruner_onnx PUBLIC ONNX_ML=1 ONNX_NAMESPACE=onnx)
target_link_libraries(pruner_onnx PUBLIC protobuf::libprotobuf)

# LLVM's archives. With PRUNER_LLVM the program has all of LLVM that makes code for both instruction
# sets. Without PRUNER_LLVM the program has only the parts that link and assemble for this machine
# (src/codegen/llvm/static_link.cpp).
add_library(pruner_llvm INTERFACE)
add_library(pruner::llvm ALIAS pruner_llvm)
add_library(pruner_lld INTERFACE)
add_library(pruner::lld ALIAS pruner_lld)
find_package(LLVM 19.1 CONFIG QUIET HINTS /usr/lib/llvm-19)
find_path(LLD_INCLUDE_DIR lld/Common/Driver.h HINTS ${LLVM_INCLUDE_DIRS})
if(PRUNER_LLD AND LLVM_FOUND AND LLD_INCLUDE_DIR
   AND EXISTS ${LLVM_LIBRARY_DIRS}/liblldELF.a)
  set(names lldELF lldCommon)
  if(PRUNER_LLVM)
    execute_process(
      COMMAND ${LLVM_TOOLS_BINARY_DIR}/llvm-config --link-static --libnames passes orcjit irreader
              objcopy x86 aarch64
      OUTPUT_VARIABLE needed OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX REPLACE "lib([A-Za-z0-9]+)\\.a" "\\1" needed "${needed}")
    separate_arguments(needed)
    list(FILTER needed EXCLUDE REGEX Polly)
    list(APPEND names ${needed})
  else()
    foreach(name ${LLVM_NATIVE_ARCH}AsmParser ${LLVM_NATIVE_ARCH}Desc ${LLVM_NATIVE_ARCH}Info
            MCDisassembler MCParser MC ObjCopy Option Object IRReader AsmParser TextAPI Remarks BitReader
            BitstreamReader Analysis TransformUtils CodeGen CodeGenTypes DebugInfoDWARF Core
            TargetParser BinaryFormat Support Demangle)
      list(APPEND names LLVM${name})
    endforeach()
  endif()
  list(REMOVE_DUPLICATES names)
  list(TRANSFORM names PREPEND "${LLVM_LIBRARY_DIRS}/lib" OUTPUT_VARIABLE archives)
  list(TRANSFORM archives APPEND ".a")
  target_include_directories(pruner_lld SYSTEM INTERFACE ${LLD_INCLUDE_DIR} ${LLVM_INCLUDE_DIRS})
  target_link_libraries(pruner_lld INTERFACE -Wl,--start-group ${archives} -Wl,--end-group
                                             ZLIB::ZLIB ${ZSTD_ARCHIVE})
else()
  message(STATUS "archives of lld 19 not found (liblld-19-dev, llvm-19-dev): no modules are made")
  set(PRUNER_LLD OFF)
  set(PRUNER_LLVM OFF)
endif()

# Layers test #if PRUNER_LLVM, #if PRUNER_LLD and #if PRUNER_ZIP.
target_compile_definitions(pruner_base INTERFACE PRUNER_LLVM=$<BOOL:${PRUNER_LLVM}> PRUNER_LLD=$<BOOL:${PRUNER_LLD}>
                                                 PRUNER_ZIP=0)
