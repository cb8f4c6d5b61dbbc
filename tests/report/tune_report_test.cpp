#include "report/tune_report.h"

#include <gtest/gtest.h>

namespace pruner {
namespace {

TEST(PrintOutcome, HoldsTheResultAgainstPeakAndFirstRound) {
  TuneOutcome outcome{.total_s = 2e-3, .flops = 4e9, .peak_flops = 8e12};
  EXPECT_EQ(print(outcome), "2.000 ms, 2000.00 GFLOPS: 25 % of the float32 peak");
  outcome.first = CurvePoint{.trials = 30, .seconds = 2, .latency_s = 5e-3};
  EXPECT_EQ(print(outcome),
            "2.000 ms, 2000.00 GFLOPS: 25 % of the float32 peak, 2.50 x as fast as after 30 trials "
            "(5.000 ms)");
}

TEST(PrintOutcome, LeavesOutWhatSaysNothing) {
  // More than the peak: narrower products, or a form with fewer of them.
  EXPECT_EQ(print({.total_s = 2e-3, .flops = 4e9, .peak_flops = 1e12}), "2.000 ms, 2000.00 GFLOPS");
  EXPECT_EQ(print({.total_s = 2e-3, .first = CurvePoint{30, 2, 2e-3}}), "2.000 ms");
}

}  // namespace
}  // namespace pruner
