// Checks whether records replay: record files and DAGs -> how many of each file's records become a
// loop nest, and why others don't. No line is lost: each is replayed, without a DAG, or counted
// under its reason. The check also counts which records that replay are points of our own space, or
// near one.
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
  int64_t replayed = 0;  // records that replay
  int64_t own = 0;       // ... and are points of our space
  int64_t nearest = 0;   // ... and are no points, but have a legal candidate near them
  int64_t no_dag = 0;    // records whose workload is not known here
  Reasons failed;
  Reasons unknown;                         // why there is no DAG
  Reasons foreign;                         // why a record that replays is no point of ours
  std::map<std::string, int64_t> changed;  // kinds of changes in `nearest` records, with counts
  bool damaged = false;                    // a packed file that ends early
  bool other = false;                      // found in a folder, and holds no records

  int64_t failures() const { return records - replayed - no_dag; }
  /// Returns the share of records with a DAG that replay; 1 if there are no records with a DAG.
  double share() const;
  /// Returns the share of replayed records that have a legal candidate, the same or near; 1 if none
  /// replays.
  double candidate_share() const;
  void add(const ReplayCount& part);
};

Result<ReplayCount> check_replay(const RecordPath& file,
                                 ansor::WorkloadTable& workloads,
                                 ansor::OwnPoints& points,
                                 int jobs);

}  // namespace pruner
