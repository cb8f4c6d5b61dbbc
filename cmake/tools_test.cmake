# The checks of tools/ themselves.
if(PRUNER_PYTHON)
  add_test(NAME tools COMMAND ${PRUNER_PYTHON} ${PROJECT_SOURCE_DIR}/tests/tools/tools_test.py)
  set_tests_properties(tools PROPERTIES LABELS unit TIMEOUT 60 ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
endif()
