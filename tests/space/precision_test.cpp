#include "space/precision.h"

#include <set>

#include "space/operator_task.h"

namespace pruner {
namespace {

std::set<std::string> precisions(const std::string& op, const Target& target) {
  const Space space = make_space(operator_task(op, target));
  std::set<std::string> names;
  for (const Sketch& sketch : space.sketches) names.emplace(precision_of(sketch));
  return names;
}

TEST(PrecisionOf, IsTheUnitOrTheTypeOfTheSums) {
  using Names = std::set<std::string>;
  EXPECT_EQ(precisions("dense 32 48 96", test_target()), Names{"float32"});
  EXPECT_EQ(precisions("dense 32 48 96 bits=16 exponent=8", test_target()), Names{"float32"});
  EXPECT_EQ(precisions("dense 32 48 96 bits=8", test_target()), Names{"int32"});
  EXPECT_EQ(precisions("relu 100", test_target()), Names{"float32"});

  Target units = test_target();
  units.dots = {2, 4, 16, 32};
  EXPECT_TRUE(precisions("dense 32 48 96", units).contains("float32"));
  EXPECT_EQ(precisions("dense 32 48 96 bits=16 exponent=8 +gelu", units),
            (Names{"bfloat16", "bfloat16_tile"}));
  EXPECT_EQ(precisions("dense 32 48 96 bits=8 +relu", units), (Names{"int8", "int8_tile"}));
}

TEST(PrecisionOf, IsTheTensorCoreOfAGpu) {
  using Names = std::set<std::string>;
  const Target gpu = *parse_target("cuda --model=a100", 0);
  EXPECT_EQ(precisions("dense 32 48 96", gpu), Names{"float32"});
  EXPECT_EQ(precisions("dense 32 48 96 bits=16", gpu), (Names{"f16_f32", "float32"}));
  EXPECT_EQ(precisions("dense 32 48 96 bits=16 exponent=8 +gelu", gpu), (Names{"bf16", "float32"}));
  EXPECT_EQ(precisions("dense 32 48 96 bits=19 +relu", gpu), (Names{"float32", "tf32"}));
  EXPECT_EQ(precisions("dense 32 48 96 bits=8 +relu", gpu), (Names{"int32", "s8"}));
}

}  // namespace
}  // namespace pruner
