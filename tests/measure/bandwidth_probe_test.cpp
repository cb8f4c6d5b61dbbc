#include <gtest/gtest.h>

#include "measure/measure.h"

namespace pruner {
namespace {

TEST(BandwidthProbe, GivesAPlausibleRate) {
  const double rate = probe_read_gbs(64 << 20, 1, 0);
  EXPECT_GT(rate, 0.2);
  EXPECT_LT(rate, 2000);
}

TEST(BandwidthProbe, ReadsFasterFromL1ThanFromMemory) {
  EXPECT_GT(probe_read_gbs(16 << 10, 1, 0.01), probe_read_gbs(128 << 20, 1, 0));
}

TEST(BandwidthProbe, GivesEachThreadSomething) { EXPECT_GT(probe_read_gbs(1, 2, 0), 0); }

}  // namespace
}  // namespace pruner
