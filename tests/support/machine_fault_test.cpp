#include "support/machine_fault.h"

#include <gtest/gtest.h>

namespace pruner {
namespace {

TEST(MachineFault, IsTold) {
  EXPECT_TRUE(is_machine_fault("x.so: cannot be written: No space left on device"));
  EXPECT_TRUE(is_machine_fault("no process for a candidate: Resource temporarily unavailable"));
  EXPECT_TRUE(is_machine_fault("d: cannot be written: File too large; choose another folder"));
  EXPECT_FALSE(is_machine_fault("x.so: cannot be written: Permission denied"));
  EXPECT_FALSE(is_machine_fault("the compiler ended: SIGSEGV"));
}

}  // namespace
}  // namespace pruner
