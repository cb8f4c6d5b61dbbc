#include "measure/fma_probe.h"

#include <gtest/gtest.h>

#include "measure/measure.h"
#include "runtime/thread_pool.h"

namespace pruner {
namespace {

TEST(FmaProbe, GivesAPlausibleRate) {
  const double one = probe_fma_gflops(host_target(1), 1, 0.01);
  EXPECT_GT(one, 0.5);
  EXPECT_LT(one, 1000);
  const ThreadPool pool = make_thread_pool(2, false);
  EXPECT_GT(fma_gflops(*pool, 0.001), 0.5);
}

}  // namespace
}  // namespace pruner
