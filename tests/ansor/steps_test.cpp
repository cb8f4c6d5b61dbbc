#include "ansor/steps.h"

#include "golden.h"

namespace pruner::ansor {
namespace {

Result<std::vector<Step>> steps(const std::string& text) {
  return steps_from_json(*parse_json(text));
}

TEST(StepsFromJson, ReadsEveryKindAndPrintsItAsItWas) {
  const std::string text =
      R"([["CHW", 2, "local"], ["SP", 2, 0, 512, [1, 64, 1, 1], 1], ["RE", 2, [1, 0]], )"
      R"(["FSP", 3, 0, 1, 3], ["FFSP", 3, 0, [2, 1], 1, 1], ["CA", 2, 3, 5], ["CI", 4], )"
      R"(["CR", 4], ["CHR", 1, "shared", [2, 3]], ["FU", 5, [0, 1]], ["AN", 5, 0, 5], )"
      R"(["PR", 4, 0, "auto_unroll_max_step$512"], ["SA", 1, 0, 32, 8], ["RF", 1, 2, 1]])";
  const auto read = steps(text);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->size(), 14u);
  const Json printed = steps_to_json(*read);
  EXPECT_EQ(print_json(printed), text);
  EXPECT_EQ(print_json(steps_to_json(*steps_from_json(printed))), text);
  EXPECT_EQ(std::get<SplitStep>((*read)[1]).lengths, (std::vector<int64_t>{1, 64, 1, 1}));
  EXPECT_EQ(std::get<AnnotationStep>((*read)[10]).annotation, Annotation::kBlockX);
}

TEST(StepsFromJson, NamesTheStepThatIsNone) {
  EXPECT_ERROR(steps("{}"), "the steps are no list");
  EXPECT_ERROR(steps(R"([["CI", 1], 7])"), "step 1: not a list that starts with a code");
  EXPECT_ERROR(steps(R"([["XY", 1]])"), "step 0: unknown code \"XY\"");
  EXPECT_ERROR(steps(R"([["CA", 1, 2]])"), "step 0: CA has fewer items than it needs");
  EXPECT_ERROR(steps(R"([["CI", 1, 2]])"), "step 0: CI has more items than it has");
  EXPECT_ERROR(steps(R"([["CI", "x"]])"), "step 0: CI has no whole number");
  EXPECT_ERROR(steps(R"([["CI", 1e300]])"), "step 0: CI has no whole number");
  EXPECT_ERROR(steps(R"([["CI", 99999999999]])"), "step 0: CI has a number out of range");
  EXPECT_ERROR(steps(R"([["AN", 1, 0, 12]])"), "step 0: AN has an unknown annotation");
  EXPECT_ERROR(steps(R"([["SP", 1, 0, 8, [2, null], 1]])"), "SP has a list with something");
  EXPECT_ERROR(steps(R"([["FU", 1, 3]])"), "step 0: FU has no list");
  EXPECT_ERROR(steps(R"([["CHW", 1, 3]])"), "step 0: CHW has no text");
}

}  // namespace
}  // namespace pruner::ansor
