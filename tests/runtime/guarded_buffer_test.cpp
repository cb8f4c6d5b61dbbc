#include "runtime/guarded_buffer.h"

#include <gtest/gtest.h>

#include "golden.h"

namespace pruner {
namespace {

GuardedBuffer make(int64_t bytes) {
  Result<GuardedBuffer> buffer = GuardedBuffer::make(bytes);
  EXPECT_TRUE(buffer.ok());
  return *std::move(buffer);
}

TEST(GuardedBuffer, IsAlignedWritableAndEndsAtTheGuardPage) {
  for (const int64_t bytes : {0, 1, 63, 64, 100, 4096, 4097, (2 << 20) - 64, (5 << 20) + 4}) {
    GuardedBuffer buffer = make(bytes);
    EXPECT_EQ(buffer.bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
    buffer.fill(std::byte{7});
    EXPECT_TRUE(buffer.intact());
    EXPECT_TRUE(buffer.holds(buffer.data() + bytes + 64));
    EXPECT_TRUE(buffer.holds(buffer.data() - 4096));
    // Past the 64 bytes that hold the last one there is nothing.
    const int64_t end = std::max<int64_t>((bytes + 63) / 64 * 64, 64);
    EXPECT_EXIT(buffer.data()[end] = std::byte{1}, testing::KilledBySignal(SIGSEGV), "");
  }
}

TEST(GuardedBuffer, NoticesAByteWrittenJustPastTheEnd) {
  GuardedBuffer buffer = make(100);
  buffer.data()[100] = std::byte{1};
  EXPECT_FALSE(buffer.intact());
}

TEST(GuardedBuffer, CanBeMadeReadOnly) {
  for (const int64_t bytes : {100, 3 << 20}) {
    GuardedBuffer buffer = make(bytes);
    buffer.fill(std::byte{7});
    buffer.make_read_only();
    EXPECT_EQ(buffer.data()[bytes - 1], std::byte{7});
    EXPECT_EXIT(buffer.data()[bytes - 1] = std::byte{1}, testing::KilledBySignal(SIGSEGV), "");
    EXPECT_EXIT(buffer.data()[0] = std::byte{1}, testing::KilledBySignal(SIGSEGV), "");
  }
}

TEST(GuardedBuffer, IsAsWellGuardedInTheMemoryOfAnother) {
  for (const int64_t most : {100, 8192, 5 << 20}) {
    GuardedBuffer buffer = make(most);
    for (const int64_t bytes : {most, most / 3, int64_t{0}, most / 2, most}) {
      buffer.make_read_only();
      buffer = std::move(buffer).resized(bytes);
      EXPECT_GE(buffer.capacity(), most);
      EXPECT_EQ(buffer.bytes(), bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
      buffer.fill(std::byte{7});
      EXPECT_TRUE(buffer.intact());
      const int64_t end = std::max<int64_t>((bytes + 63) / 64 * 64, 64);
      EXPECT_EXIT(buffer.data()[end] = std::byte{1}, testing::KilledBySignal(SIGSEGV), "");
      EXPECT_EXIT(buffer.data()[-4096] = std::byte{1}, testing::KilledBySignal(SIGSEGV), "");
      if (bytes % 64 == 0) continue;
      buffer.data()[bytes] = std::byte{1};
      EXPECT_FALSE(buffer.intact());
    }
  }
}

TEST(GuardedBuffer, SaysThatThereIsNoMemory) {
  EXPECT_ERROR(GuardedBuffer::make(int64_t{1} << 60),
               "no memory for a buffer of 1152921504606846976 bytes: Cannot allocate memory");
}

TEST(GuardedBuffer, CanBeMoved) {
  GuardedBuffer a = make(100);
  a.fill(std::byte{1});
  GuardedBuffer b = std::move(a);
  a = make(200);
  EXPECT_EQ(b.data()[99], std::byte{1});
  EXPECT_EQ(a.bytes(), 200);
}

}  // namespace
}  // namespace pruner
