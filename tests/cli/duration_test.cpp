#include "cli/duration.h"

#include "golden.h"

namespace pruner {
namespace {

TEST(ParseDuration, ReadsUnitsAndTheirSums) {
  EXPECT_EQ(*parse_duration_s("30s"), 30);
  EXPECT_EQ(*parse_duration_s("10m"), 600);
  EXPECT_EQ(*parse_duration_s("1h30m"), 5400);
  EXPECT_EQ(*parse_duration_s("0.5h"), 1800);
}

TEST(ParseDuration, RefusesANumberWithoutAUnit) {
  EXPECT_ERROR(parse_duration_s("3"), "\"3\" has no unit; write 3s, 3m or 3h");
  EXPECT_ERROR(parse_duration_s("0.5"), "\"0.5\" has no unit; write 0.5s, 0.5m or 0.5h");
  EXPECT_ERROR(parse_duration_s("1h30"), "\"1h30\" has no unit behind 30; write 30s, 30m or 30h");
}

TEST(ParseDuration, SaysHowToWriteOne) {
  for (const char* text : {"", "m", "10x", "-5m", "0s", "1h 30m"}) {
    EXPECT_ERROR(parse_duration_s(text), "is no time; write 30s, 10m or 1h30m");
  }
}

}  // namespace
}  // namespace pruner
