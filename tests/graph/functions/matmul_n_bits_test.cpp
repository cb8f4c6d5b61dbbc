#include "graph/small_graph.h"

namespace pruner {
namespace {

Attributes sizes(int64_t k, int64_t n, int64_t bits, int64_t block) {
  return {{"K", k}, {"N", n}, {"bits", bits}, {"block_size", block}};
}

Operand bytes(std::vector<int64_t> shape, Ints values) {
  return Operand::weight(integers(std::move(shape), std::move(values), DType::kUInt8));
}

// The rows of the matrix, of an identity's product.
Tensor identity(int64_t n) {
  Tensor tensor(DType::kFloat32, {n, n});
  for (int64_t i = 0; i < n; ++i) tensor.set(i * n + i, 1);
  return tensor;
}

TEST(MatMulNBits, UnpacksHalfBytesFromTheLowerOnes) {
  // Elements 0, 1, ..., 15 of one column, two blocks of 8 with scales of 1 and 10.
  const Operand weights = bytes({1, 2, 4}, {0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe});
  const Operand scales = Operand::weight(floats({1, 2}, {1, 10}));
  const auto element = [&](int64_t i, double zero) {
    return (static_cast<double>(i) - zero) * (i < 8 ? 1 : 10);
  };
  const auto expect = [&](const std::vector<Operand>& operands, double first, double second) {
    const Tensor found = run_op("com.microsoft::MatMulNBits", operands, sizes(16, 1, 4, 8));
    for (int64_t i = 0; i < 16; ++i) EXPECT_EQ(found.get(i), element(i, i < 8 ? first : second));
  };
  expect({identity(16), weights, scales}, 8, 8);
  expect({identity(16), weights, scales, bytes({1}, {0x31})}, 1, 3);
  expect({identity(16), weights, scales, Operand::weight(floats({1, 2}, {0.5, 2}))}, 0.5, 2);
}

TEST(MatMulNBits, CutsTheLastBlockAndAddsABias) {
  Ints values;
  for (int64_t i = 0; i < 16; ++i) values.push_back(128 + i);
  const Operand weights = bytes({2, 1, 8}, values), scales = Operand::weight(floats({2}, {1, 2}));
  const Tensor found =
      run_op("com.microsoft::MatMulNBits",
             {identity(3), weights, scales, Operand::none(), Operand::none(), floats({2}, {0, 1})},
             sizes(3, 2, 8, 8));
  EXPECT_EQ(values_of(found), (std::vector<double>{0, 17, 1, 19, 2, 21}));
}

TEST(MatMulNBits, SaysWhichOfItsInputsDoesNotFit) {
  const Operand weights = bytes({1, 1, 4}, {0, 0, 0, 0}),
                scales = Operand::weight(floats({2}, {1, 2}));
  EXPECT_EQ(
      refusal("com.microsoft::MatMulNBits", {identity(8), weights, scales}, sizes(8, 1, 4, 8)),
      "node \"it\": scales is 2, expected 1 elements");
  EXPECT_EQ(refusal("com.microsoft::MatMulNBits",
                    {identity(8), weights, floats({1}, {1})},
                    sizes(8, 1, 4, 8)),
            "node \"it\": scales is computed at run time; it has to be a constant");
  EXPECT_EQ(
      refusal("com.microsoft::MatMulNBits", {identity(8), weights, scales}, sizes(8, 1, 3, 8)),
      "node \"it\": bits is 3, expected 2, 4 or 8");
  EXPECT_EQ(
      refusal("com.microsoft::MatMulNBits", {identity(8), weights, scales}, sizes(8, 1, 4, 9)),
      "node \"it\": K 8, N 1 and block_size 9 say no matrix");
  const Operand floats_of_4 = Operand::weight(floats({1, 1, 4}, {0, 0, 0, 0}));
  EXPECT_EQ(
      refusal("com.microsoft::MatMulNBits", {identity(8), floats_of_4, scales}, sizes(8, 1, 4, 8)),
      "node \"it\": B is float32, expected uint8");
}

// Large enough for the network to hold the codes, and with more rows of data than they are kept
// for.
TEST(MatMulNBits, ComputesTheSameFromCodesAndFromFloats) {
  constexpr int64_t kN = 70, kBlocks = 3;
  for (const int64_t bits : {2, 4, 8}) {
    Ints values, zeros;
    for (int64_t i = 0; i < kN * kBlocks * 32 * bits / 8; ++i) values.push_back(i * 37 % 256);
    for (int64_t i = 0; i < kN * ((kBlocks * bits + 7) / 8); ++i) zeros.push_back(i * 11 % 256);
    const auto n = static_cast<int64_t>(zeros.size());
    std::vector<double> scales;
    for (int64_t i = 0; i < kN * kBlocks; ++i) scales.push_back(0.01 + 0.001 * (i % 7));
    const std::vector<Operand> operands = {bytes({kN, kBlocks, 4 * bits}, values),
                                           Operand::weight(floats({kN * kBlocks}, scales)),
                                           bytes({n}, zeros)};
    const auto run = [&](int64_t rows) {
      return run_op("com.microsoft::MatMulNBits",
                    {waves({rows, 96}), operands[0], operands[1], operands[2]},
                    sizes(96, kN, bits, 32));
    };
    const Tensor few = run(2), many = run(9);
    for (int64_t i = 0; i < few.num_elements(); ++i) EXPECT_NEAR(few.get(i), many.get(i), 1e-3);
  }
}

// 16 rows of two blocks with scales of 1 and 10, whose codes are their row's number.
TEST(MatMulNBits, TakesTheBlockOfEachRowFromItsGroupIndex) {
  const Operand weights = bytes({1, 2, 4}, {0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe});
  const Operand scales = Operand::weight(floats({1, 2}, {1, 10})), zeros = bytes({1}, {0x31});
  const auto expect = [&](Ints groups) {
    const Operand index = Operand::weight(integers({16}, groups, DType::kInt32));
    const Tensor found = run_op("com.microsoft::MatMulNBits",
                                {identity(16), weights, scales, zeros, index},
                                sizes(16, 1, 4, 8));
    for (int64_t i = 0; i < 16; ++i) {
      const double row = static_cast<double>(i);
      EXPECT_EQ(found.get(i), groups[i] == 0 ? row - 1 : (row - 3) * 10);
    }
  };
  expect({0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1});
  expect({1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0});  // whole blocks in another order
  expect({1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1});  // blocks of other sizes
}

TEST(MatMulNBits, RefusesAGroupThatIsNotThere) {
  const Operand weights = bytes({1, 1, 4}, {0, 0, 0, 0}),
                scales = Operand::weight(floats({1}, {1}));
  const Operand index = Operand::weight(integers({8}, {0, 0, 0, 1, 0, 0, 0, 0}, DType::kInt32));
  EXPECT_EQ(refusal("com.microsoft::MatMulNBits",
                    {identity(8), weights, scales, Operand::none(), index},
                    sizes(8, 1, 4, 8)),
            "node \"it\": g_idx is 1 at row 3, expected 0 to 0");
}

Attributes bnb4(int64_t k, int64_t n, int64_t type) {
  return {{"K", k}, {"N", n}, {"block_size", int64_t{16}}, {"quant_type", type}};
}

// The upper half of a byte comes first. B is [N, K]: its product is with B turned, or with B.
TEST(MatMulBnb4, StandsForPartsOfTheGreatestOfEachBlock) {
  const Operand codes = bytes({3}, {0x01, 0x3b, 0x55}), largest = Operand::weight(floats({1}, {2}));
  const auto run = [&](const Tensor& a, Attributes attributes) {
    return values_of(run_op("com.microsoft::MatMulBnb4", {a, codes, largest}, attributes));
  };
  const double tiny = 2.0 / 192;
  const Tensor found =
      run_op("com.microsoft::MatMulBnb4", {identity(3), codes, largest}, bnb4(3, 2, 0));
  expect_near(found, floats({3, 2}, {0, -2, tiny, 1, 2, 1}));
  Attributes straight = bnb4(3, 2, 0);
  straight["transB"] = int64_t{0};
  expect_near(run_op("com.microsoft::MatMulBnb4", {identity(2), codes, largest}, straight),
              floats({2, 3}, {0, tiny, 2, -2, 1, 1}));
  EXPECT_NEAR(run(identity(3), bnb4(3, 2, 1))[0], -2, 1e-6);  // NF4
  EXPECT_NEAR(run(identity(3), bnb4(3, 2, 1))[1], 2 * 0.33791524, 1e-6);
}

TEST(MatMulBnb4, SaysWhichOfItsInputsDoesNotFit) {
  const Operand codes = bytes({2}, {0, 0}), largest = Operand::weight(floats({1}, {1}));
  EXPECT_EQ(refusal("com.microsoft::MatMulBnb4", {identity(3), codes, largest}, bnb4(3, 2, 0)),
            "node \"it\": B is 2, expected 3 elements");
  EXPECT_EQ(refusal("com.microsoft::MatMulBnb4", {identity(2), codes, largest}, bnb4(2, 2, 2)),
            "node \"it\": quant_type is 2, expected 0 (FP4) or 1 (NF4)");
  EXPECT_EQ(
      refusal("com.microsoft::MatMulBnb4", {identity(2), codes, floats({1}, {1})}, bnb4(2, 2, 0)),
      "node \"it\": absmax is computed at run time; it has to be a constant");
}

}  // namespace
}  // namespace pruner
