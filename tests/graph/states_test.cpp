#include "golden.h"
#include "graph/ops/op.h"
#include "graph/small_graph.h"

namespace pruner {
namespace {

/// Inputs a, past.0.key, past.1.key and outputs b, present.0.key, present.1.key.
Graph caches() {
  NetworkBuilder b("caches");
  const ValueId a = b.input("a", {2, 3}, DType::kFloat32);
  std::vector<std::pair<ValueId, std::string>> outputs = {{b.relu(a), "b"}};
  for (const std::string layer : {"0", "1"}) {
    const ValueId past = b.input("past." + layer + ".key", {2, 3}, DType::kFloat32);
    outputs.emplace_back(b.node("Add", {past, a}), "present." + layer + ".key");
  }
  return b.finish(outputs);
}

TEST(MarkStates, TakesPairsOfNamesAndPatterns) {
  Graph graph = caches();
  ASSERT_TRUE(mark_states(graph, "past.*=present.*,a=b").ok());
  ASSERT_EQ(graph.states.size(), 3u);
  EXPECT_EQ(graph.states[1].input, 2);
  EXPECT_EQ(graph.states[1].output, 2);
  EXPECT_EQ(graph.states[2].input, 0);
  EXPECT_TRUE(mark_states(graph, "").ok());
}

TEST(MarkStates, SaysWhatIsWrong) {
  const auto fails = [](std::string_view pairs, const std::string& why) {
    Graph graph = caches();
    EXPECT_ERROR(mark_states(graph, pairs), why);
  };
  fails("past.*", "\"past.*\" is not INPUT=OUTPUT, each with one * or none");
  fails("past.*=present", "\"past.*=present\" is not INPUT=OUTPUT");
  fails("*.*=*.*", "is not INPUT=OUTPUT");
  fails("=b", "\"=b\" is not INPUT=OUTPUT");
  fails("c=b", "no input is called \"c\"");
  fails("past.*=next.*", "there is no output \"next.0.key\" for input \"past.0.key\"");
  fails("past.*=present.*,past.0.key=b", "\"past.0.key\" is named twice");
  fails("a=b,past.0.key=b", "\"b\" is named twice");
  Graph graph = caches();
  graph[graph.outputs[0]].shape = {6};
  EXPECT_ERROR(mark_states(graph, "a=b"), "input a is float32 2x3, output b float32 6");
}

/// A cache [2, 2, 5, 3] that rows [2, 2, `rows`, 3] are put into; whether it is a state.
Graph scatter(int64_t rows, const char* mode, bool state) {
  NetworkBuilder b("scatter");
  const ValueId x = b.input("x", {2, 2, rows, 3}, DType::kFloat32);
  const ValueId first = b.input("first", {2}, DType::kInt64);
  const ValueId past = b.state("past", {2, 2, 5, 3});
  const ValueId next = b.node(
      "TensorScatter", {past, x, first}, {{"axis", int64_t{-2}}, {"mode", std::string(mode)}});
  const ValueId y = b.node("ReduceSum", {next, b.integers("axes", {2})});
  if (!state) return b.finish({{y, "y"}, {next, "present"}});
  b.next_state(past, next, "present");
  return b.finish({{y, "y"}});
}

TEST(UpdateState, ComputesWhatTensorScatterDoes) {
  Rng rng(4);
  for (const char* mode : {"linear", "circular"}) {
    for (const int64_t rows : {1, 2, 5}) {
      const Graph plain = scatter(rows, mode, false);
      const Graph updates = run_graph_passes(scatter(rows, mode, true));
      EXPECT_EQ(std::ranges::count(updates.nodes, "UpdateState", &Node::op), 1);
      EXPECT_EQ(std::ranges::count(run_graph_passes(plain).nodes, "UpdateState", &Node::op), 0);
      std::vector<Tensor> inputs = {Tensor(DType::kFloat32, {2, 2, rows, 3}),
                                    Tensor(DType::kInt64, {2}),
                                    Tensor(DType::kFloat32, {2, 2, 5, 3})};
      for (const size_t i : {0, 2})
        for (int64_t e = 0; e < inputs[i].num_elements(); ++e) inputs[i].set(e, rng.uniform());
      const int64_t places = mode[0] == 'c' ? 5 : 6 - rows;
      for (int64_t i = 0; i < 2; ++i) inputs[1].set_int(i, rng.below(places));
      const std::vector<Tensor> expected = *interpret_graph(plain, inputs),
                                found = *interpret_graph(updates, inputs);
      for (size_t o = 0; o < 2; ++o) {
        for (int64_t e = 0; e < expected[o].num_elements(); ++e)
          ASSERT_NEAR(found[o].get(e), expected[o].get(e), 1e-6) << mode << " " << rows;
      }
    }
  }
}

}  // namespace
}  // namespace pruner
