#include <gtest/gtest.h>

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
  EXPECT_EQ(form_names(), (Names{"direct", "split-k", "winograd-2x2", "winograd-4x4"}));
}

TEST(DrawOnly, RestrictsWhatIsDrawn) {
  Space space = make_space(operator_task(kConvolution));
  EXPECT_EQ(space.drawn.size(), space.sketches.size());
  EXPECT_EQ(drawn_forms(space), (std::set<std::string>{"direct", "winograd-2x2", "winograd-4x4"}));
  draw_only(space, Names{"winograd-4x4"});
  EXPECT_EQ(drawn_forms(space), std::set<std::string>{"winograd-4x4"});
  draw_only(space, Names{"winograd-2x2", "direct"});
  EXPECT_EQ(drawn_forms(space), (std::set<std::string>{"direct", "winograd-2x2"}));
  draw_only(space, {});
  EXPECT_EQ(space.drawn.size(), space.sketches.size());
}

TEST(DrawOnly, KeepsAllSketchesSoThatRecordsAreRead) {
  Space space = make_space(operator_task(kConvolution));
  draw_only(space, Names{"direct"});
  Space all = make_space(operator_task(kConvolution));
  draw_only(all, Names{"winograd-2x2"});
  Rng rng(2);
  const Candidate other = sample(all, rng);
  EXPECT_TRUE(is_legal(space, other));
  const Result<Candidate> parsed = parse_candidate(space, print(all, other));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  EXPECT_EQ(*parsed, other);
}

TEST(DrawOnly, KeepsTheDirectFormOfATaskThatHasNoneOfThem) {
  Space space = make_space(operator_task("matmul 16 16 16"));
  for (const Names& forms : {Names{"winograd-4x4"}, Names{"no such form"}}) {
    draw_only(space, forms);
    EXPECT_EQ(drawn_forms(space), std::set<std::string>{"direct"});
  }
}

}  // namespace
}  // namespace pruner
