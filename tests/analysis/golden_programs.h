// The programs whose features the reference gave: shared/data/pruner-golden.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>

#include "space/ansor/workload_table.h"
#include "support/file.h"

namespace pruner {

struct GoldenProgram {
  std::string name;   // "matmul 3"
  const Json& file;   // of its workload: "dag", "task_embedding"
  const Json& state;  // "rows", "psa", "statement_features", ...
  const ansor::ReplayNest& nest;
};

/// Calls fn for each valid program; false where the files are not there.
inline bool for_golden_programs(const std::function<void(const GoldenProgram&)>& fn) {
  const std::string folder = PRUNER_SHARED_DATA "/pruner-golden/";
  if (!std::filesystem::exists(folder)) return false;
  for (const char* name :
       {"add", "conv2d", "conv2d_s2", "matmul", "matmul_bias_relu", "reduce", "softmax"}) {
    ansor::WorkloadTable workloads;
    EXPECT_TRUE(workloads.add_file(folder + name + ".dag.json").ok());
    const Json file = *parse_json(*read_file(folder + name + ".json"));
    int number = 0;
    for (const Json& state : file["states"]) {
      if (!state["valid"].get<bool>()) continue;
      const Json& i = state["record"]["i"];
      const auto steps = ansor::steps_from_json(i[1][1]);
      const auto nest = replay(workloads.find(i[0][0].get<std::string>()), *steps);
      EXPECT_TRUE(nest.ok()) << name;
      fn({std::string(name) + " " + std::to_string(number++), file, state, *nest});
    }
  }
  return true;
}

}  // namespace pruner
