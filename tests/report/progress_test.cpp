#include "report/progress.h"

#include <gtest/gtest.h>

namespace pruner {
namespace {

RoundLine line() {
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

TEST(PrintRound, SaysWhatTheRoundDid) {
  EXPECT_EQ(print(line()),
            "[ 120/1000] task  3: best 0.123 ms, 456.02 GFLOPS; 9 ok, 1 failed; explore 0.1 s, "
            "train 0.0 s, "
            "build 0.3 s, measure 1.3 s; total 41.200 ms; ETA 5:12; matmul 64 64 64");
}

TEST(PrintRound, ShowsWhatIsNotKnownAsDashes) {
  RoundLine unknown = line();
  unknown.best_s = unknown.total_s = unknown.eta_s = std::nullopt;
  unknown.trial_limit = kNoTrialLimit;
  EXPECT_EQ(print(unknown),
            "[ 120] task  3: best -; 9 ok, 1 failed; explore 0.1 s, train 0.0 s, build 0.3 s, "
            "measure 1.3 s; "
            "total -; ETA -; matmul 64 64 64");
}

TEST(LiveLine, WritesLinesWhereThereIsNoTerminal) {
  std::FILE* file = std::tmpfile();
  {
    LiveLine live(file);
    live.show("one");
    live.show("two");
  }
  std::rewind(file);
  char text[16] = {};
  const size_t size = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  EXPECT_EQ(std::string(text, size), "one\ntwo\n");
}

}  // namespace
}  // namespace pruner
