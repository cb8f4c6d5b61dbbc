#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>
#include <utility>

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
  for (const DTypeRow& row : kDTypes) {
    if (row.kind == DTypeKind::kBool) continue;
    const bool has_sign = row.kind == DTypeKind::kInt || row.kind == DTypeKind::kFloat;
    const int64_t value = has_sign ? (row.bits < 8 ? -2 : -5) : row.bits < 8 ? 3 : 250;
    Tensor t(row.dtype, {2});
    t.set(0, static_cast<double>(value));
    t.set_int(1, 1);
    EXPECT_EQ(t.get(0), value) << row.name;
    EXPECT_EQ(t.get_int(0), value);
    EXPECT_EQ(t.get(1), 1);
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

TEST(Tensor, ViewsWhatItsOwnerKeeps) {
  auto owner = std::make_shared<const std::vector<float>>(std::vector<float>{1, 2, 3, 4});
  const std::weak_ptr<const std::vector<float>> kept = owner;
  const float* data = owner->data();
  std::optional<Tensor> view = Tensor::view(DType::kFloat32, {3}, std::move(owner), data + 1);
  std::optional<Tensor> other = view->reshaped({3, 1});
  EXPECT_EQ(std::as_const(*other).data(), data + 1);
  EXPECT_EQ(other->get(2), 4);
  view.reset();
  EXPECT_FALSE(kept.expired()) << "a copy keeps the owner too";
  other.reset();
  EXPECT_TRUE(kept.expired());
}

TEST(Tensor, CopiesAViewThatIsWritten) {
  const std::vector<float> bytes = {1, 2};
  const Tensor view = Tensor::view(DType::kFloat32, {2}, nullptr, bytes.data());
  Tensor written = view;
  written.set(0, 9);
  EXPECT_EQ(written.get(0), 9);
  EXPECT_EQ(written.get(1), 2);
  EXPECT_EQ(view.get(0), 1);
  EXPECT_EQ(bytes[0], 1);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(view.clone().data()) % 64, 0u);
}

TEST(Tensor, SaysWhereElementsMayLie) {
  alignas(8) const char bytes[16] = {};
  EXPECT_TRUE(Tensor::is_aligned(DType::kInt8, bytes + 1));
  EXPECT_FALSE(Tensor::is_aligned(DType::kFloat32, bytes + 2));
  EXPECT_TRUE(Tensor::is_aligned(DType::kFloat32, bytes + 4));
  EXPECT_FALSE(Tensor::is_aligned(DType::kInt64, bytes + 4));
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

TEST(NarrowFloats, EveryValueReadsBack) {
  for (const DTypeRow& row : kDTypes) {
    if (!is_narrow_float(row.dtype)) continue;
    for (uint32_t bits = 0; bits < 1u << row.bits; ++bits) {
      const double value = decode_float(row.dtype, bits);
      if (!std::isnan(value)) {
        ASSERT_EQ(encode_float(row.dtype, value), bits) << row.name;
      }
    }
    EXPECT_TRUE(std::isnan(round_to(row.dtype, std::nan("")))) << row.name;
  }
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
