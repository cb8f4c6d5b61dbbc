#include "cli/duration.h"

#include "golden.h"

namespace pruner {
namespace {

TEST(ParseDuration, ReadsUnitsAndTheirSums) {
  EXPECT_EQ(*parse_duration_s("30s"), 30);
  EXPECT_EQ(*parse_duration_s("10m"), 600);
  EXPECT_EQ(*parse_duration_s("1h30m"), 5400);
  EXPECT_EQ(*parse_duration_s("0.5h"), 1800);
  EXPECT_EQ(*parse_duration_s("45"), 45);
}

TEST(ParseDuration, SaysHowToWriteOne) {
  for (const char* text : {"", "m", "10x", "-5m", "0s", "1h 30m"}) {
    EXPECT_ERROR(parse_duration_s(text), "is no time; write 30s, 10m or 1h30m");
  }
}

}  // namespace
}  // namespace pruner
