#include "analysis/draft_form.h"

#include <array>
#include <cmath>

#include "golden_programs.h"
#include "target/device_file.h"

namespace pruner {
namespace {

TEST(DraftForm, IsReadByItsName) {
  EXPECT_EQ(parse_draft_form("ours"), DraftForm::kOurs);
  EXPECT_EQ(parse_draft_form("paper"), DraftForm::kPaper);
  EXPECT_EQ(parse_draft_form("release"), DraftForm::kRelease);
  EXPECT_EQ(parse_draft_form("best"), std::nullopt);
}

// Compute and memory are added in the paper, and the longer one taken in the release, so that is
// never the slower prediction; all forms score every program.
TEST(DraftForm, TheReleaseIsNoSlowerThanThePaper) {
  const Gpu gpu = read_device("a100_40")->gpu;
  for_golden_programs([&](const GoldenProgram& golden) {
    const Statements program = make_statements(golden.nest);
    const double release = draft_score(program, gpu, DraftForm::kRelease);
    const double paper = draft_score(program, gpu, DraftForm::kPaper);
    const double ours = draft_score(program, gpu, DraftForm::kOurs);
    EXPECT_GE(release, paper) << golden.name;
    EXPECT_GT(paper, 0) << golden.name;
    EXPECT_TRUE(std::isfinite(ours) && ours > 0) << golden.name;
  });
}

// Each of the paper's penalties only slows, and slows some program; the release has four of them.
TEST(DraftForm, LeavesOutAPenalty) {
  const Gpu gpu = read_device("a100_40")->gpu;
  for (const DraftForm form : {DraftForm::kPaper, DraftForm::kRelease}) {
    std::array<int, std::size(kPenaltyNames)> faster{};
    for_golden_programs([&](const GoldenProgram& golden) {
      const Statements program = make_statements(golden.nest);
      const double whole = draft_score(program, gpu, form);
      for (size_t p = 0; p < faster.size(); ++p) {
        const Penalties fewer = Penalties().without(*parse_penalty(kPenaltyNames[p]));
        const double score = draft_score(program, gpu, form, fewer);
        EXPECT_GE(score, whole * 0.9999) << golden.name << " " << kPenaltyNames[p];
        faster[p] += score > whole * 1.0001 ? 1 : 0;
      }
    });
    EXPECT_GT(faster[static_cast<size_t>(Penalty::kComputeL0)], 0);
    EXPECT_GT(faster[static_cast<size_t>(Penalty::kComputeL2)], 0);
    EXPECT_EQ(faster[static_cast<size_t>(Penalty::kMemoryL2)] > 0, form == DraftForm::kPaper);
  }
}

// Our form predicts no less than the time of the bytes of an addition, which the released form does
// not count.
TEST(DraftForm, OursCountsBytesWhereTheReleaseSeesNone) {
  const Gpu gpu = read_device("a100_40")->gpu;
  double highest = 0;
  for_golden_programs([&](const GoldenProgram& golden) {
    if (!golden.name.starts_with("add")) return;
    highest = std::max(highest, draft_score(make_statements(golden.nest), gpu, DraftForm::kOurs));
  });
  // Three tensors of 1024 x 1000 floats at the bandwidth of the device.
  EXPECT_LT(highest, 1 / (1e3 * 3 * 1024 * 1000 * 4 / gpu.dram_bandwidth));
}

}  // namespace
}  // namespace pruner
