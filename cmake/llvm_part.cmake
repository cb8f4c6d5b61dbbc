# Builds src/codegen/llvm/ as a library of its own. No other files see the headers of LLVM and lld.
# LLVM is built without RTTI, and so is this library. The library and the rest of the layer codegen
# may call each other. With lld but without LLVM, the library has only the files that link and
# assemble.
file(GLOB_RECURSE llvm_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/codegen/llvm/*.cpp)
if(NOT PRUNER_LLVM)
  list(FILTER llvm_sources INCLUDE REGEX "/(archive|assembler|initialize|static_link|lld)\\.cpp$")
elseif(NOT PRUNER_STATIC)
  list(FILTER llvm_sources EXCLUDE REGEX "/static_link\\.cpp$")
endif()
if((PRUNER_LLVM OR PRUNER_LLD) AND llvm_sources)
  add_library(pruner_codegen_llvm STATIC ${llvm_sources})
  target_compile_options(pruner_codegen_llvm PRIVATE -fno-rtti)
  target_link_libraries(pruner_codegen_llvm PRIVATE pruner_options pruner_lower pruner::llvm
                                                    pruner::lld)
  get_target_property(codegen_type pruner_codegen TYPE)
  if(codegen_type STREQUAL "INTERFACE_LIBRARY")
    target_link_libraries(pruner_codegen INTERFACE pruner_codegen_llvm)
  else()
    target_link_libraries(pruner_codegen PUBLIC pruner_codegen_llvm)
    target_link_libraries(pruner_codegen_llvm PRIVATE pruner_codegen)
  endif()
endif()
