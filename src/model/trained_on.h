// `TrainedOn` lists the hashes of the programs and workloads that a model was trained on, so that
// unseen programs can judge the model. Every model file that was trained from records has the list.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.h"

namespace pruner {

struct TrainedOn {
  std::vector<std::string> steps = {};   // how, e.g. "train, within_task 0.9, seed 0"
  std::vector<uint64_t> programs = {};   // ids of datasets (dataset/dataset.h), ascending
  std::vector<uint64_t> workloads = {};  // hash64 of workload keys, ascending
  bool complete = true;  // false: it began from weights whose programs are not known

  bool has_program(uint64_t id) const;
  bool has_workload(std::string_view key) const;
  /// Adds the programs and workloads of a later training.
  void add(const TrainedOn& later);
  friend bool operator==(const TrainedOn&, const TrainedOn&) = default;
};

std::string print_trained_on(const TrainedOn& seen);
Result<TrainedOn> parse_trained_on(std::string_view text);

}  // namespace pruner
