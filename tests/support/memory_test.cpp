#include "support/memory.h"

#include <gtest/gtest.h>

#include "golden.h"

namespace pruner {
namespace {

TEST(CheckMemory, SaysWhatIsNeededAndWhatThereIs) {
  EXPECT_GT(memory_bytes(), int64_t{1} << 28);
  EXPECT_TRUE(check_memory("a", static_cast<double>(memory_bytes())).ok());
  EXPECT_ERROR(check_memory("matmul", 1e21),
               "matmul needs 1000000000000.0 GB of memory, there are");
}

TEST(CheckUnpacked, BoundsWhatASmallFileOpensTo) {
  EXPECT_TRUE(check_unpacked(1, 1 << 28).ok());
  EXPECT_TRUE(check_unpacked(4e6, 4e8).ok());
  EXPECT_ERROR(check_unpacked(3e6, 3.2e9),
               "its 3e+06 bytes open to 3.2e+09 or more, over 100 times");
  EXPECT_ERROR(check_unpacked(1e20, 1e21), "GB of memory");
}

}  // namespace
}  // namespace pruner
