// Whether records replay: record files and DAGs -> how many of each file's records become a loop
// nest, and why others don't. No line is lost: each is replayed, without a DAG, or counted under
// its reason. Of those that replay: how many are also points of our own space, or near one.
#pragma once

#include <map>
#include <string>

#include "ansor/own_points.h"
#include "ansor/workload_table.h"
#include "record/reasons.h"
#include "record/record_paths.h"

namespace pruner {

struct ReplayCount {
  std::string path;
  int64_t records = 0;   // lines that are neither empty nor comments
  int64_t replayed = 0;  // of them
  int64_t own = 0;       // ... that are points of our space
  int64_t nearest = 0;   // ... that are none, but have a legal candidate near them
  int64_t no_dag = 0;    // of the records: whose workload is not known here
  Reasons failed;
  Reasons unknown;                         // why there is no DAG
  Reasons foreign;                         // why one that replays is no point of ours
  std::map<std::string, int64_t> changed;  // of `nearest`: what, and in how many
  bool damaged = false;                    // a packed file that ends early
  bool other = false;                      // found in a folder, and holds no records

  int64_t failures() const { return records - replayed - no_dag; }
  /// Of those with a DAG; 1 where there are none.
  double share() const;
  /// Of those that replay: which have a legal candidate, the same or near; 1 where there are none.
  double candidate_share() const;
  void add(const ReplayCount& part);
};

Result<ReplayCount> check_replay(const RecordPath& file,
                                 ansor::WorkloadTable& workloads,
                                 ansor::OwnPoints& points,
                                 int jobs);

}  // namespace pruner
