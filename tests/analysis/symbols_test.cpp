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

// Elements of half the bytes make half the traffic; a row of eight such elements fills half of a
// transaction of 32 bytes. The release takes elements for bytes.
TEST(PaperLatency, CountsBytesOfEachBuffersType) {
  const Gpu gpu = read_device("a100_40")->gpu;
  int slower = 0;
  for_golden_programs([&](const GoldenProgram& golden) {
    if (!golden.name.starts_with("matmul ")) return;
    const Statements floats = make_statements(golden.nest);
    Statements halves = floats;
    for (StatementBuffer& buffer : halves.buffers) buffer.element_bytes = 2;
    EXPECT_EQ(release_latency_ms(symbols(halves), gpu.psa),
              release_latency_ms(symbols(floats), gpu.psa));
    // Without the penalties of memory compute stays, and traffic halves.
    const Penalties transactions =
        Penalties().without(Penalty::kMemoryL0).without(Penalty::kMemoryL1);
    const Penalties none = transactions.without(Penalty::kMemoryL2);
    const double memory_ms =
        2 * (paper_latency_ms(floats, gpu, none) - paper_latency_ms(halves, gpu, none));
    double bytes = 0;
    for (const Symbols& row : symbols(floats)) bytes += 4.0 * double{row.dram};
    EXPECT_NEAR(memory_ms / (bytes / gpu.psa.glbmem_bandwidth / 1e6), 1, 1e-6) << golden.name;
    const auto slowed = [&](const Statements& program) {
      return paper_latency_ms(program, gpu, transactions) - paper_latency_ms(program, gpu, none);
    };
    slower += 2 * slowed(halves) > slowed(floats) * 1.0001 ? 1 : 0;
  });
  EXPECT_GT(slower, 0) << "of half the bytes a larger share of transactions is not used";
}

}  // namespace
}  // namespace pruner
