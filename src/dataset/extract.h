// Lines of a record file -> programs with their features and labels, or why a line gives none.
#pragma once

#include <string>
#include <vector>

#include "dataset/dataset.h"
#include "dataset/make.h"
#include "dataset/record_batches.h"

namespace pruner {

/// What became of a line.
enum class Fate : uint8_t {
  kUnreadable,
  kOtherTarget,
  kBadLabel,
  kHeldOut,
  kFailedDropped,
  kNoDag,
  kNotRebuilt,
  kProgram,
};

struct Extracted {
  Fate fate = Fate::kUnreadable;
  std::string reason;
  int64_t line = 0;
  int label = -1, key = -1;  // in its part's lists
  double latency_s = 0;
  bool labelled = false;  // latency_s can be one
  int64_t timestamp = 0;
  uint64_t program = 0;  // hash of what was done to the task
  ProgramFeatures features;
};

struct TaskKey {
  std::string text, canonical;
};

/// Some lines of one file, and what they gave, a record a line.
struct FilePart {
  const ReadFile* file = nullptr;
  size_t begin = 0, end = 0;  // lines
  std::vector<Extracted> records;
  std::vector<DeviceLabel> labels;
  std::vector<TaskKey> keys;
  std::string target, device;  // of the last label, as the record has them
};

/// The latency of a record as its label: the mean of the repeats of Ansor's, the lower quartile of
/// ours; 1e10 when the trial failed. An error says why the number can be no latency: 0, negative,
/// below 1 ns, or above 1000 s without an error number.
Result<double> label_of(const Record& record);

/// Hash of what a record did to its task, in whatever form its JSON was written.
uint64_t program_hash(const Record& record);
/// What every program of the task has in its id.
std::string task_identity(const DatasetTask& task);
/// The id of a program: the same wherever its records lie.
uint64_t program_id(const std::string& task_identity, uint64_t program_hash);

/// Fills `part.records`, and the lists that they point into. Parts may be filled at the same time.
void extract_part(const MakeOptions& options, const MakeTools& tools, FilePart& part);

}  // namespace pruner
