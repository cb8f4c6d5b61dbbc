// Programs of every element type run on a device, held against the interpreter of programs.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "loaded_program.h"
#include "lower/dtype_programs.h"

namespace pruner {

/// Expects casts and arithmetic of every element type to give what the interpreter gives.
inline void expect_dtypes_compute(const Target& target) {
  for (const DTypeRow& row : kDTypes) {
    const Program program = dtype_program(row.dtype, true);
    std::vector<Tensor> args = dtype_arguments(program), expected;
    for (const Tensor& arg : args) expected.push_back(arg.clone());
    const Result<Unit> ran = interpret(program, expected);
    ASSERT_TRUE(ran.ok()) << ran.error().message();
    const Result<Artifact> artifact = compile(program, target, "kernel");
    ASSERT_TRUE(artifact.ok()) << artifact.error().message();
    const auto loaded = LoadedProgram::load(*artifact);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message();
    for (size_t i = 0; i < args.size(); ++i)
      ASSERT_TRUE((*loaded)->write_argument(i, args[i].data()).ok());
    ASSERT_TRUE((*loaded)->run(1).ok());
    for (size_t i = 0; i < args.size(); ++i) {
      ASSERT_TRUE((*loaded)->read_argument(i, args[i].data()).ok());
      for (int64_t e = 0; e < args[i].num_elements(); ++e) {
        const double want = expected[i].get(e), have = args[i].get(e);
        EXPECT_TRUE(want == have || (std::isnan(want) && std::isnan(have)))
            << program.name << ": " << program[program.args[i]].name << " of " << args[0].get(e)
            << " is " << have << ", not " << want;
      }
    }
  }
}

}  // namespace pruner
