#include "analysis/features.h"

#include <fmt/format.h>

#include <cmath>
#include <sstream>

#include "analysis/draft.h"
#include "analysis/draft_form.h"
#include "analysis/symbols.h"
#include "golden_programs.h"
#include "space/space.h"
#include "support/rng.h"
#include "target/device_file.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

void expect_near(float value, float expected, const std::string& what) {
  EXPECT_LE(std::abs(value - expected), 1e-5f * std::max(1.0f, std::abs(expected)))
      << what << ": " << value << ", not " << expected;
}

TEST(Features, RowsAreThoseOfTheReference) {
  const int programs = for_golden_programs([&](const GoldenProgram& golden) {
    const Statements program = make_statements(golden.nest);
    const TaskFlags flags = task_flags(golden.nest.structure->task);
    const ProgramFeatures f = features(program, flags, true);
    const Json& names = golden.state["rows"];
    const std::vector<Symbols> rows = symbols(program);
    ASSERT_EQ(f.row_count(), names.size()) << golden.name;
    for (size_t r = 0; r < rows.size(); ++r) {
      const std::string name = golden.nest.structure->dag[rows[r].buffer].name;
      const size_t at = static_cast<size_t>(std::ranges::find(names, Json(name)) - names.begin());
      const Json& expected = golden.state["statement_features"][at];
      for (size_t i = 0; i < kStatementFeatures; ++i) {
        expect_near(f.rows[r * kRowFeatures + i],
                    expected[i].get<float>(),
                    golden.name + ": feature " + std::to_string(i) + " of " + name);
      }
      for (size_t i = 0; i < kTaskFeatures; ++i) {
        EXPECT_EQ(f.rows[r * kRowFeatures + kStatementFeatures + i],
                  golden.state["task_embedding"][i].get<float>())
            << golden.name << ": flag " << i;
      }
    }
  });
  EXPECT_GE(programs, kGoldenPrograms);
}

TEST(Features, DataflowIsThatOfTheReference) {
  int patterns = 0;
  for_golden_programs([&](const GoldenProgram& golden) {
    const ProgramFeatures f = features(make_statements(golden.nest), {}, true);
    const Json& expected = golden.state["dataflow_features"];
    if (expected.empty()) {
      EXPECT_EQ(f.dataflow, decltype(f.dataflow){}) << golden.name;
      return;
    }
    for (size_t step = 0; step < kDataflowSteps; ++step) {
      for (size_t i = 0; i < kDataflowFeatures; ++i) {
        expect_near(
            f.dataflow[step * kDataflowFeatures + i],
            expected[step][i].get<float>(),
            golden.name + ": number " + std::to_string(i) + " of step " + std::to_string(step));
      }
    }
    ++patterns;
  });
  EXPECT_GE(patterns, 7);
}

/// "54 numbers, sum 123.46, largest 20": what is not 0 of them.
std::string summary(std::span<const float> numbers) {
  int count = 0;
  double sum = 0, largest = 0;
  for (const float number : numbers) {
    count += number != 0;
    sum += number;
    largest = std::max(largest, std::abs(double{number}));
  }
  return fmt::format("{} numbers, sum {:.5g}, largest {:.5g}", count, sum, largest);
}

/// Returns what the analysis says of a candidate; the text `?` stands for a drawn candidate.
std::string describe(const std::string& op,
                     const std::string& device,
                     const std::string& candidate_text) {
  const Target target = *read_device(device);
  const Space space = make_space(make_task(*parse_operator(op), target, op));
  Rng rng(1);
  const Result<Candidate> candidate = candidate_text == "?"
                                          ? Result<Candidate>(sample(space, rng))
                                          : parse_candidate(space, candidate_text);
  if (!candidate.ok()) return candidate.error().message();
  const LoopNest nest = make_loop_nest(space, *candidate);
  const Statements program = make_statements(nest);
  std::string text = op + " | " + device + "\n" + print(space, *candidate) + "\n";
  if (target.is_gpu()) {
    for (const DraftForm form : {DraftForm::kRelease, DraftForm::kPaper, DraftForm::kOurs})
      text += fmt::format(
          "{} {:.5g}/ms\n", draft_form_name(form), draft_score(program, target.gpu, form));
  } else {
    text += print(draft(nest, target), *nest.dag);
  }
  const ProgramFeatures f = features(program, task_flags(space[candidate->sketch].dag));
  const std::vector<Symbols> rows = symbols(program);
  for (size_t r = 0; r < rows.size(); ++r) {
    text += (*nest.dag)[rows[r].buffer].name + ":";
    for (const float value : rows[r].values()) text += fmt::format(" {:.6g}", value);
    text += "\n  " + summary(std::span(f.rows).subspan(r * kRowFeatures, kRowFeatures)) + "\n";
  }
  return text + "data flow: " + summary(f.dataflow) + "\n";
}

// Candidates of ours on devices of devices/, some with operators that the reference gave nothing
// for. Each entry of the file begins with its operator, device and candidate.
TEST(Features, SymbolsAndDraftsOfOwnProgramsAreAsWrittenDown) {
  const std::string name = "analysis/own_programs.txt";
  const std::string written = *read_file(test_path("golden/" + name));
  std::string found;
  int programs = 0;
  std::istringstream lines(written);
  for (std::string line, candidate; std::getline(lines, line);) {
    const size_t bar = line.find(" | ");
    if (bar == std::string::npos) continue;
    ASSERT_TRUE(std::getline(lines, candidate)) << line;
    found += (found.empty() ? "" : "\n") +
             describe(line.substr(0, bar), line.substr(bar + 3), candidate);
    ++programs;
  }
  EXPECT_EQ(programs, 12);
  EXPECT_GOLDEN(name, found);
}

}  // namespace
}  // namespace pruner
