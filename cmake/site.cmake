# Adds a test that builds docs/ as a site (tools/site.sh). A broken link is an error. Without mkdocs
# the test is skipped.
add_test(NAME site COMMAND ${PROJECT_SOURCE_DIR}/tools/site.sh ${PROJECT_BINARY_DIR}/site)
set_tests_properties(site PROPERTIES LABELS slow TIMEOUT 120 SKIP_RETURN_CODE 77)
