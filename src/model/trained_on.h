// What a model has seen: programs and workloads by hash, so that it can be judged by what it has
// not. A text that stands in every model file that was trained from records.
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
  /// Adds what a later training saw.
  void add(const TrainedOn& later);
  friend bool operator==(const TrainedOn&, const TrainedOn&) = default;
};

std::string print_trained_on(const TrainedOn& seen);
Result<TrainedOn> parse_trained_on(std::string_view text);

}  // namespace pruner
