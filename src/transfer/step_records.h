// Ansor's records -> records of ours: the best of each task replayed, and the candidate nearest to
// it for the operator that its DAG computes, on the target at hand. What became of them is counted.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ansor/own_operator.h"
#include "ansor/workload_table.h"
#include "record/record.h"

namespace pruner {

/// Counts the outcomes of a file's records.
struct SourceCounts {
  int64_t records = 0;
  std::map<std::string, int64_t> elsewhere;  // records of another kind of device, by backend
  int64_t failed = 0;                        // records without a valid time
  int64_t tasks = 0;                         // tasks of the other records
  int64_t same = 0;                          // tasks whose best program is a candidate
  int64_t nearest = 0;                       // tasks whose best has a legal candidate near it
  std::map<std::string, int64_t> changed;    // changes in `nearest`, and in how many tasks
  std::map<std::string, int64_t> unusable;   // reasons of the other tasks, and how many

  void add(const SourceCounts& part);
  /// "5056 records, 4487 failed; the best of 9 tasks: 0 as recorded, 9 as the nearest candidate
  /// (chunk 3, tiles 8)", and why others are none.
  std::string print() const;
};

/// Returns the first word of a target text: "llvm", "cuda", "rocm".
std::string backend_of(std::string_view target);
/// Whether a record is of a device like the target: a CPU, or a GPU.
bool same_kind(const Record& record, const Target& target);

class StepRecords {
 public:
  StepRecords(ansor::WorkloadTable& workloads, Target target)
      : workloads_(workloads), target_(std::move(target)) {}

  /// Returns for each task the record of ours that its fastest usable record becomes.
  std::vector<Record> read(const std::vector<Record>& records, SourceCounts& counts);

 private:
  /// Holds an operator as our task, made once.
  struct OwnTask {
    Task task;
    Space space;
    ansor::OwnOperator analysed;
  };
  Result<Record> to_own(const Record& record, SourceCounts& counts);
  const OwnTask* own_task(const ansor::OwnOperator& found);

  ansor::WorkloadTable& workloads_;
  const Target target_;
  std::map<std::string, std::unique_ptr<OwnTask>> tasks_;  // keys: texts; null: no operator of ours
};

}  // namespace pruner
