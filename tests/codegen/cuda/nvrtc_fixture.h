// A fixture for tests that compile CUDA C by the toolkit's NVRTC.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "codegen/cuda/nvrtc.h"

namespace pruner {

/// Skips a test, saying so, if there is no NVRTC; keeps cubins apart from the user's.
class WithNvrtc : public testing::Test {
 protected:
  void SetUp() override {
    const auto nvrtc = find_nvrtc();
    if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.error().message();
    setenv("XDG_CACHE_HOME", testing::TempDir().c_str(), 1);
  }
};

}  // namespace pruner
