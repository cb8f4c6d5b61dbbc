// Reports the end of a tuning run: its table, and its summary as JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/task_table.h"
#include "support/json.h"
#include "tune/curve.h"
#include "tune/tune.h"

namespace pruner {

/// Returns a row for each task, in the order of the IDs.
std::vector<TaskRow> task_rows(const Tuner& tuner);

/// "trials", "budget", "early stopping", ...
std::string_view print(TuneEnd end);

/// {"end","estimated_total_latency_ms","trials","used_s","tasks":[{"id","name","key","weight",
/// "latency_ms","gflops","trials","failed"}]}; unknown values are null.
Json tune_summary(const Tuner& tuner, TuneEnd end);

/// `TuneOutcome` is the result of a run, beside the numbers that it may be compared with.
struct TuneOutcome {
  double total_s = 0;     // estimated latency of all tasks
  double flops = 0;       // operations of all tasks
  double peak_flops = 0;  // float32 peak of all cores in use; 0: not known, or says nothing
  std::optional<CurvePoint> first = {};  // first point at which every task had a time
};

/// Returns the outcome of a run whose tasks all have a time. `curve` is the curve of the work dir,
/// earlier runs included.
std::optional<TuneOutcome> tune_outcome(const Tuner& tuner, const TuningCurve& curve);

/// "41.200 ms, 123.45 GFLOPS: 61 % of the float32 peak, 2.1 x as fast as after 30 trials (86.520
/// ms)". A share above 1 (other precisions, forms with fewer operations) is not given.
std::string print(const TuneOutcome& outcome);

/// Says why a run measured nothing: a limit that earlier runs had reached, and the flag that raises
/// it. The text is empty if there is another reason.
std::string nothing_left(TuneEnd end, const TuneOptions& options, const Tuner& tuner);

}  // namespace pruner
