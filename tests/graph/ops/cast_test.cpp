// Casts between the element types, as ONNX's Cast and BitCast have them.
#include <gmock/gmock.h>

#include <bit>

#include "graph/small_graph.h"

namespace pruner {
namespace {

using testing::HasSubstr;
using V = std::vector<double>;

Tensor cast_to(DType to, const Tensor& x, Attributes attributes = {}) {
  attributes["to"] = std::string(dtype_name(to));
  return run_op("Cast", {x}, std::move(attributes));
}

Tensor of(DType dtype, const V& values) {
  Tensor tensor(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) tensor.set(static_cast<int64_t>(i), values[i]);
  return tensor;
}

TEST(Cast, KeepsTheLowBitsOfIntegers) {
  const Tensor x = integers({5}, {200, -1, 65537, int64_t{1} << 32, INT64_MIN});
  EXPECT_EQ(values_of(cast_to(DType::kInt8, x)), (V{-56, -1, 1, 0, 0}));
  EXPECT_EQ(values_of(cast_to(DType::kUInt16, x)), (V{200, 65535, 1, 0, 0}));
  EXPECT_EQ(values_of(cast_to(DType::kUInt32, x)), (V{200, 0x1.fffffffep31, 65537, 0, 0}));
  EXPECT_EQ(values_of(cast_to(DType::kUInt64, x)), (V{200, 0x1p64, 65537, 0x1p32, 0x1p63}));
  EXPECT_EQ(values_of(cast_to(DType::kInt4, x)), (V{-8, -1, 1, 0, 0}));
  EXPECT_EQ(values_of(cast_to(DType::kUInt2, x)), (V{0, 3, 1, 0, 0}));
  const Tensor far = of(DType::kFloat64, {0x1p63, 0x1.8p63, 5, 0.5, 1e19});
  EXPECT_EQ(values_of(cast_to(DType::kUInt64, far)), (V{0x1p63, 0x1.8p63, 5, 0, 1e19}));
  EXPECT_EQ(values_of(cast_to(DType::kFloat64, cast_to(DType::kUInt64, far))),
            (V{0x1p63, 0x1.8p63, 5, 0, 1e19}));
}

// The number 1 + 2^-11 + 2^-40 would be half way if rounded to float32 first, and become 1.
TEST(Cast, RoundsDoublesOnce) {
  const double above = 1 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(values_of(cast_to(DType::kFloat16, of(DType::kFloat64, {above, -above, 1e300}))),
            (V{1 + 0x1p-10, -1 - 0x1p-10, HUGE_VAL}));
  EXPECT_EQ(values_of(cast_to(DType::kBFloat16, of(DType::kFloat64, {1 + 0x1p-8 + 0x1p-40}))),
            (V{1 + 0x1p-7}));
}

TEST(Cast, OfFloatsOfAByteSaturatesOrNot) {
  const Tensor x = floats({6}, {448, 464.5, -1e9, -0.0, 0.0009765625, 17});
  const auto codes = [&](DType to, int64_t saturate) {
    return values_of(cast_to(to, x, {{"saturate", saturate}}));
  };
  EXPECT_EQ(codes(DType::kFloat8E4M3FN, 1), (V{0x7e, 0x7e, 0xfe, 0x80, 0, 0x58}));
  EXPECT_EQ(codes(DType::kFloat8E4M3FN, 0), (V{0x7e, 0x7f, 0xff, 0x80, 0, 0x58}));
  EXPECT_EQ(codes(DType::kFloat8E4M3FNUZ, 0), (V{0x80, 0x80, 0x80, 0, 1, 0x60}));
  EXPECT_EQ(codes(DType::kFloat8E5M2, 0), (V{0x5f, 0x5f, 0xfc, 0x80, 0x14, 0x4c}));
  EXPECT_EQ(codes(DType::kFloat4E2M1, 1), (V{7, 7, 15, 8, 0, 7}));
  const Tensor again = cast_to(DType::kFloat32, cast_to(DType::kFloat8E4M3FN, x));
  EXPECT_EQ(values_of(again), (V{448, 448, -448, 0, 0, 16}));
  const Tensor powers = cast_to(DType::kFloat8E8M0, x, {{"round_mode", std::string("down")}});
  EXPECT_EQ(powers.get_int(0), 127 + 8);
  EXPECT_THAT(
      refusal(
          "Cast", {x}, {{"to", std::string("float8e8m0")}, {"round_mode", std::string("even")}}),
      HasSubstr("attribute \"round_mode\" is even, expected up, down or nearest"));
}

TEST(Cast, GoesBetweenCodesAndIntegers) {
  const Tensor whole = integers({4}, {0, 3, -6, 100}, DType::kInt32);
  const Tensor codes = cast_to(DType::kFloat4E2M1, whole);
  EXPECT_EQ(values_of(codes), (V{0, 5, 15, 7}));
  EXPECT_EQ(values_of(cast_to(DType::kInt4, codes)), (V{0, 3, -6, 6}));
  EXPECT_EQ(values_of(cast_to(DType::kFloat8E5M2, codes)), (V{0, 0x42, 0xc6, 0x46}));
  EXPECT_EQ(values_of(cast_to(DType::kBool, codes)), (V{0, 1, 1, 1}));
}

TEST(BitCast, KeepsTheBits) {
  const Tensor x = floats({3}, {1, -2.5, 0});
  const auto bit_cast_to = [](DType to, const Tensor& from) {
    return run_op("BitCast", {from}, {{"to", std::string(dtype_name(to))}});
  };
  const Tensor bits = bit_cast_to(DType::kInt32, x);
  EXPECT_EQ(values_of(bits), (V{0x3f800000, std::bit_cast<int32_t>(-2.5f), 0}));
  EXPECT_EQ(values_of(bit_cast_to(DType::kFloat32, bits)), values_of(x));
  const Tensor half = bit_cast_to(DType::kUInt16, of(DType::kFloat16, {1, -2}));
  EXPECT_EQ(values_of(half), (V{0x3c00, 0xc000}));
  EXPECT_EQ(values_of(bit_cast_to(DType::kBFloat16, half)).size(), 2u);
  const Tensor nibbles = integers({3}, {-1, 3, -8}, DType::kInt4);
  EXPECT_EQ(values_of(bit_cast_to(DType::kUInt4, nibbles)), (V{15, 3, 8}));
  EXPECT_THAT(refusal("BitCast", {x}, {{"to", std::string("float64")}}),
              HasSubstr("a float32 has 32 bits, a float64 64"));
}

TEST(CastLike, HandsOnHowToRound) {
  const Tensor x = floats({1}, {1e9}), like(DType::kFloat8E5M2, {1});
  EXPECT_EQ(values_of(run_op("CastLike", {x, like}, {{"saturate", int64_t{0}}})), (V{0x7c}));
  EXPECT_EQ(values_of(run_op("CastLike", {x, like})), (V{0x7b}));
}

TEST(Codes, AreMovedAndRefusedElsewhere) {
  for (const DType dtype : {DType::kFloat8E4M3FN, DType::kInt4, DType::kUInt2}) {
    const Tensor x = integers({2, 2}, {0, 1, 1, 0}, dtype);
    const Tensor y = run_op("Concat", {x, run_op("Transpose", {x})}, {{"axis", int64_t{0}}});
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_EQ(values_of(y), (V{0, 1, 1, 0, 0, 1, 1, 0}));
    EXPECT_THAT(
        refusal("Add", {x, x}),
        HasSubstr("Add of " + std::string(dtype_name(dtype)) + ", which is only moved and cast"));
  }
}

}  // namespace
}  // namespace pruner
