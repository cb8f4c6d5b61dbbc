// Runs the machine code of a candidate's program, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "codegen/loader.h"

namespace pruner {

/// The first output of a program's code for the DAG's inputs, which are packed as it wants them.
/// Nothing (and a failed test) where it cannot be made. Elements that it leaves out are all ones.
inline Tensor run_code(const Program& program,
                       const Target& target,
                       const std::vector<Tensor>& inputs) {
  const Result<Artifact> artifact = compile(program, target, "k");
  EXPECT_TRUE(artifact.ok()) << artifact.error().message();
  if (!artifact.ok()) return {};
  const auto kernel = load_kernel(artifact->object, "k");
  EXPECT_TRUE(kernel.ok()) << kernel.error().message();
  if (!kernel.ok()) return {};
  std::vector<Tensor> args;
  std::vector<void*> pointers;
  for (size_t a = 0; a < artifact->arguments.size(); ++a) {
    const Artifact::Argument& argument = artifact->arguments[a];
    if (a < inputs.size()) {
      args.push_back(argument.pack.identity() ? inputs[a] : pack(inputs[a], argument.pack));
    } else {
      args.push_back(Tensor(argument.dtype, argument.shape));
      std::memset(args.back().data(), 0xff, static_cast<size_t>(args.back().bytes()));
    }
    pointers.push_back(args.back().data());
  }
  Tensor workspace(DType::kInt8, {std::max<int64_t>(artifact->workspace_bytes, 1)});
  (*kernel)->entry()(pointers.data(), workspace.data(), serial_pool());
  return args[inputs.size()];
}

}  // namespace pruner
