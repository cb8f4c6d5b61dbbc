#include "report/progress.h"

#include <gtest/gtest.h>

#include "round_line.h"

namespace pruner {
namespace {

TEST(PrintRound, SaysFirstWhatOneWaitsFor) {
  EXPECT_EQ(print(some_round()),
            "[ 120/1000] total 41.200 ms, ETA 5:12; 3: matmul 64 64 64, best 123 us, 456.02 "
            "GFLOPS; 9 ok, 1 failed; explore 0.1 s, train 0.0 s, build 0.3 s, measure 1.3 s");
}

TEST(PrintRound, ShowsWhatIsNotKnownAsDashes) {
  RoundLine unknown = some_round();
  unknown.best_s = unknown.total_s = unknown.eta_s = std::nullopt;
  unknown.trial_limit = kNoTrialLimit;
  unknown.run = "seed 0 ansor";
  EXPECT_EQ(print(unknown),
            "seed 0 ansor: [ 120] total -, ETA -; 3: matmul 64 64 64, best -; 9 ok, 1 failed; "
            "explore 0.1 s, train 0.0 s, build 0.3 s, measure 1.3 s");
}

TEST(PrintRound, DropsDetailsWhereThereIsNoRoom) {
  const std::string whole = print_round(some_round());
  EXPECT_EQ(print_round(some_round(), whole.size()), whole);
  EXPECT_EQ(print_round(some_round(), whole.size() - 1),
            "3: matmul 64 64 64, best 123 us, 456.02 GFLOPS; 9 ok, 1 failed");
  EXPECT_EQ(print_round(some_round(), 40), "3: matmul 64 64 64, best 123 us");
  EXPECT_EQ(print_round(some_round(), 16), "3: matmul 64 ...");
  RoundLine again = some_round();
  again.summary.final = true;
  EXPECT_EQ(print_round(again, 47), "3: matmul 64 64 64, best 123 us, measured again");
}

TEST(Eta, IsThePaceOfTheFirstTrials) {
  EXPECT_EQ(eta_s(10, 0, 100), std::nullopt);
  EXPECT_EQ(eta_s(10, 20, 100), 40);
  EXPECT_EQ(eta_s(10, 101, 100), 0);
}

}  // namespace
}  // namespace pruner
