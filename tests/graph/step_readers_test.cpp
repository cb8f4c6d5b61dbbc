#include "graph/step_readers.h"

#include "graph/small_graph.h"
#include "support/rng.h"

namespace pruner {
namespace {

std::vector<std::string> read(const Graph& graph) {
  const std::vector<bool> by_steps = read_by_steps(graph);
  std::vector<std::string> names;
  for (const Node& node : graph.nodes)
    if (by_steps[static_cast<size_t>(node.outputs[0].value)]) names.push_back(node.op);
  return names;
}

using Names = std::vector<std::string>;

TEST(ReadBySteps, FollowsWhatRoundsOnce) {
  NetworkBuilder b("steps");
  const ValueId x = b.input("x", {2, 3}, DType::kFloat32);
  const ValueId sum = b.node("Add", {b.node("Div", {x, b.scalar(3)}), b.scalar(1)});
  EXPECT_EQ(read(b.finish({{b.node("Floor", {b.node("Relu", {sum})}), "y"}})),
            (Names{"Div", "Add", "Relu"}));
}

TEST(ReadBySteps, EndsAtFunctionsAndSums) {
  NetworkBuilder b("smooth");
  const ValueId x = b.input("x", {2, 3}, DType::kFloat32);
  const ValueId power = b.node("Exp", {b.node("Div", {x, b.scalar(3)})});
  const ValueId sum = b.node("ReduceSum", {b.node("Mul", {x, b.scalar(3)})});
  EXPECT_EQ(read(b.finish({{b.node("Ceil", {power}), "y"}, {b.node("Round", {sum}), "z"}})),
            (Names{"Exp", "ReduceSum"}));
}

// Multiplications, divisions and additions of constants, one after the other, and an operator that
// jumps at their end.
Graph drawn(Rng& rng) {
  NetworkBuilder b("drawn");
  ValueId x = b.input("x", {2, 4, 3, 3}, DType::kFloat32);
  const auto number = [&](int64_t least, int64_t most) {
    return static_cast<double>(least + rng.below(most - least + 1));
  };
  const auto operand = [&] {
    if (rng.below(2) == 0) return b.scalar(number(1, 60) / number(1, 12));
    Tensor channels(DType::kFloat32, {4, 1, 1});
    for (int64_t i = 0; i < 4; ++i) channels.set(i, number(1, 60) / number(1, 12));
    return b.constant("channels", channels);
  };
  const auto row = [&](double least, double most) {
    Tensor values(DType::kFloat32, {4});
    for (int64_t i = 0; i < 4; ++i) values.set(i, number(1, 9) * (most - least) / 9 + least);
    return b.constant("row", values);
  };
  for (int64_t left = 1 + rng.below(5); left > 0; --left) {
    switch (rng.below(7)) {
      case 0: x = b.node("Relu", {x}); break;
      case 1: x = b.node("Neg", {x}); break;
      case 2: x = b.node("Add", {x, operand()}); break;
      case 3: x = b.node("Mul", {operand(), x}); break;
      case 4:
        x = b.node("BatchNormalization", {x, row(0, 3), row(-1, 1), row(0, 2), row(0, 2)});
        break;
      default: x = b.node("Div", {x, operand()});
    }
  }
  static constexpr std::string_view kReaders[] = {"Ceil", "Floor", "Round", "Sign"};
  const int64_t reader = rng.below(7);
  if (reader < 4) {
    x = b.node(std::string(kReaders[reader]), {x});
  } else if (reader == 4) {
    x = b.node("Cast", {x}, {{"to", std::string("int32")}});
  } else if (reader == 5) {
    x = b.node("Less", {x, b.scalar(number(0, 20))});
  } else {
    const ValueId zero = b.constant("zero", Tensor(DType::kUInt8, {}));
    x = b.node("QuantizeLinear", {x, b.scalar(number(1, 9) / 10), zero});
  }
  return b.finish({{x, "y"}});
}

// Whole numbers, whose quotients are often whole.
Tensor whole_numbers(Rng& rng) {
  Tensor tensor(DType::kFloat32, {2, 4, 3, 3});
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    tensor.set(i, static_cast<double>(rng.below(400) - 100));
  return tensor;
}

TEST(Passes, ChangeNothingThatAnOperatorThatJumpsReads) {
  Rng rng(1);
  for (int trial = 0; trial < 400; ++trial) {
    const Graph graph = drawn(rng);
    const Tensor input = whole_numbers(rng);
    const auto values = [&](const Graph& of) {
      const Result<std::vector<Tensor>> found = interpret_graph(of, std::vector{input});
      EXPECT_TRUE(found.ok());
      return values_of((*found)[0]);
    };
    const std::vector<double> expected = values(graph);
    for (const GraphPass& pass : kGraphPasses)
      ASSERT_EQ(values(pass.run(graph, {})), expected) << trial << ": " << pass.name;
    ASSERT_EQ(values(run_graph_passes(graph)), expected) << trial;
  }
}

}  // namespace
}  // namespace pruner
