// The programs whose symbols, features and scores the reference gave: a dozen in
// tests/golden/reference (its README says how they came about), and where shared/data/pruner-golden
// is there, all of those.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <set>
#include <string>

#include "ansor/workload_table.h"
#include "golden.h"
#include "support/file.h"

namespace pruner {

/// Programs of the dozen.
inline constexpr int kGoldenPrograms = 12;

struct GoldenProgram {
  std::string name;   // "matmul 3"
  const Json& state;  // "rows", "psa", "statement_features", "task_embedding", "psa_score", ...
  const Json& model;  // "pacm", "tenset-mlp", "tlp": of the dozen; else null
  const std::vector<ansor::Step>& steps;
  const ansor::ReplayNest& nest;
};

/// {"3": 0.5}, width 5 -> [0, 0, 0, 0.5, 0]
inline Json dense_row(const Json& sparse, int width) {
  Json row = std::vector<int>(static_cast<size_t>(width), 0);
  for (const auto& [place, value] : sparse.items()) row[std::stoul(place)] = value;
  return row;
}

/// An entry of programs.json as the reference's own files have it.
inline Json dense_state(const Json& program) {
  Json state = {{"task_embedding", program["task_flags"]},
                {"psa_score", program["score"]},
                {"rows", Json::array()},
                {"psa", Json::array()},
                {"statement_features", Json::array()},
                {"dataflow_features", Json::array()}};
  for (const auto& [buffer, row] : program["rows"].items()) {
    state["rows"].push_back(buffer);
    state["psa"].push_back(row["symbols"]);
    state["statement_features"].push_back(dense_row(row["features"], 164));
  }
  for (const Json& step : program["dataflow"])
    state["dataflow_features"].push_back(dense_row(step, 23));
  return state;
}

/// Calls fn for each program; gives their number.
inline int for_golden_programs(const std::function<void(const GoldenProgram&)>& fn) {
  int count = 0;
  std::set<std::string> seen;
  const auto visit = [&](const std::string& name,
                         const ansor::WorkloadEntry& workload,
                         const Json& steps_json,
                         const Json& state,
                         const Json& model) {
    if (!seen.insert(name).second) return;
    const auto steps = ansor::steps_from_json(steps_json);
    ASSERT_TRUE(steps.ok()) << name;
    const auto nest = replay(workload, *steps);
    ASSERT_TRUE(nest.ok()) << name;
    fn({name, state, model, *steps, *nest});
    ++count;
  };
  ansor::WorkloadTable workloads;
  const Json dozen = *parse_json(*read_file(test_path("golden/reference/programs.json")));
  for (const auto& [task, dag] : dozen["dags"].items())
    EXPECT_TRUE(workloads.add({{"workload_key", "[\"" + task + "\"]"}, {"dag", dag}}).ok()) << task;
  for (const Json& program : dozen["programs"]) {
    const auto task = program["task"].get<std::string>();
    visit(task + " " + program["number"].dump(),
          workloads.find("[\"" + task + "\"]"),
          program["steps"],
          dense_state(program),
          program["model"]);
  }
  const std::string folder = PRUNER_SHARED_DATA "/pruner-golden/";
  if (!std::filesystem::exists(folder)) return count;
  for (const char* task :
       {"add", "conv2d", "conv2d_s2", "matmul", "matmul_bias_relu", "reduce", "softmax"}) {
    ansor::WorkloadTable table;
    EXPECT_TRUE(table.add_file(folder + task + ".dag.json").ok());
    Json file = *parse_json(*read_file(folder + task + ".json"));
    int number = 0;
    for (Json& state : file["states"]) {
      if (!state["valid"].get<bool>()) continue;
      state["task_embedding"] = file["task_embedding"];
      const Json& i = state["record"]["i"];
      visit(std::string(task) + " " + std::to_string(number++),
            table.find(i[0][0].get<std::string>()),
            i[1][1],
            state,
            nullptr);
    }
  }
  return count;
}

}  // namespace pruner
