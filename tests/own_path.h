// A place for a test's file that no other test, which may run at the same time, writes to.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace pruner {

inline std::string own_path(const std::string& name) {
  return testing::TempDir() + std::to_string(getpid()) + "_" + name;
}

}  // namespace pruner
