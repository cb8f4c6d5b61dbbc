#include "report/task_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace pruner {
namespace {

// Lines of the reference's own output (its tutorial for the A100).
TEST(PrintTaskTable, IsTheReferencesTable) {
  const std::vector<TaskRow> rows = {
      {22.0e-6, 4.0601e6, 30}, {6.0e-6, -1, 10}, {std::nullopt, 1e9, 0}};
  EXPECT_EQ(print_task_table(rows),
            "----------------------------------------------------------------------\n"
            "------------------------------  [ Task Scheduler ]\n"
            "----------------------------------------------------------------------\n"
            "|  ID  | Latency (ms) | Speed (GFLOPS) | Trials |\n"
            "-------------------------------------------------\n"
            "|    0 |        0.022 |         184.55 |     30 |\n"
            "|    1 |        0.006 |          -0.00 |     10 |\n"
            "|    2 |            - |              - |      0 |\n"
            "-------------------------------------------------\n");
}

TEST(PrintTotal, IsTheReferencesLine) {
  EXPECT_EQ(print_total(1.476e-3, 2000, 5563.2, -1),
            "Estimated total latency: 1.476 ms\tTrials: 2000\tUsed time : 5563 s\tNext ID: -1\n");
}

TEST(PrintTotal, ShowsADashUntilEveryTaskHasATime) {
  EXPECT_EQ(print_total(std::nullopt, 0, 0, 3),
            "Estimated total latency: - ms\tTrials: 0\tUsed time : 0 s\tNext ID: 3\n");
}

}  // namespace
}  // namespace pruner
