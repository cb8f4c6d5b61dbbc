// What a command works on: the network, operator or DAG that the options name, as tasks.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"
#include "graph/partition.h"

namespace pruner {

struct Source {
  std::string name;      // for files: "resnet_50", "matmul_512_512_512"
  bool network = false;  // else one operator or DAG
  Partition partition;   // of an operator: one group, its constants seeded
  std::vector<WeightedTask> tasks;
};

/// The target of --target and --threads, with the numbers of --psa.
Result<Target> read_target(const Options& options);
Result<NetworkOptions> network_options(const Options& options);
/// Reads what the options name: MODEL.onnx, --network, --op or --task; exactly one of them.
Result<Source> read_source(const Options& options, const Target& target);
/// Leaves the tasks whose name --tasks matches; an error where there is none.
Result<Unit> keep_matching(const Options& options, std::vector<WeightedTask>& tasks);
/// --jobs, or all cores.
int job_count(const Options& options);

/// A DAG as a network of one group: what is no constant is an input.
Partition single_group(ComputeDag dag, const std::string& name, uint64_t seed);

}  // namespace pruner
