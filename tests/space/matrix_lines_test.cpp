#include "space/matrix_lines.h"

#include <gtest/gtest.h>

#include <set>

#include "tensor/affine.h"

namespace pruner {
namespace {

// PTX: in lines of 128 bytes, bits 4 to 6 of an address are exchanged with its bits 7 to 9; in
// lines of 64 two of them, of 32 one.
int64_t exchanged(int64_t address, int64_t line_bytes) {
  return address ^ ((address >> 7 & (line_bytes / 16 - 1)) << 4);
}

TEST(MatrixLines, AreExchangedAsTheManualHasIt) {
  for (const int64_t bytes : {1, 2, 4}) {
    for (const int64_t line_bytes : {16, 32, 64, 128}) {
      ASSERT_TRUE(is_group_line(line_bytes, true));
      const int64_t width = line_bytes / bytes;
      for (int64_t line = 0; line < 24; ++line) {
        for (int64_t at = 0; at < width; ++at) {
          const int64_t place = swizzled(line, at, width, bytes);
          EXPECT_EQ((line * width + place) * bytes,
                    exchanged((line * width + at) * bytes, line_bytes));
          EXPECT_EQ(*as_int(simplify(swizzled(Expr(line), Expr(at), width, bytes), {})), place);
        }
      }
    }
  }
}

TEST(MatrixLines, KeepTheirElements) {
  for (const int64_t width : {8, 24, 40, 64, 128, 200}) {
    for (int64_t line = 0; line < 9; ++line) {
      std::set<int64_t> places;
      for (int64_t at = 0; at < width; ++at) places.insert(swizzled(line, at, width, 2));
      EXPECT_EQ(places.size(), static_cast<size_t>(width));
      EXPECT_EQ(*places.rbegin(), width - 1);
    }
  }
}

TEST(MatrixLines, HaveTheMostRowsThatDivideAGroups) {
  EXPECT_EQ(group_line_rows(64, 2), 64);
  EXPECT_EQ(group_line_rows(256, 2), 64);
  EXPECT_EQ(group_line_rows(96, 2), 32);
  EXPECT_EQ(group_line_rows(48, 2), 16);
  EXPECT_EQ(group_line_rows(24, 2), 8);
  EXPECT_FALSE(is_group_line(256, true));
  EXPECT_FALSE(is_group_line(16, false));
}

}  // namespace
}  // namespace pruner
