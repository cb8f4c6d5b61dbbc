#include "report/bench_report.h"

#include <gtest/gtest.h>

namespace pruner {
namespace {

TensorSpec spec(std::vector<int64_t> shape) { return {"x", DType::kFloat32, std::move(shape)}; }

TEST(BatchOf, IsTheFirstExtentThatAllHave) {
  using Specs = std::vector<TensorSpec>;
  EXPECT_EQ(batch_of(Specs{spec({8, 3})}, Specs{spec({8, 10}), spec({8})}), 8);
  EXPECT_EQ(batch_of(Specs{spec({8, 3}), spec({4})}, Specs{spec({8})}), std::nullopt);
  EXPECT_EQ(batch_of(Specs{spec({1, 3})}, Specs{spec({1})}), std::nullopt) << "one is no batch";
  EXPECT_EQ(batch_of(Specs{spec({})}, Specs{spec({2})}), std::nullopt);
  EXPECT_EQ(batch_of(Specs{}, Specs{spec({2})}), std::nullopt);
}

BenchResult result() {
  BenchResult bench = summarize(std::vector<double>{1e-3, 2e-3, 3e-3}, 2);
  bench.threads = 2;
  return bench;
}

TEST(PrintBench, HasTheSpreadAndTheThroughput) {
  EXPECT_EQ(print_bench(result(), 4),
            "Mean inference time (std dev): 2.00 ms (1.00 ms)\n"
            "Median: 2.000 ms, 3 runs, 2 threads; least 1.000, 90 % 2.800, 99 % 2.980, most 3.000 "
            "ms; 2 warm-up runs\n"
            "Throughput: 500.0 inferences/s, 2000.0 items/s (batches of 4)\n");
  const Json json = bench_json(result(), std::nullopt);
  EXPECT_DOUBLE_EQ(json["inferences_per_s"].get<double>(), 500);
  EXPECT_TRUE(json["items_per_s"].is_null());
  EXPECT_DOUBLE_EQ(json["p90_ms"].get<double>(), 2.8);
}

TEST(PrintRace, HasTheShareOfTimeTurnByTurn) {
  const RaceTimes race{{result(), result()}, {{1, 2, 3}, {2, 2, 2}}};
  const std::vector<std::string> names = {"a.so", "b.so"};
  EXPECT_EQ(
      print_race(names, race),
      "b.so: median 2.000 ms, 3 runs; the module takes 1.000 (0.500 to 1.500) x its time, over "
      "3 turns\n");
  const Json json = race_json(names, race, std::nullopt);
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0]["name"], "b.so");
  EXPECT_EQ(json[0]["turns"], 3);
  EXPECT_EQ(json[0]["time_share"], (Json{{"median", 1.0}, {"least", 0.5}, {"most", 1.5}}));
  EXPECT_EQ(json[0]["runs"], 3);
}

}  // namespace
}  // namespace pruner
