// Candidates run on a device, held against the reference interpreter.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "loaded_program.h"
#include "lower/lower.h"
#include "space/operator_task.h"
#include "tensor/interpreter.h"
#include "tensor/pack.h"

namespace pruner {

/// The outputs of a candidate, shaped as `expected`; none when something failed.
inline std::vector<Tensor> run_candidate(const Space& space,
                                         const Candidate& candidate,
                                         const std::vector<Tensor>& inputs,
                                         const std::vector<Tensor>& expected) {
  const auto fails = [&](const Error& error) {
    ADD_FAILURE() << error.message() << "\n" << print(space, candidate);
    return std::vector<Tensor>();
  };
  const Result<Program> program = lower(space, candidate, "k");
  if (!program.ok()) return fails(program.error());
  const Result<Artifact> artifact = compile(*program, space.target, "k");
  if (!artifact.ok()) return fails(artifact.error());
  const auto loaded = LoadedProgram::load(*artifact);
  if (!loaded.ok()) return fails(loaded.error());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor packed = pack(inputs[i], artifact->arguments[i].pack);
    EXPECT_TRUE((*loaded)->write_argument(i, packed.data()).ok());
  }
  const Result<double> seconds = (*loaded)->run(1);
  if (!seconds.ok()) return fails(seconds.error());
  std::vector<Tensor> outputs;
  for (size_t o = 0; o < expected.size(); ++o) {
    outputs.emplace_back(expected[o].dtype(), expected[o].shape());
    const size_t number = inputs.size() + o;
    EXPECT_TRUE((*loaded)->read_argument(number, outputs.back().data()).ok());
  }
  return outputs;
}

/// Draws candidates of a task and expects of each what the DAG says. PRUNER_CANDIDATES=N: N.
inline void expect_candidates_compute(const Task& task,
                                      const Space& space,
                                      double least_tolerance = 0) {
  Rng rng(11);
  const std::vector<Tensor> inputs = random_inputs(task.dag, rng);
  const std::vector<Tensor> expected = interpret(task.dag, inputs);
  for (int i = 0; i < candidates_each(1); ++i) {
    const Candidate candidate = sample(space, rng);
    const std::vector<Tensor> outputs = run_candidate(space, candidate, inputs, expected);
    for (size_t o = 0; o < outputs.size(); ++o) {
      for (int64_t e = 0; e < outputs[o].num_elements(); ++e) {
        const double want = expected[o].get(e);
        const double tolerance = std::max(least_tolerance, tolerance_of(expected[o].dtype()));
        ASSERT_NEAR(outputs[o].get(e), want, tolerance * (1 + std::fabs(want)))
            << "element " << e << "\n"
            << print(space, candidate);
      }
    }
  }
}

inline void expect_candidates_compute(const std::string& op, const Target& target) {
  const Task task = operator_task(op, target);
  expect_candidates_compute(task, make_space(task));
}

}  // namespace pruner
