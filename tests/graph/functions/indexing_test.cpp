#include <gmock/gmock.h>

#include "graph/small_graph.h"

namespace pruner {
namespace {

using testing::HasSubstr;
using V = std::vector<double>;

TEST(Hardmax, IsOneAtTheFirstOfTheLargest) {
  const Tensor x = floats({2, 3}, {1, 5, 5, 7, 2, 0});
  EXPECT_EQ(values_of(run_op("Hardmax", {x})), (V{0, 1, 0, 1, 0, 0}));
  EXPECT_EQ(values_of(run_op("Hardmax", {x}, {{"axis", int64_t{0}}})), (V{0, 1, 1, 1, 0, 0}));
}

TEST(EyeLike, HasADiagonal) {
  const Tensor x = floats({2, 3}, {});
  EXPECT_EQ(values_of(run_op("EyeLike", {x})), (V{1, 0, 0, 0, 1, 0}));
  const Tensor above = run_op("EyeLike", {x}, {{"k", int64_t{1}}, {"dtype", int64_t{7}}});
  EXPECT_EQ(above.dtype(), DType::kInt64);
  EXPECT_EQ(values_of(above), (V{0, 1, 0, 0, 0, 1}));
  EXPECT_EQ(values_of(run_op("EyeLike", {x}, {{"k", int64_t{-1}}})), (V{0, 0, 0, 1, 0, 0}));
}

TEST(Dropout, KeepsAll) {
  const Tensor x = floats({2}, {1, 2});
  const std::vector<Tensor> made = run_outputs("Dropout", {x}, 2);
  EXPECT_EQ(values_of(made[0]), (V{1, 2}));
  EXPECT_EQ(made[1].dtype(), DType::kBool);
  EXPECT_EQ(values_of(made[1]), (V{1, 1}));
  const Operand half = Operand::weight(floats({}, {0.5}));
  const Operand yes = Operand::weight(integers({}, {1}, DType::kBool));
  EXPECT_THAT(refusal("Dropout", {x, half, yes}), HasSubstr("training_mode is not supported"));
}

TEST(Compress, TakesWhatAConstantConditionSays) {
  const Tensor x = floats({3, 2}, {1, 2, 3, 4, 5, 6});
  const Operand condition = Operand::weight(integers({3}, {0, 1, 1}, DType::kBool));
  EXPECT_EQ(values_of(run_op("Compress", {x, condition}, {{"axis", int64_t{0}}})), (V{3, 4, 5, 6}));
  EXPECT_EQ(values_of(run_op("Compress", {x, condition})), (V{2, 3}));
}

TEST(Compress, HasRoomForAllAtRunTime) {
  const Tensor x = floats({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor some = integers({3}, {0, 1, 1}, DType::kBool);
  EXPECT_EQ(values_of(run_op("Compress", {x, some}, {{"axis", int64_t{0}}})),
            (V{3, 4, 5, 6, 0, 0}));
  const Tensor columns =
      run_op("Compress", {x, integers({1}, {1}, DType::kBool)}, {{"axis", int64_t{-1}}});
  EXPECT_EQ(columns.shape(), (Ints{3, 1}));
  EXPECT_EQ(values_of(columns), (V{1, 3, 5}));
  EXPECT_EQ(values_of(run_op("Compress", {x, some})), (V{2, 3, 0}));
  EXPECT_THAT(refusal("Compress", {x, some}, {{"axis", int64_t{1}}}),
              HasSubstr("the condition is bool 3, expected bool of at most 2"));
}

TEST(Upsample, RepeatsAsOpset9Did) {
  const Tensor x = floats({1, 1, 1, 2}, {1, 2});
  const Operand scales = Operand::weight(floats({4}, {1, 1, 1, 2}));
  EXPECT_EQ(values_of(run_op("Upsample", {x, scales})), (V{1, 1, 2, 2}));
  EXPECT_EQ(values_of(run_op("Upsample", {x, scales}, {{"mode", std::string("linear")}})),
            (V{1, 1.5, 2, 2}));
}

// A pool's places bring its values back.
TEST(MaxUnpool, UndoesAMaxPool) {
  const Tensor x = floats({1, 1, 4, 4}, {1, 2, 3, 4, 8, 7, 6, 5, 0, 9, 1, 1, 3, 2, 1, 2});
  const Attributes window = {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};
  const std::vector<Tensor> pooled = run_outputs("MaxPool", {x}, 2, window);
  EXPECT_EQ(values_of(pooled[0]), (V{8, 6, 9, 2}));
  EXPECT_EQ(values_of(pooled[1]), (V{4, 6, 9, 15}));
  const Tensor back = run_op("MaxUnpool", {pooled[0], pooled[1]}, window);
  EXPECT_EQ(values_of(back), (V{0, 0, 0, 0, 8, 0, 6, 0, 0, 9, 0, 0, 0, 0, 0, 2}));
  const Tensor larger = run_op("MaxUnpool", {pooled[0], pooled[1], Ints{1, 1, 5, 5}}, window);
  EXPECT_EQ(larger.shape(), (Ints{1, 1, 5, 5}));
  EXPECT_EQ(larger.get(5), 8);
}

TEST(MaxPool, CountsPlacesOverTheWholeInput) {
  const Tensor x = floats({2, 1, 2, 3}, {1, 5, 2, 0, 3, 4, 9, 8, 7, 6, 5, 4});
  Attributes a = {{"kernel_shape", Ints{2, 2}}, {"pads", Ints{1, 0, 0, 0}}};
  EXPECT_EQ(values_of(run_outputs("MaxPool", {x}, 2, a)[1]), (V{1, 1, 1, 1, 6, 7, 6, 7}));
  a["storage_order"] = int64_t{1};  // element h, w of a plane is at h + 2 w
  EXPECT_EQ(values_of(run_outputs("MaxPool", {x}, 2, a)[1]), (V{2, 2, 2, 2, 6, 8, 6, 8}));
}

TEST(LpPools, AreRootsOfSumsOfPowers) {
  const Tensor x = floats({1, 1, 3}, {3, -4, 12});
  const auto pool = [&](int64_t p) {
    return values_of(run_op("LpPool", {x}, {{"kernel_shape", Ints{2}}, {"p", p}}));
  };
  EXPECT_EQ(pool(1), (V{7, 16}));
  EXPECT_THAT(pool(2), testing::Pointwise(testing::DoubleNear(1e-5), V{5, std::sqrt(160.0)}));
  EXPECT_THAT(pool(3),
              testing::Pointwise(testing::DoubleNear(1e-4), V{std::cbrt(91.0), std::cbrt(1792.0)}));
  EXPECT_NEAR(run_op("GlobalLpPool", {x}).get(0), 13, 1e-5);
  EXPECT_NEAR(run_op("GlobalLpPool", {x}, {{"p", int64_t{3}}}).get(0), std::cbrt(1819.0), 1e-4);
}

}  // namespace
}  // namespace pruner
