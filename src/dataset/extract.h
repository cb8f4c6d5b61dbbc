// Turns lines of a record file into programs with features and labels, or into reasons why a line
// gives no program.
#pragma once

#include <string>
#include <vector>

#include "dataset/dataset.h"
#include "dataset/make.h"
#include "dataset/record_batches.h"

namespace pruner {

/// `Fate` is the outcome of reading a line.
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
  int label = -1, key = -1;  // indices in the part's lists
  double latency_s = 0;
  bool labelled = false;  // latency_s is a possible latency
  int64_t timestamp = 0;
  uint64_t program = 0;  // program_hash() of the record
  ProgramFeatures features;
};

struct TaskKey {
  std::string text, canonical;
};

/// `FilePart` holds some lines of one file and their results, a record a line.
struct FilePart {
  const ReadFile* file = nullptr;
  size_t begin = 0, end = 0;  // lines
  std::vector<Extracted> records;
  std::vector<DeviceLabel> labels;
  std::vector<TaskKey> keys;
  std::string target, device;  // record's texts of the last label
};

/// Returns the latency of a record as its label: the mean of the repeats in Ansor's records, the
/// lower quartile in ours. A failed trial has 1e10. An error says why the number can be no latency:
/// 0, negative, below 1 ns, or above 1000 s without an error number.
Result<double> label_of(const Record& record);

/// Returns the hash of a record's steps or decisions, independent of the form of its JSON.
uint64_t program_hash(const Record& record);
/// Returns the task's part in the ids of its programs.
std::string task_identity(const DatasetTask& task);
/// Returns the id of a program: the same wherever its records lie.
uint64_t program_id(const std::string& task_identity, uint64_t program_hash);

/// Fills `part.records`, and the lists that records point into. Parts may be filled in parallel.
void extract_part(const MakeOptions& options, const MakeTools& tools, FilePart& part);

}  // namespace pruner
