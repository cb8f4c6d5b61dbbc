// Products of matrices by statements of warps, run on a device.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "loaded_program.h"
#include "lower/warp_programs.h"

namespace pruner {

/// Runs a program on the device; a test failure where that is not possible.
inline std::vector<Tensor> run_warps(const Program& program, const Target& target) {
  std::vector<Tensor> args = warp_arguments(program);
  const Result<Artifact> artifact = compile(program, target, "kernel");
  EXPECT_TRUE(artifact.ok()) << artifact.error().message();
  if (!artifact.ok()) return {};
  const auto loaded = LoadedProgram::load(*artifact);
  EXPECT_TRUE(loaded.ok()) << loaded.error().message();
  if (!loaded.ok()) return {};
  for (size_t i = 0; i < args.size(); ++i)
    EXPECT_TRUE((*loaded)->write_argument(i, args[i].data()).ok());
  const Result<double> ran = (*loaded)->run(1);
  EXPECT_TRUE(ran.ok()) << ran.error().message();
  if (!ran.ok()) return {};
  for (size_t i = 0; i < args.size(); ++i)
    EXPECT_TRUE((*loaded)->read_argument(i, args[i].data()).ok());
  return args;
}

/// Expects every instruction that devices of `target` have to multiply exactly.
inline void expect_warps_multiply(const Target& target) {
  const int capability = std::atoi(target.gpu.arch.c_str() + 3);  // 80 in "sm_80"
  for (const NamedMatmul& p : warp_matmuls()) {
    if (p.matmul.instruction->oldest > capability) continue;
    SCOPED_TRACE(p.name);
    const std::vector<Tensor> args = run_warps(warp_matmul(p.matmul), target);
    ASSERT_FALSE(args.empty());
    expect_product(p.matmul, args);
  }
}

}  // namespace pruner
