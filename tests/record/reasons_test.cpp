#include "record/reasons.h"

#include <gtest/gtest.h>

namespace pruner {
namespace {

TEST(Reasons, KeepTheFirstPlace) {
  Reasons a, b;
  note(a, "torn", "a:1");
  note(a, "torn", "a:2");
  note(b, "torn", "b:1");
  note(b, "foreign", "b:2");
  add(a, b);
  EXPECT_EQ(a["torn"].count, 3);
  EXPECT_EQ(a["torn"].first, "a:1");
  EXPECT_EQ(a["foreign"].first, "b:2");
  EXPECT_EQ(total(a), 4);
}

TEST(Reasons, AreWithoutTheNumbersOfOneRecord) {
  EXPECT_EQ(general_reason("not JSON at byte 17"), "not JSON");
  EXPECT_EQ(general_reason("step 3, SP: a factor of 0"), "SP: a factor of 0");
  EXPECT_EQ(general_reason("threads: 2048, the device allows 1024"),
            "threads beyond what the device allows");
  EXPECT_EQ(general_reason("a hash without a DAG"), "a hash without a DAG");
}

}  // namespace
}  // namespace pruner
