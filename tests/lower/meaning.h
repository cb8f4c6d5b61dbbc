// Checks that a program computes what it must, for tests.
#pragma once

#include <gtest/gtest.h>

#include "lower/lower.h"
#include "space/operator_task.h"
#include "tensor/interpreter.h"

namespace pruner {

/// Candidates' programs compute what the DAG does.
class Meaning {
 public:
  Meaning(const ComputeDag& dag, Rng& rng)
      : inputs_(random_inputs(dag, rng)), expected_(interpret(dag, inputs_)) {}

  const std::vector<Tensor>& inputs() const { return inputs_; }
  const std::vector<Tensor>& expected() const { return expected_; }

  void check(const Space& space, const Candidate& candidate) const {
    const Result<Program> program = lower(space, candidate, "k");
    ASSERT_TRUE(program.ok()) << program.error().message();
    check(*program, print(space, candidate));
  }

  /// `what`: for the message of a failure.
  void check(const Program& program, const std::string& what) const {
    const Result<Unit> sound = verify(program);
    ASSERT_TRUE(sound.ok()) << sound.error().message() << "\n" << print(program);
    std::vector<Tensor> args;
    for (size_t a = 0; a < program.args.size(); ++a) {
      const Buffer& buffer = program[program.args[a]];
      if (a >= inputs_.size()) {
        args.push_back(Tensor(buffer.dtype, buffer.shape));
      } else {
        args.push_back(buffer.pack.identity() ? inputs_[a] : pack(inputs_[a], buffer.pack));
      }
    }
    const Result<Unit> ran = interpret(program, args);
    ASSERT_TRUE(ran.ok()) << ran.error().message() << "\n" << what << "\n" << print(program);
    for (size_t o = 0; o < expected_.size(); ++o) {
      const double tolerance = tolerance_of(expected_[o].dtype());
      for (int64_t e = 0; e < expected_[o].num_elements(); ++e) {
        ASSERT_NEAR(args[inputs_.size() + o].get(e),
                    expected_[o].get(e),
                    tolerance * (1 + std::abs(expected_[o].get(e))))
            << "element " << e << "\n"
            << what << "\n"
            << print(program);
      }
    }
  }

 private:
  std::vector<Tensor> inputs_, expected_;
};

}  // namespace pruner
