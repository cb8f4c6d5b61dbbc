// A form's DAG held against the task's, in the reference interpreter.
#pragma once

#include <gtest/gtest.h>

#include "space/sketch_rule.h"
#include "tensor/interpreter.h"
#include "tensor/transform.h"

namespace pruner {

/// The form applies to the task, and its DAG gives the same elements within 1e-3.
inline void expect_form_computes(const Form& form, const Task& task) {
  ComputeDag dag = task.dag;
  ASSERT_TRUE(form.apply(dag, task.target));
  Rng rng(3);
  std::vector<Tensor> inputs = random_inputs(task.dag, rng);
  const std::vector<Tensor> expected = interpret(task.dag, inputs);
  for (size_t i = 0; i < inputs.size(); ++i)
    inputs[i] = transformed(inputs[i], dag[dag.inputs()[i]].transform);
  const std::vector<Tensor> found = interpret(dag, inputs);
  ASSERT_EQ(found.size(), expected.size());
  ASSERT_EQ(found[0].num_elements(), expected[0].num_elements());
  for (int64_t i = 0; i < expected[0].num_elements(); ++i)
    ASSERT_NEAR(found[0].get(i), expected[0].get(i), 1e-3) << "element " << i;
}

}  // namespace pruner
