// Checks that programs interpreted before and after a pass compute the same bits and keep the rules
// of loop IR. The programs are of drawn candidates, or one is written by hand.
#pragma once

#include <gtest/gtest.h>

#include <limits>

#include "lower/lower.h"
#include "space/gpu/gpu_task.h"
#include "space/operator_task.h"

namespace pruner {

/// Returns the outputs of `program` for inputs drawn by one seed. `plain` is the program before its
/// operands were packed.
inline std::vector<Tensor> results_of(const Program& program, const Program& plain) {
  Rng rng(5);
  std::vector<Tensor> args;
  for (const TensorId id : program.args) {
    const Buffer& buffer = plain[id];
    Tensor& arg = args.emplace_back(buffer.dtype, buffer.shape);
    for (int64_t e = 0; e < arg.num_elements(); ++e)
      arg.set(e, buffer.output ? std::numeric_limits<double>::quiet_NaN() : rng.uniform() - 0.5);
    for (int64_t e = 0; buffer.dtype == DType::kInt8 && e < arg.num_elements(); ++e)
      arg.set_int(e, rng.below(256) - 128);
    PackSpec packed = program[id].pack;
    packed.transform = {};  // the drawn constants are not transformed
    if (packed.order != buffer.pack.order) arg = pack(arg, packed);
  }
  const Result<Unit> sound = verify(program);
  EXPECT_TRUE(sound.ok()) << sound.error().message() << "\n" << print(program);
  if (!sound.ok()) return {};
  const Result<Unit> ran = interpret(program, args);
  EXPECT_TRUE(ran.ok()) << ran.error().message() << "\n" << print(program);
  std::vector<Tensor> outputs;
  for (size_t a = 0; a < args.size(); ++a)
    if (program[program.args[a]].output) outputs.push_back(std::move(args[a]));
  return outputs;
}

/// To the bit, or within `tolerance` of the largest result where a pass rounds otherwise.
inline void expect_same_results(const Program& before, const Program& after, double tolerance = 0) {
  const std::vector<Tensor> expected = results_of(before, before);
  const std::vector<Tensor> found = results_of(after, before);
  ASSERT_EQ(expected.size(), found.size());
  for (size_t a = 0; a < expected.size(); ++a) {
    double largest = 0;
    for (int64_t e = 0; e < expected[a].num_elements(); ++e)
      largest = std::max(largest, std::abs(expected[a].get(e)));
    for (int64_t e = 0; e < expected[a].num_elements(); ++e) {
      const double was = expected[a].get(e), is = found[a].get(e);
      ASSERT_TRUE(was == is || (std::isnan(was) && std::isnan(is)) ||
                  std::abs(was - is) < tolerance * largest)
          << "output " << a << ", element " << e << ": was " << was << ", is " << is << "\n"
          << print(before) << print(after);
    }
  }
}

/// Holds what a pass makes of a task's drawn candidates against what it was given; the texts after
/// it of those that it changed.
inline std::vector<std::string> changed_by(std::string_view pass,
                                           const Task& task,
                                           int number,
                                           double tolerance = 0) {
  const Space space = make_space(task);
  Rng rng(11);
  std::vector<std::string> changed;
  for (int i = 0; i < number; ++i) {
    std::optional<Program> before;
    const auto after = [&](std::string_view name, const Program& program) {
      if (name == pass && print(*before) != print(program)) {
        expect_same_results(*before, program, tolerance);
        changed.push_back(print(program));
      }
      before = program;
    };
    const Result<Program> program = lower(space, sample(space, rng), "k", after);
    EXPECT_TRUE(program.ok()) << program.error().message();
  }
  return changed;
}

}  // namespace pruner
