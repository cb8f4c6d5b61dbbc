// A round of a run that has 120 of 1000 trials.
#pragma once

#include "report/progress.h"

namespace pruner {

inline RoundLine some_round() {
  RoundLine line;
  line.summary = {
      .task = 3, .ok = 9, .failed = 1, .explore_s = 0.12, .build_s = 0.34, .measure_s = 1.26};
  line.task_name = "matmul 64 64 64";
  line.best_s = 123e-6;
  line.flops = 56.09e6;
  line.trials = 120;
  line.trial_limit = 1000;
  line.total_s = 41.2e-3;
  line.eta_s = 312;
  return line;
}

}  // namespace pruner
