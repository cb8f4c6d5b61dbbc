#include "space/fragment.h"

#include <gtest/gtest.h>

#include <set>

#include "space/mma.h"
#include "tensor/affine.h"

namespace pruner {
namespace {

struct Cell {
  int lane, v, row, col;
};

void expect_cells(const Fragment& f, std::initializer_list<Cell> cells) {
  for (const Cell& c : cells) {
    EXPECT_EQ(f.row(c.lane, c.v), c.row) << "lane " << c.lane << ", element " << c.v;
    EXPECT_EQ(f.col(c.lane, c.v), c.col) << "lane " << c.lane << ", element " << c.v;
  }
}

const MmaInstruction& row_of(std::string_view shape, DType a, DType sum) {
  return *find_mma_instruction(shape, a, a, sum);
}

// The cells are those of the PTX manual's tables of fragments.
TEST(Fragment, IsAsTheManualHasIt) {
  const MmaInstruction& half = row_of("m16n8k16", DType::kFloat16, DType::kFloat32);
  expect_cells(half.a_fragment(),
               {{0, 0, 0, 0}, {1, 1, 0, 3}, {4, 2, 9, 0}, {0, 4, 0, 8}, {31, 7, 15, 15}});
  expect_cells(half.b_fragment(), {{0, 0, 0, 0}, {5, 1, 1, 3}, {0, 2, 0, 8}, {31, 3, 7, 15}});
  expect_cells(half.sum_fragment(), {{0, 0, 0, 0}, {1, 1, 0, 3}, {0, 2, 8, 0}, {31, 3, 15, 7}});
  const MmaInstruction& small = row_of("m16n8k8", DType::kFloat16, DType::kFloat16);
  expect_cells(small.a_fragment(), {{3, 1, 0, 7}, {3, 2, 8, 6}, {31, 3, 15, 7}});
  const MmaInstruction& tf32 = row_of("m16n8k8", DType::kFloat32, DType::kFloat32);
  expect_cells(tf32.a_fragment(), {{1, 0, 0, 1}, {1, 1, 8, 1}, {1, 2, 0, 5}, {31, 3, 15, 7}});
  expect_cells(tf32.b_fragment(), {{6, 0, 1, 2}, {6, 1, 1, 6}});
  const MmaInstruction& bytes = row_of("m16n8k32", DType::kInt8, DType::kInt32);
  expect_cells(bytes.a_fragment(), {{1, 3, 0, 7}, {1, 4, 8, 4}, {1, 8, 0, 20}, {31, 15, 15, 31}});
  expect_cells(bytes.b_fragment(), {{5, 2, 1, 6}, {5, 4, 1, 20}});
  const MmaInstruction& old = row_of("m8n8k16", DType::kInt8, DType::kInt32);
  expect_cells(old.a_fragment(), {{5, 3, 1, 7}, {31, 3, 7, 15}});
  expect_cells(old.sum_fragment(), {{5, 1, 1, 3}, {31, 1, 7, 7}});
  expect_cells(matrix_fragment(2), {{0, 0, 0, 0}, {6, 1, 1, 5}, {31, 1, 7, 7}});
}

TEST(Fragment, HasEachElementOnce) {
  for (const MmaInstruction& row : mma_instructions()) {
    for (const Fragment& f : {row.a_fragment(), row.b_fragment(), row.sum_fragment()}) {
      std::set<std::pair<int, int>> cells;
      for (int lane = 0; lane < kWarpLanes; ++lane) {
        for (int v = 0; v < f.elements(); ++v) {
          cells.emplace(f.row(lane, v), f.col(lane, v));
          EXPECT_LT(f.row(lane, v), f.rows);
          EXPECT_LT(f.col(lane, v), f.cols);
        }
      }
      EXPECT_EQ(cells.size(), static_cast<size_t>(f.rows * f.cols)) << row.shape;
    }
  }
}

TEST(Fragment, IsTheSameOfExpressions) {
  const Fragment f = {16, 16, 2};
  for (int64_t lane = 0; lane < kWarpLanes; ++lane) {
    for (int64_t v = 0; v < f.elements(); ++v) {
      EXPECT_EQ(*as_int(f.row(Expr(lane), Expr(v))), f.row(lane, v));
      EXPECT_EQ(*as_int(f.col(Expr(lane), Expr(v))), f.col(lane, v));
    }
  }
}

}  // namespace
}  // namespace pruner
