# Embeds the files that a report's page carries (page_style() and page_scripts() of
# report/html/page.h): our style sheet and script, and Chart.js from Debian's libjs-chart.js.
# Without Chart.js the figures of a page cannot be zoomed.
find_file(PRUNER_CHART_JS chart.min.js PATHS /usr/share/javascript/chart.js NO_DEFAULT_PATH)
set(page_files ${PROJECT_SOURCE_DIR}/src/report/html/page.css)
if(PRUNER_CHART_JS)
  list(APPEND page_files ${PRUNER_CHART_JS} ${PROJECT_SOURCE_DIR}/src/report/html/page.js)
else()
  message(STATUS "Chart.js not found (libjs-chart.js): the figures of reports cannot be zoomed")
endif()
set(page_bytes)
set(page_symbols)
set(page_rows)
foreach(file IN LISTS page_files)
  get_filename_component(name ${file} NAME)
  string(MAKE_C_IDENTIFIER ${name} name)
  set(symbol pruner_${name})
  file(SHA256 ${file} sha256)
  string(APPEND page_bytes "  .global ${symbol}\n${symbol}:\n  .incbin \"${file}\"\n"
                           "  .global ${symbol}_end\n${symbol}_end:\n  .byte 0\n")
  string(APPEND page_symbols "extern \"C\" const char ${symbol}[], ${symbol}_end[];\n")
  string(APPEND page_rows "      {{${symbol}, static_cast<size_t>(${symbol}_end - ${symbol})},\n"
                          "       \"${sha256}\"},\n")
endforeach()
# The hashes are computed here, so that a changed file has to configure the build again.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page_files})
configure_file(${PROJECT_SOURCE_DIR}/cmake/report_page.S.in ${PROJECT_BINARY_DIR}/report_page.S @ONLY)
configure_file(${PROJECT_SOURCE_DIR}/cmake/report_page.cpp.in ${PROJECT_BINARY_DIR}/report_page.cpp
               @ONLY)
set_source_files_properties(${PROJECT_BINARY_DIR}/report_page.S
                            PROPERTIES OBJECT_DEPENDS "${page_files}")
target_sources(pruner_report PRIVATE ${PROJECT_BINARY_DIR}/report_page.S
                                     ${PROJECT_BINARY_DIR}/report_page.cpp)
