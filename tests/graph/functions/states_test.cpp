#include "graph/small_graph.h"

namespace pruner {
namespace {

using V = std::vector<double>;

TEST(CausalConvWithState, LooksBackAndHandsOnWhatTheNextCallLooksBackTo) {
  const Tensor x = floats({1, 2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor weight = floats({2, 1, 3}, {1, 10, 100, 0, 0, 1}), bias = floats({2}, {0, 0.5});
  std::vector<Tensor> found = run_outputs("CausalConvWithState", {x, weight, bias}, 2);
  EXPECT_EQ(values_of(found[0]), (V{100, 210, 321, 4.5, 5.5, 6.5}));
  EXPECT_EQ(values_of(found[1]), (V{2, 3, 5, 6}));
  const Tensor next = floats({1, 2, 1}, {4, 7});
  found = run_outputs("CausalConvWithState", {next, weight, bias, found[1]}, 2);
  EXPECT_EQ(values_of(found[0]), (V{432, 7.5}));
  EXPECT_EQ(values_of(found[1]), (V{3, 4, 6, 7}));
}

TEST(CausalConvWithState, EndsWithAnActivation) {
  const Tensor x = floats({1, 1, 1}, {2}), weight = floats({1, 1, 1}, {1});
  EXPECT_NEAR(
      run_op("CausalConvWithState", {x, weight}, {{"activation", std::string("silu")}}).get(0),
      2 / (1 + std::exp(-2)),
      1e-6);
  EXPECT_EQ(refusal("CausalConvWithState", {x, weight}, {{"activation", std::string("relu")}}),
            "node \"it\": activation is \"relu\", expected silu, swish or none");
}

TEST(CausalConvWithState, LooksFurtherBackWithOnnxRuntimesDilation) {
  const Tensor x = floats({1, 1, 3}, {1, 2, 3}), weight = floats({1, 1, 2}, {10, 1});
  const std::vector<Tensor> found =
      run_outputs("com.microsoft::CausalConvWithState", {x, weight}, 2, {{"dilation", int64_t{2}}});
  EXPECT_EQ(values_of(found[0]), (V{1, 2, 13}));
  EXPECT_EQ(values_of(found[1]), (V{2, 3}));
  EXPECT_EQ(refusal("com.microsoft::CausalConvWithState", {x, weight}, {{"ndim", int64_t{2}}}),
            "node \"it\": ndim is 2, supported is 1");
}

// One head of one number: the state is a number s.
Tensor sequence(V values) {
  const auto n = static_cast<int64_t>(values.size());
  return floats({1, n, 1}, std::move(values));
}

Attributes rule(const char* name) {
  return {{"q_num_heads", int64_t{1}},
          {"kv_num_heads", int64_t{1}},
          {"scale", 1.0},
          {"update_rule", std::string(name)}};
}

TEST(LinearAttention, SumsUpProductsOfKeysAndValues) {
  const Tensor q = sequence({1, 2}), k = sequence({3, 4}), v = sequence({5, 6});
  const Tensor past = floats({1, 1, 1, 1}, {7});
  const std::vector<Tensor> found =
      run_outputs("LinearAttention", {q, k, v, past}, 2, rule("linear"));
  EXPECT_EQ(values_of(found[0]), (V{22, 2 * 46}));  // 7 + 3 * 5, then + 4 * 6
  EXPECT_EQ(values_of(found[1]), V{46});
}

TEST(LinearAttention, DecaysAndCorrectsItsState) {
  const Tensor q = sequence({1, 1}), k = sequence({1, 2}), v = sequence({4, 6});
  const Tensor decay = sequence({0, std::log(0.5)}), beta = sequence({1, 0.5});
  const Operand none = Operand::none();
  // 4; half of it is 2, to which 2 * 0.5 * (6 - 2 * 2) is added.
  EXPECT_EQ(values_of(run_op("LinearAttention", {q, k, v, none, decay, beta}, rule("gated_delta"))),
            (V{4, 4}));
  // Half of 4, to which 2 * 6 is added.
  EXPECT_EQ(values_of(run_op("LinearAttention", {q, k, v, none, decay}, rule("gated"))),
            (V{4, 14}));
  // 4, to which 2 * 0.5 * (6 - 2 * 4) is added.
  EXPECT_EQ(values_of(run_op("LinearAttention", {q, k, v, none, none, beta}, rule("delta"))),
            (V{4, 2}));
  EXPECT_EQ(refusal("LinearAttention", {q, k, v, none, decay}, rule("delta")),
            "node \"it\": update_rule delta takes no decay and needs a beta");
}

TEST(LinearAttention, SharesAStateAmongHeadsOfTheQuery) {
  const Tensor q = floats({1, 1, 2}, {1, 2}), k = sequence({3}), v = floats({1, 1, 2}, {5, 7});
  Attributes attributes = rule("linear");
  attributes["q_num_heads"] = int64_t{2};
  EXPECT_EQ(values_of(run_op("LinearAttention", {q, k, v}, attributes)), (V{15, 21, 30, 42}));
}

}  // namespace
}  // namespace pruner
