#include <gtest/gtest.h>

#include "measure/measure.h"

namespace pruner {
namespace {

TEST(BandwidthProbe, GivesAPlausibleRate) {
  Target target = host_target(1);
  target.l3_bytes = 1;  // the smallest buffer
  const double rate = probe_read_gbs(target, 1, 0);
  EXPECT_GT(rate, 0.2);
  EXPECT_LT(rate, 500);
}

}  // namespace
}  // namespace pruner
