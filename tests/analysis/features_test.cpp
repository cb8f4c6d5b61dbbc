#include "analysis/features.h"

#include <cmath>

#include "analysis/symbols.h"
#include "golden_programs.h"

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

}  // namespace
}  // namespace pruner
