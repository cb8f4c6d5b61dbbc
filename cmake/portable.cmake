# With PRUNER_STATIC, builds the device tests of every layer as one program, device_test. The
# program is carried to other machines with pruner, and runs in the folder that has both programs
# and tests/. A test checks that the two programs need nothing but the C library.
if(NOT PRUNER_STATIC)
  return()
endif()

get_property(device_tests GLOBAL PROPERTY PRUNER_DEVICE_TESTS)
set(portable_programs $<TARGET_FILE:pruner>)
if(GTest_FOUND AND device_tests)
  add_executable(device_test ${device_tests})
  target_include_directories(device_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(device_test PRIVATE PRUNER_TEST_DIR="tests" PRUNER_BINARY="./pruner"
                                                 PRUNER_SHARED_DATA="tests/shared_data")
  target_link_libraries(device_test PRIVATE pruner_options pruner_cli GTest::gtest_main)
  add_dependencies(device_test pruner)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/tests ${PROJECT_BINARY_DIR}/tests SYMBOLIC)
  gtest_discover_tests(device_test DISCOVERY_MODE PRE_TEST WORKING_DIRECTORY ${PROJECT_BINARY_DIR}
                       PROPERTIES LABELS device TIMEOUT 600)
  list(APPEND portable_programs $<TARGET_FILE:device_test>)
endif()

add_test(NAME needs_only_the_c_library
         COMMAND ${PROJECT_SOURCE_DIR}/tools/check_portable.sh ${portable_programs})
