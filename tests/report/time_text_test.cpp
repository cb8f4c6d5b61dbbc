#include "report/time_text.h"

#include <gtest/gtest.h>

namespace pruner {
namespace {

TEST(TimeText, TakesTheUnitThatHasDigits) {
  EXPECT_EQ(time_text(812e-9), "812 ns");
  EXPECT_EQ(time_text(3.42e-6), "3.42 us");
  EXPECT_EQ(time_text(34.21e-6), "34.2 us");
  EXPECT_EQ(time_text(123.4e-6), "123 us");
  EXPECT_EQ(time_text(1.2341e-3), "1.234 ms");
  EXPECT_EQ(time_text(41.2e-3), "41.200 ms");
  EXPECT_EQ(time_text(1.5), "1.500 s");
  EXPECT_EQ(time_text(std::nullopt), "-");
}

TEST(TimeText, RoundsIntoTheNextUnit) {
  EXPECT_EQ(time_text(999.6e-9), "1.00 us");
  EXPECT_EQ(time_text(9.996e-6), "10.0 us");
  EXPECT_EQ(time_text(99.96e-6), "100 us");
  EXPECT_EQ(time_text(999.6e-6), "1.000 ms");
  EXPECT_EQ(time_text(0.9999999), "1.000 s");
}

TEST(MillisecondsText, HasDigitsBelowAMicrosecond) {
  EXPECT_EQ(milliseconds_text(1.476e-3), "1.476");
  EXPECT_EQ(milliseconds_text(6e-6), "0.006");
  EXPECT_EQ(milliseconds_text(812e-9), "0.000812");
  EXPECT_EQ(milliseconds_text(std::nullopt), "-");
}

TEST(ClockText, HasHoursWhereTheyAreNeeded) {
  EXPECT_EQ(clock_text(312), "5:12");
  EXPECT_EQ(clock_text(3909), "1:05:09");
  EXPECT_EQ(clock_text(std::nullopt), "-");
}

}  // namespace
}  // namespace pruner
