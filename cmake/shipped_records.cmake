# Embeds records/*.json as texts in the layer transfer (shipped_files() of transfer/shipped.h). The
# program knows these files wherever the program lies.
file(GLOB shipped_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/records/*.json)
list(SORT shipped_files)
set(shipped_symbols)
set(shipped_rows)
set(shipped_bytes)
foreach(file IN LISTS shipped_files)
  get_filename_component(name ${file} NAME_WE)
  set(symbol pruner_shipped_${name})
  string(APPEND shipped_bytes "  .global ${symbol}\n${symbol}:\n  .incbin \"${file}\"\n"
                              "  .global ${symbol}_end\n${symbol}_end:\n  .byte 0\n")
  string(APPEND shipped_symbols "extern \"C\" const char ${symbol}[], ${symbol}_end[];\n")
  string(APPEND shipped_rows
         "      {\"${name}\", {${symbol}, static_cast<size_t>(${symbol}_end - ${symbol})}},\n")
endforeach()
configure_file(${PROJECT_SOURCE_DIR}/cmake/shipped_records.S.in
               ${PROJECT_BINARY_DIR}/shipped_records.S @ONLY)
configure_file(${PROJECT_SOURCE_DIR}/cmake/shipped_records.cpp.in
               ${PROJECT_BINARY_DIR}/shipped_records.cpp @ONLY)
set_source_files_properties(${PROJECT_BINARY_DIR}/shipped_records.S
                            PROPERTIES OBJECT_DEPENDS "${shipped_files}")
target_sources(pruner_transfer PRIVATE ${PROJECT_BINARY_DIR}/shipped_records.S
                                       ${PROJECT_BINARY_DIR}/shipped_records.cpp)
