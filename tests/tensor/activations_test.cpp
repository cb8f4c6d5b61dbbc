#include <gtest/gtest.h>

#include "naive.h"
#include "tensor/operator_dags.h"

namespace pruner {
namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

TEST(Activations, AreTheirFormulas) {
  const std::map<std::string_view, double (*)(double)> formulas = {
      {"relu", [](double x) { return std::max(x, 0.); }},
      {"relu6", [](double x) { return std::clamp(x, 0., 6.); }},
      {"leakyrelu", [](double x) { return x < 0 ? 0.01 * x : x; }},
      {"sigmoid", logistic},
      {"tanh", [](double x) { return std::tanh(x); }},
      {"silu", [](double x) { return x * logistic(x); }},
      {"gelu", [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.))); }},
      {"gelutanh",
       [](double x) { return x * logistic(1.5957691216 * (x + 0.044715 * x * x * x)); }},
      {"hardsigmoid", [](double x) { return std::clamp(x / 6 + 0.5, 0., 1.); }},
      {"hardswish", [](double x) { return x * std::clamp(x / 6 + 0.5, 0., 1.); }},
      {"elu", [](double x) { return x < 0 ? std::expm1(x) : x; }},
      {"softplus", [](double x) { return std::log1p(std::exp(x)); }},
      {"mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
      {"exp", [](double x) { return std::exp(x); }},
      {"abs", [](double x) { return std::abs(x); }},
  };
  const std::vector<double> points = {-20, -3.5, -1, -0.25, 0, 0.25, 1, 2.5, 7, 20};
  for (const Activation& activation : activations()) {
    ASSERT_TRUE(formulas.contains(activation.name)) << activation.name;
    DagBuilder b;
    const StageId x = b.placeholder("x", {10});
    const ComputeDag dag = b.finish({add_activation(b, x, activation)});
    const Tensor y = interpret(dag, std::vector{tensor_of({10}, points)})[0];
    for (int64_t i = 0; i < 10; ++i) {
      const double expected = formulas.at(activation.name)(points[static_cast<size_t>(i)]);
      EXPECT_NEAR(y.get(i), expected, 1e-6 * (1 + std::abs(expected)))
          << activation.name << " " << i;
    }
  }
}

TEST(FindActivation, KnowsTheRowsOnly) {
  EXPECT_EQ(find_activation("gelu")->stage, "T_gelu");
  EXPECT_EQ(find_activation("nope"), nullptr);
}

}  // namespace
}  // namespace pruner
