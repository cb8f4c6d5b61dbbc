#include "analysis/gpu_limits.h"

#include "golden_programs.h"

namespace pruner {
namespace {

// Those that the reference found valid keep the limits; the files' others have too much shared
// memory or too many threads.
TEST(GpuLimits, AreKeptByValidPrograms) {
  const int programs = for_golden_programs([&](const GoldenProgram& golden) {
    EXPECT_EQ(gpu_limit(make_statements(golden.nest), Gpu()), "") << golden.name;
  });
  EXPECT_GE(programs, kGoldenPrograms);
}

TEST(GpuLimits, NameWhatIsExceeded) {
  Gpu small;
  small.max_threads_per_block = 16;
  Gpu tight;
  tight.shared_bytes_per_block = 16;
  int threads = 0, shared = 0;
  const int programs = for_golden_programs([&](const GoldenProgram& golden) {
    const Statements program = make_statements(golden.nest);
    threads += gpu_limit(program, small).starts_with("threads of a block: ");
    shared += gpu_limit(program, tight).ends_with("the device allows 16");
  });
  EXPECT_GE(threads, programs / 2);
  EXPECT_GE(shared, 7);
}

TEST(GpuLimits, OfARecordAreItsHardwareNumbers) {
  const std::vector<int64_t> hardware = {-1, 16, 64, 65536, 2147483647, 512, 8, 32};
  EXPECT_EQ(gpu_of_record(hardware).shared_bytes_per_block, 65536);
  EXPECT_EQ(gpu_of_record(hardware).max_threads_per_block, 512);
  EXPECT_EQ(gpu_of_record({}).max_threads_per_block, 1024);
}

}  // namespace
}  // namespace pruner
