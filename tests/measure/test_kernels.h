// Kernels written by hand, good and bad, for a matmul of 16 x 16 x 16 (float32, two inputs, one
// output). An artifact names one by its symbol; the test program's own workers know them too.
#pragma once

#include <string>

#include "measure/build_worker.h"
#include "measure/kernel_run.h"

namespace pruner {

/// The task that the kernels are for, on `threads` threads.
Task matmul_16(int threads);

/// One of 512 x 512 x 4, whose wrong kernel is wrong at one element that no sample has.
Task wide_matmul(int threads);

/// An artifact that stands for the kernel of this name: "right", "slow", "wrong", "unwritten",
/// "nan", "crash", "illegal", "past_end", "just_past_end", "writes_input", "hang", "memory",
/// "deep_stack", "worker_crash", "prints", "changes", "rarely", "flushed" (right where all threads
/// take subnormal numbers for zeros).
Artifact test_artifact(const std::string& name);

/// The same of bfloat16, [16, 16] times a weight [16, 16] transposed, with its kernels: "narrow",
/// and "nearly", whose results are of whole numbers not exact but else as near as sums may be.
Task narrow_dense_16(int threads);
Artifact narrow_artifact(const std::string& name);

/// Finds the kernel of an artifact for tests.
Result<std::unique_ptr<LoadedKernel>> load_test_kernel(const Artifact& artifact);

/// A compiler for tests: a candidate's first decision says what becomes of it. Those for GPUs are
/// really compiled.
enum TestBuild : int32_t {
  kBuildRight,
  kBuildWrong,
  kBuildError,
  kBuildCrash,
  kBuildHang,
  kBuildMemory,
  kBuildRunCrash
};
Build test_build(const Space& space, const Candidate& candidate);

}  // namespace pruner
