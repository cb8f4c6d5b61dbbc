// Records -> the programs that a search over them can choose from, or that a model is judged by: of
// each one what models read of it, its draft score, and what measuring it gave and cost.
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

/// What measuring a program gave.
struct PooledTrial {
  double cost_s = 0;   // kFailedCost: it failed
  double spent_s = 0;  // to build and to run it
};

/// The measured programs of one task on one device, in the order that they are met.
struct PooledTask {
  RecordedTask task;
  std::string name;
  std::string target = {};  // as records have it, with the device where the file's place tells it
  std::vector<ProgramFeatures> features = {};
  std::vector<double> draft_scores = {};  // higher is faster; 0 where there is no draft
  std::vector<uint64_t> programs = {};    // hashes of what was done to the task
  std::vector<PooledTrial> trials = {};
  std::vector<LoopNest> nests = {};  // of our programs, if asked, while their RecordedPrograms live

  size_t size() const { return trials.size(); }
  double best_s() const;  // kFailedCost when all failed
};

/// Records that are no program here: how many, and where the first is.
struct LeftOutRecords {
  int64_t records = 0;
  std::string first;  // "FILE:LINE"
};

struct ProgramPool {
  std::vector<PooledTask> tasks;                   // each has a program that ran
  int64_t repeats = 0;                             // records of a program that is there already
  int64_t hopeless = 0;                            // tasks of which no program ran
  std::map<std::string, LeftOutRecords> left_out;  // by reason
  StreamSummary summary;

  int64_t size() const;
};

struct PoolOptions {
  std::optional<Gpu> gpu =
      {};  // whose numbers the draft takes; nullopt: those of each record's own
  std::optional<DraftForm> form = DraftForm::kOurs;  // nullopt: there are no draft scores
  Penalties penalties = {};                          // that a GPU's draft counts
  bool nests = false;                                // whether tasks keep them
  int jobs = 1;
};

/// A program that was measured several times has its least time; where it was measured again at the
/// end of a run ("final"), the least of these. Errors: a file cannot be read; no program is left.
Result<ProgramPool> read_program_pool(std::span<const RecordPath> files,
                                      RecordedPrograms& programs,
                                      const PoolOptions& options);

}  // namespace pruner
