#include "report/top_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace pruner {
namespace {

using testing::ElementsAre;

Tensor tensor(std::vector<int64_t> shape, const std::vector<double>& values) {
  Tensor made(DType::kFloat32, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) made.set(static_cast<int64_t>(i), values[i]);
  return made;
}

TEST(TopValues, AreTheLargestOfEachRow) {
  const std::vector<TopRow> rows = top_values(tensor({2, 1, 4}, {1, 4, 2, 4, -1, -2, -3, -4}), 2);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_THAT(rows[0].indices, ElementsAre(1, 3));
  EXPECT_THAT(rows[0].values, ElementsAre(4, 4));
  EXPECT_THAT(rows[1].row, ElementsAre(1, 0));
  EXPECT_THAT(rows[1].indices, ElementsAre(0, 1));
}

TEST(TopValues, HaveNaNLastAndAllOfShortRows) {
  const std::vector<TopRow> rows = top_values(tensor({3}, {std::nan(""), 1, 2}), 5);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_TRUE(rows[0].row.empty());
  EXPECT_THAT(rows[0].indices, ElementsAre(2, 1, 0));
}

TEST(TopValues, OfAScalarAndOfNothing) {
  EXPECT_THAT(top_values(tensor({}, {7}), 3)[0].values, ElementsAre(7));
  EXPECT_TRUE(top_values(tensor({2, 0}, {}), 3).empty());
}

TEST(PrintTop, ShowsTenRows) {
  const TensorSpec spec{"y", DType::kFloat32, {12, 2}};
  const std::vector<TopRow> rows = top_values(tensor({12, 2}, {0.25, 3}), 1);
  const std::string text = print_top(spec, rows);
  EXPECT_TRUE(text.starts_with("y float32 12x2\n  [0]: 1 3\n  [1]: 0 0\n")) << text;
  EXPECT_TRUE(text.ends_with("  [9]: 0 0\n  and 2 more rows\n")) << text;
  EXPECT_EQ(top_json(rows)[0], (Json{{"row", {0}}, {"indices", {1}}, {"values", {3.0}}}));
}

}  // namespace
}  // namespace pruner
