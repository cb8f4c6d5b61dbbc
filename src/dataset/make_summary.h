// Counts the records that a file of features was made from, by device and by reason.
#pragma once

#include <string>
#include <vector>

#include "record/reasons.h"
#include "support/json.h"

namespace pruner {

/// `DeviceCount` counts the records of one device. `records` is the sum of `kept` and dropped();
/// `valid` and `failed` count records whether they were kept or not.
struct DeviceCount {
  std::string target;
  int64_t records = 0;
  int64_t valid = 0, failed = 0;  // records with a possible time; with an error number
  int64_t bad_label = 0;          // dropped, like all counts down to `beyond`
  int64_t held_out = 0;           // records in tasks that are held out, or were not asked for
  int64_t failed_dropped = 0;     // without keep_failed
  int64_t no_dag = 0, not_rebuilt = 0;
  int64_t duplicates = 0;
  int64_t too_few = 0;  // records in tasks below min_sample_size, or without a valid record
  int64_t beyond = 0;   // records in tasks beyond max_tasks
  int64_t kept = 0, tasks = 0;

  int64_t dropped() const {
    return bad_label + held_out + failed_dropped + no_dag + not_rebuilt + duplicates + too_few +
           beyond;
  }
  void add(const DeviceCount& part);
};

struct MakeSummary {
  std::vector<DeviceCount> devices;
  int64_t files = 0, other_files = 0;  // with records; found in folders and without
  int64_t lines = 0;                   // neither empty nor comments
  int64_t other_targets = 0;           // records of targets that were not chosen
  Reasons unreadable_files;            // packed and torn, without a record, not to be read
  Reasons unreadable, bad_label, no_dag, not_rebuilt;
  int64_t rows = 0;       // rows of features
  double features_s = 0;  // time from the first file to the last program's features

  DeviceCount total() const;
  /// Says why there is nothing to keep, all reasons in one line. `most` is the largest task's
  /// number of programs.
  std::string nothing_kept(int64_t min_sample_size, int64_t most) const;
};

Json to_json(const DeviceCount& count);
/// Returns the summary's devices, their total, and every reason with its count and first place.
Json to_json(const MakeSummary& summary);

}  // namespace pruner
