# docs/ as a site (tools/site.sh), whose broken links are errors; skipped where mkdocs is not here.
add_test(NAME site COMMAND ${PROJECT_SOURCE_DIR}/tools/site.sh ${PROJECT_BINARY_DIR}/site)
set_tests_properties(site PROPERTIES LABELS slow TIMEOUT 120 SKIP_RETURN_CODE 77)
