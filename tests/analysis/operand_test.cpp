#include "analysis/operand.h"

#include <gtest/gtest.h>

namespace pruner {
namespace {

// Rows of a matrix by its columns, as a matmul's register tile walks along k: 8 rows of A, a line
// of each for 16 steps; a line of B for each step.
TEST(FetchedBytes, IterationsOfTheLoopThatDoesNotFitShareLines) {
  const std::vector<SurroundingLoop> loops = {{0, 4, 8}, {1, 512, 1}};
  const Operand a{{4 * 16384.0, 16384, 512}, {true, true}};
  const Operand b{{32768, 32768, 64}, {false, true}};
  const std::vector<Operand> both = {a, b};
  EXPECT_DOUBLE_EQ(fetched_bytes(both, loops, 24576), 4 * 16384 + 4 * 32768);
  EXPECT_DOUBLE_EQ(fetched_bytes(both, loops, 65536), 4 * 16384 + 32768);
}

}  // namespace
}  // namespace pruner
