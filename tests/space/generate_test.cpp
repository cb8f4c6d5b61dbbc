#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "space/operator_task.h"
#include "space/space.h"

namespace pruner {
namespace {

using Names = std::vector<std::string>;

const char* const kConvolution = "conv2d 1 16 7 7 16 3 3 padding=1";

std::set<std::string> drawn_forms(const Space& space) {
  std::set<std::string> forms;
  Rng rng(1);
  for (int i = 0; i < 200; ++i) forms.insert(space[sample(space, rng).sketch].form);
  return forms;
}

TEST(FormNames, BeginWithTheTaskAsItStands) {
  EXPECT_EQ(form_names(),
            (Names{"direct",
                   "split-k",
                   "winograd-2x2",
                   "winograd-4x4",
                   "bf16-2-parts",
                   "bf16-3-parts",
                   "implicit-gemm",
                   "implicit-gemm-split-k",
                   "key-blocks",
                   "packed-panels"}));
}

TEST(MakeSpace, DrawsOnlyFromTheFormsAskedFor) {
  const Task task = operator_task(kConvolution);
  const auto forms_of = [&](const Names& forms) { return drawn_forms(make_space(task, forms)); };
  EXPECT_EQ(forms_of({}), (std::set<std::string>{"direct", "winograd-2x2", "winograd-4x4"}));
  EXPECT_EQ(forms_of({"winograd-4x4"}), std::set<std::string>{"winograd-4x4"});
  EXPECT_EQ(forms_of({"winograd-2x2", "direct"}),
            (std::set<std::string>{"direct", "winograd-2x2"}));
}

TEST(MakeSpace, KeepsAllSketchesSoThatRecordsAreRead) {
  const Task task = operator_task(kConvolution);
  const Space space = make_space(task, Names{"direct"});
  const Space other_space = make_space(task, Names{"winograd-2x2"});
  Rng rng(2);
  const Candidate other = sample(other_space, rng);
  EXPECT_TRUE(is_legal(space, other));
  const Result<Candidate> parsed = parse_candidate(space, print(other_space, other));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  EXPECT_EQ(*parsed, other);
}

TEST(MakeSpace, KeepsTheDirectFormOfATaskThatHasNoneOfThem) {
  for (const Names& forms : {Names{"winograd-4x4"}, Names{"no such form"}}) {
    const Space space = make_space(operator_task("matmul 16 16 16"), forms);
    EXPECT_EQ(drawn_forms(space), std::set<std::string>{"direct"});
  }
}

// The channels that a grouped convolution reads are a quotient of its vector axis: lanes stay
// within a group, where that leaves four or more, or are those of whole groups.
TEST(MakeSpace, LanesOfAGroupedConvolutionDivideAGroupOrHoldWholeOnes) {
  for (const auto& [channels, lanes] :
       {std::pair{256, 16}, {160, 8}, {48, 4}, {72, 16}, {32, 16}}) {
    const std::string op = "conv2d 1 " + std::to_string(channels) + " 14 14 " +
                           std::to_string(channels) + " 3 3 padding=1 groups=4";
    const Target target = *parse_target("llvm -mcpu=skylake-avx512", 2);
    const Space space = make_space(operator_task(op, target), std::vector<std::string>{"direct"});
    for (const Sketch& sketch : space.sketches) {
      const StagePlan& root = sketch.plans.back();
      EXPECT_EQ(root.lanes, lanes) << op;
      const std::string vectors = lanes == 16 ? ".vectors" : ".vectors_of_" + std::to_string(lanes);
      EXPECT_TRUE(std::ranges::any_of(sketch.decisions,
                                      [&](const Decision& d) { return d.name.ends_with(vectors); }))
          << op << " has no " << vectors;
    }
  }
}

}  // namespace
}  // namespace pruner
