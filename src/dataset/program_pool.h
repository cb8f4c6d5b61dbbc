// Turns records into the programs that a search over the records can choose from, or that judge a
// model. Each program has its features, its draft score, and the result and cost of measuring.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/draft_form.h"
#include "dataset/recorded_program.h"
#include "record/record_id.h"
#include "record/record_stream.h"

namespace pruner {

/// `PooledTrial` is the measurement of a program.
struct PooledTrial {
  double cost_s = 0;   // kFailedCost: the trial failed
  double spent_s = 0;  // seconds to build and to run the program
};

/// `PooledTask` holds the measured programs of one task on one device, in the records' order.
struct PooledTask {
  RecordedTask task;
  std::string name;
  std::string target = {};  // text in the records, with the device if the file's folder names one
  std::vector<ProgramFeatures> features = {};
  std::vector<double> draft_scores = {};  // higher is faster; 0 if there is no draft
  std::vector<uint64_t> programs = {};    // program_hash() of each program
  std::vector<PooledTrial> trials = {};
  std::vector<LoopNest> nests = {};  // our programs' nests, if asked, while RecordedPrograms live

  size_t size() const { return trials.size(); }
  double best_s() const;  // kFailedCost when all failed
};

/// `LeftOutRecords` counts records that are no program here, and names the first record.
struct LeftOutRecords {
  int64_t records = 0;
  std::string first;  // "FILE:LINE"
};

struct ProgramPool {
  std::vector<PooledTask> tasks;  // each has a program that ran
  int64_t repeats = 0;            // records of a program that is in the pool already
  int64_t hopeless = 0;           // tasks without a program that ran
  std::map<std::string, LeftOutRecords> left_out;  // records by reason
  StreamSummary summary;

  int64_t size() const;
};

struct PoolOptions {
  std::optional<Gpu> gpu = {};  // GPU of the draft's numbers; nullopt: each record's own GPU
  std::optional<DraftForm> form = DraftForm::kOurs;  // nullopt: there are no draft scores
  Penalties penalties = {};                          // penalties that a GPU's draft counts
  bool nests = false;                                // whether tasks keep the loop nests
  int jobs = 1;
};

/// Reads the programs of record files. A program that was measured several times has its least
/// time. If the end of a run measured the program again ("final"), only these times count. Errors:
/// a file cannot be read; no program is left.
Result<ProgramPool> read_program_pool(std::span<const RecordPath> files,
                                      RecordedPrograms& programs,
                                      const PoolOptions& options);

}  // namespace pruner
