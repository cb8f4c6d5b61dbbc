#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tensor/tensor.h"

namespace pruner {
namespace {

TEST(DTypeRows, StandInTheOrderOfTheirEnumerators) {
  std::set<std::string_view> names;
  for (const DTypeRow& row : kDTypes) {
    EXPECT_EQ(&row_of(row.dtype), &row) << row.name;
    EXPECT_EQ(parse_dtype(row.name), row.dtype);
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
  }
  EXPECT_EQ(std::size(kDTypes), size_t{PRUNER_DTYPE_COUNT});
  EXPECT_FALSE(parse_dtype("float33"));
}

TEST(DTypeRows, IntegersWrapAtTheirRange) {
  for (const DTypeRow& row : kDTypes) {
    if (row.kind == DTypeKind::kFloat) continue;
    const int64_t least = least_int(row.dtype), greatest = greatest_int(row.dtype);
    EXPECT_EQ(wrap_to(row.dtype, least), least) << row.name;
    EXPECT_EQ(wrap_to(row.dtype, greatest), greatest) << row.name;
    Tensor tensor(row.dtype, {2});
    tensor.set_int(0, least);
    tensor.set(1, 1e30);
    EXPECT_EQ(tensor.get_int(0), least) << row.name;
    EXPECT_EQ(tensor.get_int(1), greatest) << row.name;
    if (row.kind == DTypeKind::kBool || row.bits == 64) continue;
    EXPECT_EQ(wrap_to(row.dtype, greatest + 1), least) << row.name;
  }
}

TEST(DTypeRows, FloatsReadBackAndSaturateToInfinity) {
  for (const DTypeRow& row : kDTypes) {
    if (row.kind != DTypeKind::kFloat) continue;
    const double most = greatest_float(row.dtype);
    for (const double value : {0.0, -1.0, 1.5, most, -most})
      EXPECT_EQ(round_to(row.dtype, value), value) << row.name;
    EXPECT_EQ(round_to(row.dtype, most * 1.01), HUGE_VAL) << row.name;
    const double step = std::ldexp(1.0, -row.fraction_bits);
    EXPECT_EQ(round_to(row.dtype, 1 + step), 1 + step) << row.name;
    EXPECT_EQ(round_to(row.dtype, 1 + step / 2), 1) << row.name;  // halves to even
    Tensor tensor(row.dtype, {1});
    tensor.set(0, 1 + step);
    EXPECT_EQ(tensor.get(0), 1 + step) << row.name;
  }
}

TEST(RoundToTf32, KeepsTenBitsOfFraction) {
  const double unit = std::ldexp(1.0, -10), half = unit / 2, little = std::ldexp(1.0, -23);
  EXPECT_EQ(round_to_tf32(1 + half), 1 + unit);
  EXPECT_EQ(round_to_tf32(-1 - half), -1 - unit);
  EXPECT_EQ(round_to_tf32(1 + unit + half), 1 + 2 * unit);
  EXPECT_EQ(round_to_tf32(1 + half - little), 1);
  EXPECT_EQ(round_to_tf32(2 - little), 2);
  EXPECT_TRUE(std::isinf(round_to_tf32(HUGE_VAL)));
  EXPECT_TRUE(std::isnan(round_to_tf32(std::nan(""))));
}

}  // namespace
}  // namespace pruner
