// The records that come with the program.
#include "transfer/shipped.h"

#include <gtest/gtest.h>

#include <set>

#include "transfer/kernel_class.h"

namespace pruner {
namespace {

class ShippedRecords : public testing::TestWithParam<const char*> {};

TEST_P(ShippedRecords, AreReadAndHaveEachTaskOnce) {
  const Result<Target> target = parse_target(GetParam(), 2);
  ASSERT_TRUE(target.ok()) << target.error().message();
  const std::vector<Record> shipped = shipped_records(*target);
  EXPECT_GT(shipped.size(), 50U);
  std::set<std::string> keys, classes;
  for (const Record& record : shipped) {
    EXPECT_TRUE(record.result.ok()) << record.task_name;
    EXPECT_TRUE(keys.insert(record.workload_key).second) << record.task_name;
    classes.insert(kernel_class(record.task_name));
  }
  EXPECT_TRUE(classes.contains("conv2d+bias+relu"));
}

INSTANTIATE_TEST_SUITE_P(Targets,
                         ShippedRecords,
                         testing::Values("llvm -mcpu=haswell", "llvm -mcpu=znver4"));

TEST(Shipped, AreNoneForOtherTargets) {
  for (const char* text : {"llvm -mtriple=aarch64-linux-gnu", "cuda --arch=sm_80"}) {
    const Result<Target> target = parse_target(text, 2);
    ASSERT_TRUE(target.ok()) << target.error().message();
    EXPECT_TRUE(shipped_records(*target).empty()) << text;
  }
}

}  // namespace
}  // namespace pruner
