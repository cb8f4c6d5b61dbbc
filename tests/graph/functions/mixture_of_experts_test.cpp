#include "graph/small_graph.h"

namespace pruner {
namespace {

using V = std::vector<double>;

const Operand kNone = Operand::none();

Tensor run(const std::vector<Operand>& operands, Attributes attributes) {
  return run_op("com.microsoft::MoE", operands, std::move(attributes));
}

// Expert e multiplies by first[e], then by second[e].
struct Experts {
  Experts(const V& first, const V& second)
      : one(Operand::weight(floats({std::ssize(first), 1, 1}, first))),
        two(Operand::weight(floats({std::ssize(second), 1, 1}, second))) {}
  Operand one, two;
};

TEST(MoE, MixesTheExpertsThatARouterRatesHighest) {
  const Experts experts({1, 10, 100}, {1, 1, 1});
  const Tensor x = floats({2, 1}, {1, 2});
  const Tensor rates = floats({2, 3}, {0, std::log(3), -50, 0, -50, 0});
  Attributes attributes = {{"k", int64_t{2}}, {"activation_type", std::string("identity")}};
  expect_near(run({x, rates, experts.one, kNone, experts.two}, attributes),
              floats({2, 1}, {0.25 * 1 + 0.75 * 10, 2 * (0.5 + 50)}));
  attributes["k"] = int64_t{1};
  // If two rates are equal, the last expert counts.
  expect_near(run({x, rates, experts.one, kNone, experts.two}, attributes),
              floats({2, 1}, {7.5, 100}));
  attributes["normalize_routing_weights"] = int64_t{1};
  expect_near(run({x, rates, experts.one, kNone, experts.two}, attributes),
              floats({2, 1}, {10, 200}));
}

// One token has fewer experts than there are: their matrices are gathered.
TEST(MoE, IsTheSameForFewTokens) {
  const Experts experts({1, 10, 100}, {1, 2, 3});
  const Tensor rates = floats({1, 3}, {0, 0, -50});
  expect_near(run({floats({1, 1}, {1}),
                   rates,
                   experts.one,
                   Operand::weight(floats({3, 1}, {1, 2, 3})),
                   experts.two,
                   Operand::weight(floats({3, 1}, {0, 4, 0}))},
                  {{"k", int64_t{2}}, {"activation_type", std::string("relu")}}),
              floats({1, 1}, {0.5 * 2 + 0.5 * (12 * 2 + 4)}));
}

TEST(MoE, GatesPairs) {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const Operand one = Operand::weight(floats({1, 2, 1}, {1, 3})),
                two = Operand::weight(floats({1, 1, 1}, {1}));
  Attributes attributes = {{"k", int64_t{1}},
                           {"activation_type", std::string("swiglu")},
                           {"swiglu_fusion", int64_t{1}},
                           {"activation_alpha", 2.0},
                           {"activation_beta", 1.0}};
  const std::vector<Operand> operands = {floats({1, 1}, {1}), floats({1, 1}, {0}), one, kNone, two};
  expect_near(run(operands, attributes), floats({1, 1}, {sigmoid(2) * 4}));
  attributes["swiglu_limit"] = 0.5;
  expect_near(run(operands, attributes), floats({1, 1}, {0.5 * sigmoid(1) * 1.5}));
}

TEST(MoE, SaysWhatItDoesNotTake) {
  const Experts experts({1}, {1});
  const Tensor x = floats({1, 1}, {1}), rates = floats({1, 1}, {0});
  const auto why = [&](const std::vector<Operand>& more, const Attributes& attributes) {
    std::vector<Operand> operands = {x, rates, experts.one, kNone, experts.two};
    operands.insert(operands.end(), more.begin(), more.end());
    return refusal("com.microsoft::MoE", operands, attributes);
  };
  EXPECT_EQ(why({kNone, floats({1, 1, 1}, {1})}, {}),
            "node \"it\": input 6, a part of FC3, is not supported; join FC3 to FC1");
  EXPECT_EQ(why({}, {{"use_sparse_mixer", int64_t{1}}}),
            "node \"it\": use_sparse_mixer is not supported");
  EXPECT_EQ(why({}, {{"k", int64_t{2}}}), "node \"it\": k is 2, expected 1 to 1");
  EXPECT_EQ(why({}, {{"activation_type", std::string("swiglu")}}),
            "node \"it\": swiglu_fusion is 0, expected 1 or 2");
}

// Codes 9 and 7 of 4 bits in one byte: 1 and -1 times the scale. The weights of two experts are the
// softmax over both.
TEST(QMoE, UnpacksItsMatrices) {
  const auto bytes = [](Ints values) {
    const auto n = static_cast<int64_t>(values.size());
    return Operand::weight(integers({n, 1, 1}, std::move(values), DType::kUInt8));
  };
  const Operand first = bytes({0x79, 0x79}), scales = Operand::weight(floats({2, 1}, {1, 10}));
  const Operand second = Operand::weight(integers({2, 2, 1}, {9, 8, 8, 9}, DType::kUInt8));
  const Operand ones = Operand::weight(floats({2, 2}, {1, 1, 1, 1}));
  Attributes attributes = {{"k", int64_t{2}},
                           {"activation_type", std::string("identity")},
                           {"expert_weight_bits", int64_t{8}},
                           {"fc1_expert_weight_bits", int64_t{4}}};
  // fc1 is [1, 2] of 4 bits, fc2 [2, 1] of 8 bits, whose zero point is 128.
  const Operand zeros = Operand::weight(integers({2, 2}, {8, 8, 8, 8}, DType::kUInt8));
  std::vector<Operand> operands = {floats({1, 2}, {5, 3}),
                                   floats({1, 2}, {0, std::log(3)}),
                                   first,
                                   scales,
                                   kNone,
                                   second,
                                   ones,
                                   kNone,
                                   kNone,
                                   kNone,
                                   kNone,
                                   kNone,
                                   zeros};
  // Expert 0 gives 2 to the first output, expert 1 20 to the second.
  expect_near(run_op("com.microsoft::QMoE", operands, attributes),
              floats({1, 2}, {0.25 * 2, 0.75 * 20}));
  attributes["quant_type"] = std::string("fp8");
  EXPECT_EQ(refusal("com.microsoft::QMoE", operands, attributes),
            "node \"it\": quant_type \"fp8\" is not supported");
}

}  // namespace
}  // namespace pruner
