#include "ansor/structure.h"

#include "ansor/workloads.h"
#include "golden.h"

namespace pruner::ansor {
namespace {

ComputeDag conv() {
  return (*registered_workload(*parse_json(R"(["conv2d_layer", 1, 3, 8, 8, 4, 3, 3, 1, 1])")))[0];
}

Result<std::shared_ptr<const Structure>> structure(Structures& all, const std::string& text) {
  const auto steps = steps_from_json(*parse_json("[" + text + "]"));
  const Result<State> state = apply_steps(all.dag(), *steps);
  EXPECT_TRUE(state.ok()) << state.error().message();
  return all.of(*state);
}

std::vector<std::string> names(const ComputeDag& dag) {
  std::vector<std::string> list;
  for (const Stage& stage : dag.stages) list.push_back(stage.name);
  return list;
}

TEST(Structures, AddsCachesAndInlines) {
  Structures all(conv());
  const auto made = structure(all, R"(["CHW", 3, "local"], ["CHR", 1, "shared", [3]], ["CI", 1])");
  ASSERT_TRUE(made.ok());
  const Structure& s = **made;
  EXPECT_EQ(names(s.dag),
            (std::vector<std::string>{
                "data", "pad_temp", "pad_temp.shared", "kernel", "compute.local", "compute"}));
  EXPECT_TRUE(s.inlined[1]);
  EXPECT_TRUE(s.readers[1].empty());
  EXPECT_EQ(s.readers[0], std::vector<int>{2});
  EXPECT_EQ(s.readers[4], std::vector<int>{5});
  EXPECT_EQ(s.dag[StageId{4}].axes[0].name, "nn.c");
  EXPECT_FALSE(s.dag[StageId{4}].output);
  EXPECT_TRUE(s.dag[StageId{5}].output);
}

TEST(Structures, AreSharedByStatesThatDifferInTiles) {
  Structures all(conv());
  const auto one = structure(all, R"(["CHW", 3, "local"], ["SP", 3, 2, 8, [2], 1])");
  const auto two = structure(all, R"(["CHW", 3, "local"], ["SP", 3, 2, 8, [4], 1])");
  const auto other = structure(all, R"(["CHW", 3, "shared"])");
  EXPECT_EQ(one->get(), two->get());
  EXPECT_NE(one->get(), other->get());
}

TEST(InAnsorOrder, PutsInputsBeforeTheirFirstReader) {
  ComputeDag dag = conv();
  std::swap(dag.stages[1], dag.stages[2]);  // the weight before the padding, as task files have it
  for (Stage& stage : dag.stages) {
    if (!stage.body) continue;
    stage.body = rewrite(stage.body, [](const Expr& e) -> Expr {
      const Load* read = as<Load>(e);
      if (!read || read->tensor.value < 1 || read->tensor.value > 2) return Expr();
      return load(StageId{3 - read->tensor.value}, read->indices, e->dtype);
    });
  }
  EXPECT_EQ(names(dag), (std::vector<std::string>{"data", "kernel", "pad_temp", "compute"}));
  const ComputeDag ordered = in_ansor_order(dag);
  EXPECT_EQ(names(ordered), names(conv()));
  EXPECT_EQ(print(ordered), print(conv()));
}

}  // namespace
}  // namespace pruner::ansor
