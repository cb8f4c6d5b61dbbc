#include "graph/interpret_elements.h"

#include "graph/partition.h"
#include "small_graph.h"

namespace pruner {
namespace {

/// A convolution, its pooled result beside a part of it that is turned, and a product with weights.
Graph mixed() {
  NetworkBuilder b("mixed", NetworkOptions());
  const ValueId x = b.input("x", {2, 3, 9, 7}, DType::kFloat32);
  const ValueId y = b.relu(b.conv("conv", x, {.channels = 4, .kernel = 3, .padding = 1}));
  const ValueId pooled = b.flatten(b.max_pool(y, 3, 2));
  const ValueId z = b.dense("dense", pooled, 5);
  const ValueId turned = b.node("Transpose", {y}, {{"perm", Ints{0, 2, 3, 1}}});
  const ValueId probable = b.node("Softmax", {turned}, {{"axis", int64_t{3}}});
  const ValueId order = b.node("ArgMax", {z}, {{"axis", int64_t{1}}});
  return b.finish({{z, "scores"}, {probable, "probable"}, {order, "order"}});
}

std::map<ValueId, Tensor> known_inputs(const Graph& graph, const std::vector<Tensor>& inputs) {
  std::map<ValueId, Tensor> known;
  for (size_t i = 0; i < inputs.size(); ++i) known.emplace(graph.inputs[i], inputs[i]);
  return known;
}

TEST(GraphElements, AreThoseOfTheWholeGraph) {
  const Graph graph = mixed();
  const std::vector<Tensor> inputs = {waves({2, 3, 9, 7})};
  const auto whole = interpret_graph(graph, inputs);
  ASSERT_TRUE(whole.ok()) << whole.error().message();
  for (const int jobs : {1, 3}) {
    GraphElements elements(graph, known_inputs(graph, inputs), jobs);
    for (size_t o = 0; o < whole->size(); ++o) {
      std::vector<int64_t> positions;
      for (int64_t i = 0; i < (*whole)[o].num_elements(); i += 3) positions.push_back(i);
      const std::vector<double> found = elements.at(graph.outputs[o], positions);
      ASSERT_EQ(found.size(), positions.size());
      for (size_t i = 0; i < positions.size(); ++i)
        EXPECT_NEAR(found[i], (*whole)[o].get(positions[i]), 1e-6) << o << ", " << positions[i];
    }
  }
}

// One element near a corner of a large map does not need the rest of it: this takes no time.
TEST(GraphElements, AreComputedOfWhatTheyDependOn) {
  NetworkBuilder b("large", NetworkOptions());
  ValueId x = b.input("x", {1, 4, 512, 512}, DType::kFloat32);
  for (const char* name : {"first", "second", "third"})
    x = b.relu(b.conv(name, x, {.channels = 4, .kernel = 3, .padding = 1}));
  const Graph graph = b.finish({{x, "y"}});
  GraphElements elements(graph, known_inputs(graph, {waves({1, 4, 512, 512})}));
  const int64_t corner[] = {0};
  EXPECT_EQ(elements.at(graph.outputs[0], corner).size(), 1U);
}

// A value of a node that is no kernel, in the middle of a graph.
TEST(GraphElements, GoThroughViewsConstantsAndRoutines) {
  NetworkBuilder b("sorted", NetworkOptions());
  const ValueId x = b.input("x", {4, 6}, DType::kFloat32);
  const ValueId flat = b.node("Reshape", {x, b.integers("shape", {2, 12})});
  Graph graph = b.finish({{flat, "flat"}});
  graph.values.push_back({"values", DType::kFloat32, {}, {}});
  graph.values.push_back({"places", DType::kInt64, {}, {}});
  graph.values.push_back({"three", DType::kInt64, {1}, integers({1}, {3})});
  const auto id = [&](size_t back) {
    return ValueId{static_cast<int32_t>(graph.values.size() - back)};
  };
  graph.nodes.push_back({"TopK", "top", {graph.outputs[0], id(1)}, {id(3), id(2)}, {}});
  ASSERT_TRUE(infer_node(graph, graph.nodes.back()).ok());
  graph.outputs = {id(3), id(2)};
  const std::vector<Tensor> inputs = {waves({4, 6})};
  const auto whole = interpret_graph(graph, inputs);
  ASSERT_TRUE(whole.ok()) << whole.error().message();
  GraphElements elements(graph, known_inputs(graph, inputs));
  const std::vector<int64_t> positions = {0, 1, 2, 3, 4, 5};
  for (size_t o = 0; o < 2; ++o)
    EXPECT_EQ(elements.at(graph.outputs[o], positions), values_of((*whole)[o]));
}

}  // namespace
}  // namespace pruner
