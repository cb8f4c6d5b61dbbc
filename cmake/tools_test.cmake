# Adds the tests of the checks in tools/, and of bench/gpu_lab.py, which takes rows of
# bench/gpu_ledger.tsv.
if(PRUNER_PYTHON)
  foreach(name tools gpu_lab)
    add_test(NAME ${name} COMMAND ${PRUNER_PYTHON} ${PROJECT_SOURCE_DIR}/tests/tools/${name}_test.py)
    set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 60 ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
  endforeach()
endif()
