# The program pruner, and the micro-benchmarks.
if(EXISTS ${PROJECT_SOURCE_DIR}/src/cli/main.cpp)
  add_executable(pruner src/cli/main.cpp)
  target_link_libraries(pruner PRIVATE pruner_options pruner_cli)
  use_pch(pruner pruner_support)
endif()

file(GLOB micro_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/micro/*.cpp)
if(micro_sources AND benchmark_FOUND)
  add_executable(micro_bench ${micro_sources})
  target_include_directories(micro_bench PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  list(TRANSFORM PRUNER_LAYERS PREPEND pruner_ OUTPUT_VARIABLE layer_targets)
  target_link_libraries(micro_bench PRIVATE pruner_options ${layer_targets}
                                            benchmark::benchmark_main)
endif()
