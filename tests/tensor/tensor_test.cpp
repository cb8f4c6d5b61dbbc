#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <cmath>

namespace pruner {
namespace {

TEST(Tensor, StartsAlignedAndZero) {
  const Tensor t(DType::kFloat32, {3, 5});
  EXPECT_EQ(t.num_elements(), 15);
  EXPECT_EQ(t.bytes(), 60);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % 64, 0u);
  for (float v : t.values<float>()) EXPECT_EQ(v, 0);
  EXPECT_EQ(Tensor().num_elements(), 0);
  EXPECT_EQ(Tensor(DType::kInt8, {}).num_elements(), 1);
  EXPECT_EQ(Tensor(DType::kInt8, {0, 3}).num_elements(), 0);
}

TEST(Tensor, ReadsBackWhatEveryTypeHolds) {
  for (DType dtype :
       {DType::kFloat32, DType::kFloat16, DType::kInt64, DType::kInt32, DType::kInt8}) {
    Tensor t(dtype, {2});
    t.set(0, -5);
    t.set_int(1, 7);
    EXPECT_EQ(t.get(0), -5) << dtype_name(dtype);
    EXPECT_EQ(t.get_int(0), -5);
    EXPECT_EQ(t.get(1), 7);
  }
  Tensor flags(DType::kBool, {2});
  flags.set(0, 0.25);
  EXPECT_EQ(flags.get_int(0), 1);
  EXPECT_EQ(flags.get_int(1), 0);
  Tensor wide(DType::kInt64, {1});
  wide.set_int(0, (int64_t{1} << 62) + 1);
  EXPECT_EQ(wide.get_int(0), (int64_t{1} << 62) + 1);
}

TEST(Tensor, SaturatesFloatsInIntegers) {
  Tensor t(DType::kInt8, {3});
  t.set(0, 1000);
  t.set(1, -1000);
  t.set(2, std::nan(""));
  EXPECT_EQ(t.get_int(0), 127);
  EXPECT_EQ(t.get_int(1), -128);
  EXPECT_EQ(t.get_int(2), 0);
}

TEST(Tensor, SharesOnCopyAndCopiesOnClone) {
  Tensor t(DType::kFloat32, {2, 3});
  const Tensor shared = t.reshaped({6});
  const Tensor copy = t.clone();
  t.set(5, 9);
  EXPECT_EQ(shared.get(5), 9);
  EXPECT_EQ(shared.shape(), std::vector<int64_t>{6});
  EXPECT_EQ(copy.get(5), 0);
}

TEST(TensorDeathTest, ReshapeKeepsTheNumberOfElements) {
  EXPECT_DEATH(Tensor(DType::kFloat32, {4}).reshaped({5}),
               "a reshape keeps the number of elements");
}

TEST(Float16, EveryFiniteHalfReadsBack) {
  for (int bits = 0; bits < 1 << 16; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    if ((half & 0x7c00) == 0x7c00 && (half & 0x3ff)) continue;  // not a number
    EXPECT_EQ(encode_float(DType::kFloat16, decode_float(DType::kFloat16, half)), half);
  }
  EXPECT_TRUE(std::isnan(round_to(DType::kFloat16, std::nan(""))));
}

TEST(Float16, RoundsHalvesToEven) {
  EXPECT_EQ(round_to(DType::kFloat16, 2049), 2048);
  EXPECT_EQ(round_to(DType::kFloat16, 2051), 2052);
  EXPECT_EQ(round_to(DType::kFloat16, 65519), 65504);
  EXPECT_EQ(round_to(DType::kFloat16, 65520), HUGE_VAL);
  EXPECT_EQ(round_to(DType::kFloat16, 0x1p-25), 0);
  EXPECT_EQ(round_to(DType::kFloat16, 0x1.8p-25), 0x1p-24);
}

}  // namespace
}  // namespace pruner
