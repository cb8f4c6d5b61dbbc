#include "graph/small_graph.h"

namespace pruner {
namespace {

TEST(DequantizeBlocks, HasAScaleAndAZeroForEachBlock) {
  const Tensor q = integers({1, 5}, {1, 2, 3, 4, 5}, DType::kUInt8);
  const Tensor zeros = integers({1, 2}, {1, 2}, DType::kUInt8);
  const Tensor found = run_op("DequantizeBlocks",
                              {q, floats({1, 2}, {2, 10}), zeros},
                              {{"axis", int64_t{1}}, {"block_size", int64_t{3}}});
  EXPECT_EQ(values_of(found), (std::vector<double>{0, 2, 4, 20, 30}));
}

TEST(DequantizeBlocks, SaysWhatDoesNotFit) {
  const Tensor q = integers({1, 5}, {1, 2, 3, 4, 5}, DType::kUInt8);
  const Attributes blocks = {{"axis", int64_t{1}}, {"block_size", int64_t{3}}};
  EXPECT_EQ(refusal("DequantizeBlocks", {q, floats({1, 3}, {2, 10, 1})}, blocks),
            "node \"it\": the scale is 1x3, expected 1x2");
  EXPECT_EQ(refusal("DequantizeBlocks", {q, floats({1, 2}, {2, 10})}, {}),
            "node \"it\": block_size is 0, expected 1 or more");
}

TEST(CodedMatMul, TakesHalvesOfBytesTheLowerOneFirst) {
  // The numbers 1, -2, 3, -4 in blocks of two.
  const Operand codes = Operand::weight(integers({2, 1}, {-31, -61}, DType::kInt8));
  const Operand scales = Operand::weight(floats({2, 1}, {10, 1}));
  const Tensor found = run_op("CodedMatMul",
                              {floats({1, 4}, {1, 2, 3, 4}), codes, scales},
                              {{"bits", int64_t{4}}, {"block_size", int64_t{2}}});
  EXPECT_EQ(values_of(found), (std::vector<double>{-30 + 9 - 16}));
  const Tensor moved =
      run_op("CodedMatMul",
             {floats({1, 4}, {1, 2, 3, 4}), codes, scales},
             {{"bits", int64_t{4}}, {"block_size", int64_t{2}}, {"zero", int64_t{1}}});
  EXPECT_EQ(values_of(moved), (std::vector<double>{-30 + 9 - 16 - 30 - 7}));
}

TEST(CodedMatMul, SaysWhatDoesNotFit) {
  const Operand codes = Operand::weight(integers({2, 1}, {1, 2}, DType::kInt8));
  const Operand scales = Operand::weight(floats({1, 1}, {10}));
  const Tensor x = floats({1, 3}, {1, 2, 3});
  EXPECT_EQ(refusal("CodedMatMul", {x, codes, scales}, {{"block_size", int64_t{2}}}),
            "node \"it\": 2 rows of codes in blocks of 2 do not fit 3");
  EXPECT_EQ(refusal("CodedMatMul", {x, codes, scales}, {{"bits", int64_t{3}}}),
            "node \"it\": bits is 3, expected 8 or 4");
}

}  // namespace
}  // namespace pruner
