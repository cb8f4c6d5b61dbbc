// A bundle and a device -> records: runs, checks and times the programs in their order, until all
// are measured or the time is up. What the record file has already is not measured again.
#pragma once

#include <atomic>
#include <functional>

#include "bundle/bundle.h"
#include "measure/local_measurer.h"
#include "record/reasons.h"

namespace pruner {

struct MeasureBundleOptions {
  double budget_s = 0;             // no program is begun after it; infinite: all are measured
  std::vector<Record> known = {};  // records that the file has already
};

/// How much of a bundle has been measured.
struct BundleProgress {
  int64_t earlier = 0, ok = 0, failed = 0;  // earlier: in the record file when this run began
  double seconds = 0;                       // time of this run
  bool cut_short = false;                   // the bundle has no end: what comes before is measured
  Reasons reasons;                          // why programs failed

  bool ended = false;  // this run has
  bool whole = false;  // all programs of the bundle are measured

  int64_t measured() const { return ok + failed; }
  double per_second() const { return seconds > 0 ? static_cast<double>(measured()) / seconds : 0; }
};

struct MeasureBundleTools {
  LocalMeasurer& runner;
  RecordWriter& records;
  const std::atomic<bool>& stop;
  std::function<void(const BundleProgress&)> on_result;
};

/// Each record is in the file before the next program begins. Errors: the bundle is damaged, the
/// file cannot be written, or there is no device any more.
Result<BundleProgress> measure_bundle(BundleReader& bundle,
                                      const MeasureBundleOptions& options,
                                      const MeasureBundleTools& tools);

}  // namespace pruner
