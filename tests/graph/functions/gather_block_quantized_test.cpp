#include "graph/small_graph.h"

namespace pruner {
namespace {

using V = std::vector<double>;

Operand known(Tensor tensor) { return Operand::weight(std::move(tensor)); }

Tensor run(const std::vector<Operand>& operands, Attributes attributes) {
  return run_op("com.microsoft::GatherBlockQuantized", operands, std::move(attributes));
}

const Attributes kBytes = {{"block_size", int64_t{16}}, {"bits", int64_t{4}}};

// Two rows of two elements: codes 9, 8 and 7, 15, whose zero point is 8 unless the call has one.
TEST(GatherBlockQuantized, UnpacksBytes) {
  const Operand data = known(integers({2, 1}, {0x89, 0xf7}, DType::kUInt8));
  const Operand scales = known(floats({2, 1}, {1, 10}));
  const Tensor rows = integers({1, 3}, {1, 0, -1});
  Tensor found = run({data, rows, scales}, kBytes);
  EXPECT_EQ(found.shape(), (Ints{1, 3, 2}));
  EXPECT_EQ(values_of(found), (V{-10, 70, 1, 0, -10, 70}));
  const Operand zeros = known(integers({2, 1}, {7, 5}, DType::kUInt8));
  EXPECT_EQ(values_of(run({data, rows, scales, zeros}, kBytes)), (V{20, 100, 2, 1, 20, 100}));
}

TEST(GatherBlockQuantized, GivesZerosForAnIndexThatNamesNoRow) {
  const Operand data = known(integers({2, 1}, {0x99, 0x99}, DType::kUInt8));
  const Operand scales = known(floats({2, 1}, {1, 1}));
  EXPECT_EQ(values_of(run({data, integers({3}, {2, 0, -3}), scales}, kBytes)),
            (V{0, 0, 1, 1, 0, 0}));
}

// Blocks along the axis that is gathered, and another.
TEST(GatherBlockQuantized, TakesBlocksAlongAnyAxis) {
  const Operand data = known(integers({17, 1}, Ints(17, 3), DType::kInt4));
  const Operand scales = known(floats({2, 1}, {1, 10}));
  const Attributes along = {{"block_size", int64_t{16}}, {"quantize_axis", int64_t{0}}};
  EXPECT_EQ(values_of(run({data, integers({2}, {15, 16}), scales}, along)), (V{3, 30}));
  Attributes columns = along;
  columns["gather_axis"] = int64_t{1};
  EXPECT_EQ(run({data, integers({}, {0}), scales}, columns).shape(), Ints{17});
}

// A scale of floats of few bits may stand for all rows.
TEST(GatherBlockQuantized, ScalesFloatsOfAByte) {
  Tensor bytes(DType::kFloat8E4M3FN, {2, 2});
  const Ints two_and_three = {0, 0, 0x40, 0x44};
  for (int64_t i = 0; i < 4; ++i) bytes.set_int(i, two_and_three[i]);
  const Attributes whole = {{"block_size", int64_t{0}}};
  const Tensor found =
      run({known(bytes), integers({1, 1}, {1}), known(floats({1, 1}, {0.5}))}, whole);
  EXPECT_EQ(found.shape(), (Ints{1, 1, 2}));
  EXPECT_EQ(values_of(found), (V{1, 1.5}));
}

TEST(GatherBlockQuantized, SaysWhatDoesNotFit) {
  const Tensor bytes = integers({2, 1}, {0, 0}, DType::kUInt8), rows = integers({1}, {0});
  const auto why = [&](const std::vector<Operand>& operands, const Attributes& attributes) {
    return refusal("com.microsoft::GatherBlockQuantized", operands, attributes);
  };
  EXPECT_EQ(why({bytes, rows, known(floats({2, 1}, {1, 1}))}, kBytes),
            "node \"it\": data is computed at run time; it has to be a constant");
  EXPECT_EQ(why({known(bytes), rows, known(floats({1, 1}, {1}))}, kBytes),
            "node \"it\": scales are 1x1, expected 2x1");
  EXPECT_EQ(why({known(bytes), rows, known(floats({2, 1}, {1, 1}))}, {{"bits", int64_t{3}}}),
            "node \"it\": bits is 3, expected 2, 4 or 8");
  EXPECT_EQ(why({known(bytes), rows, known(floats({2, 1}, {1, 1}))}, {{"gather_axis", int64_t{1}}}),
            "node \"it\": data of uint8 need gather_axis 0 and quantize_axis 1, found 1 and 1");
}

}  // namespace
}  // namespace pruner
