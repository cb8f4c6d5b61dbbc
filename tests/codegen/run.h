// Runs a program by the interpreter and as machine code of several CPUs, and compares.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "codegen/codegen.h"
#include "codegen/guarded_tensor.h"
#include "codegen/kernels.h"
#include "codegen/loader.h"

namespace pruner {

/// CPUs whose code this machine can run, "" (this machine) first.
inline std::vector<std::string> runnable_cpus() {
  std::vector<std::string> cpus = {""};
  if (__builtin_cpu_supports("avx2")) cpus.push_back("haswell");
  if (__builtin_cpu_supports("avx512vl")) cpus.push_back("skylake-avx512");
  return cpus;
}

/// Expects all tensors after a run as machine code to be those after interpretation.
inline void expect_same(const Program& program, const std::vector<Tensor>& args, double tolerance) {
  std::vector<Tensor> expected;
  for (const Tensor& arg : args) expected.push_back(arg.clone());
  const Result<Unit> valid = verify(program);
  ASSERT_TRUE(valid.ok()) << valid.error().message() << "\n" << print(program);
  const Result<Unit> ran = interpret(program, expected);
  ASSERT_TRUE(ran.ok()) << ran.error().message() << "\n" << print(program);
  for (const std::string& mcpu : runnable_cpus()) {
    const Result<Artifact> artifact = compile(program, cpu_target(mcpu), "kernel");
    ASSERT_TRUE(artifact.ok()) << artifact.error().message();
    const auto kernel = load_kernel(artifact->object, "kernel");
    ASSERT_TRUE(kernel.ok()) << kernel.error().message() << "\n" << print(program);
    for (const bool at_end : {true, false}) {
      std::vector<GuardedTensor> guarded;
      std::vector<void*> pointers;
      for (const Tensor& arg : args) guarded.emplace_back(arg, at_end);
      for (GuardedTensor& arg : guarded) pointers.push_back(arg.data());
      Tensor workspace(DType::kInt8, {program.workspace_bytes});
      (*kernel)->entry()(pointers.data(), workspace.data(), serial_pool());
      for (size_t a = 0; a < args.size(); ++a) {
        Tensor got = args[a].clone();
        guarded[a].copy_to(got);
        for (int64_t i = 0; i < got.num_elements(); ++i) {
          const double want = expected[a].get(i), have = got.get(i);
          if (std::isnan(want) && std::isnan(have)) continue;
          ASSERT_TRUE(want == have || std::fabs(want - have) <= tolerance * (1 + std::fabs(want)))
              << program[program.args[a]].name << " element " << i << " is " << have << ", not "
              << want << " on \"" << mcpu << "\"\n"
              << print(program);
        }
      }
    }
  }
}

}  // namespace pruner
