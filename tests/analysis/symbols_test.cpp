#include "analysis/symbols.h"

#include "golden_programs.h"
#include "target/device_file.h"

namespace pruner {
namespace {

TEST(Symbols, AreThoseOfTheReference) {
  const int programs = for_golden_programs([&](const GoldenProgram& golden) {
    const std::vector<Symbols> rows = symbols(make_statements(golden.nest));
    const Json& names = golden.state["rows"];
    ASSERT_EQ(rows.size(), names.size()) << golden.name;
    for (const Symbols& row : rows) {
      const std::string name = golden.nest.structure->dag[row.buffer].name;
      const size_t at = static_cast<size_t>(std::ranges::find(names, Json(name)) - names.begin());
      ASSERT_LT(at, names.size()) << golden.name << ": " << name;
      for (size_t i = 0; i < kSymbols; ++i) {
        EXPECT_EQ(row.values()[i], golden.state["psa"][at][i].get<float>())
            << golden.name << ": symbol " << i << " of " << name;
      }
    }
  });
  EXPECT_GE(programs, kGoldenPrograms);
}

TEST(Symbols, ScoreAsTheReferenceDoes) {
  const int programs = for_golden_programs([&](const GoldenProgram& golden) {
    const std::vector<Symbols> rows = symbols(make_statements(golden.nest));
    for (const char* device : {"a100_40", "t4", "titanv"}) {
      const double expected = golden.state["psa_score"][device].get<double>();
      const double score = 1 / release_latency_ms(rows, read_device(device)->gpu.psa);
      EXPECT_NEAR(score / expected, 1, 1e-6) << golden.name << " on a " << device;
    }
  });
  EXPECT_GE(programs, kGoldenPrograms);
}

}  // namespace
}  // namespace pruner
