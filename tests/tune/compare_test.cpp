#include "tune/compare.h"

#include <unistd.h>

#include <filesystem>

#include "golden.h"
#include "tensor/operators.h"
#include "tune/fake_measurer.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

WeightedTask operator_task(const std::string& text, int weight) {
  return {make_task(*parse_operator(text), *parse_target("llvm -mcpu=haswell", 2), text), weight};
}

/// Two modes on a machine that is a function, in a folder of their own.
struct CompareModes : testing::Test {
  CompareModes() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    options.work_dir =
        (fs::temp_directory_path() / ("pruner_compare_" + std::to_string(getpid()) + test->name()))
            .string();
    clear();
    options.tune.trials = 40;
    options.tune.first_round_size = 2;
    options.tune.search.random_samples = 32;
    options.tune.search.evolve = {.population = 32, .generations = 1, .elites = 8};
  }
  ~CompareModes() override { fs::remove_all(options.work_dir); }
  void clear() const {
    fs::remove_all(options.work_dir);
    fs::create_directories(options.work_dir);
  }

  static Contestant contestant(const std::string& name) {
    const SearchMode& mode = **find_mode(name);
    return {.name = name, .mode = mode, .models = {}, .search = mode.policy->options};
  }

  Result<std::vector<TuningCurve>> run() {
    rounds.clear();
    const auto on_round = [this](const Contestant& c, const Tuner&, const RoundSummary& summary) {
      rounds.push_back({c.name, summary});
    };
    return compare_modes(tasks, contestants, options, {*machine, machine->stop, on_round});
  }

  std::vector<Record> records(const std::string& mode, const std::string& origin) const {
    const std::string path = compared_records(options.work_dir, mode, options.tune.seed);
    std::vector<Record> found = read_records(path)->records;
    std::erase_if(found, [&](const Record& r) { return r.origin != origin; });
    return found;
  }

  std::vector<WeightedTask> tasks = {operator_task("matmul 64 64 64", 3),
                                     operator_task("softmax 64 1000", 1)};
  std::vector<Contestant> contestants = {contestant("random"), contestant("draft-only")};
  CompareOptions options;
  std::unique_ptr<FakeMeasurer> machine = std::make_unique<FakeMeasurer>();
  std::vector<std::pair<std::string, RoundSummary>> rounds;
};

TEST_F(CompareModes, TakeTurnsAndBeginEachTaskWithTwoCandidates) {
  const auto curves = run();
  ASSERT_TRUE(curves.ok()) << curves.error().message();
  std::vector<std::string> turns;
  for (size_t i = 0; i < 6; ++i) turns.push_back(rounds[i].first);
  EXPECT_EQ(turns,
            (std::vector<std::string>{
                "random", "draft-only", "draft-only", "random", "random", "draft-only"}));
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(rounds[i].second.samples.size(), 2u) << i;
  EXPECT_EQ(rounds[4].second.samples.size(), 10u);
  ASSERT_EQ(curves->size(), 2u);
  for (const TuningCurve& curve : *curves) {
    EXPECT_EQ(curve.trials, 40);
    EXPECT_TRUE(curve.complete);
    EXPECT_EQ(records(curve.mode, "search").size(), 40u);
    EXPECT_FALSE(records(curve.mode, "final").empty());
  }
}

TEST_F(CompareModes, ACurveFallsFromTheTrialThatMadeEveryTaskValid) {
  const auto curves = run();
  ASSERT_TRUE(curves.ok());
  for (const TuningCurve& curve : *curves) {
    ASSERT_GE(curve.points.size(), 2u);
    EXPECT_EQ(curve.points.front().trials, 3) << "two of the first task, one of the second";
    for (size_t i = 1; i < curve.points.size(); ++i) {
      EXPECT_GT(curve.points[i].trials, curve.points[i - 1].trials);
      EXPECT_GE(curve.points[i].seconds, curve.points[i - 1].seconds);
      EXPECT_LT(curve.points[i].latency_s, curve.points[i - 1].latency_s);
    }
    EXPECT_LE(curve.points.back().seconds, curve.search_s);
  }
}

TEST_F(CompareModes, OneSeedIsOneOutcome) {
  const auto outcome = [&] {
    clear();
    machine = std::make_unique<FakeMeasurer>();
    std::vector<std::pair<int64_t, double>> points;
    const auto curves = run();
    for (const TuningCurve& curve : *curves) {
      for (const CurvePoint& point : curve.points)
        points.emplace_back(point.trials, point.latency_s);
    }
    return points;
  };
  const auto first = outcome();
  EXPECT_EQ(outcome(), first);
  options.tune.seed = 1;
  EXPECT_NE(outcome(), first);
}

TEST_F(CompareModes, ATimeThatIsNotFoundAgainDoesNotCount) {
  // The first time, every candidate looks twice as fast as it is.
  machine = std::make_unique<FakeMeasurer>([](const Candidate& candidate, int nth) {
    return FakeMeasurer::by_hash(candidate, nth) / (nth == 1 ? 2 : 1);
  });
  options.tune.remeasure = false;
  const auto curves = run();
  ASSERT_TRUE(curves.ok());
  for (const TuningCurve& curve : *curves)
    EXPECT_GE(*curve.final_s(), 4 * 1e-3) << "no candidate is faster than 1 ms; the weights are 4";
}

TEST_F(CompareModes, EachHasOnlyItsOwnTime) {
  const auto start = std::chrono::steady_clock::now();
  const auto curves = run();
  const double all_s = seconds_since(start);
  ASSERT_TRUE(curves.ok());
  EXPECT_GT((*curves)[0].search_s, 0);
  EXPECT_LE((*curves)[0].search_s + (*curves)[1].search_s, all_s);
}

TEST_F(CompareModes, AnInterruptKeepsWhatThereIs) {
  machine->stop_after = 1 + 30;  // the first starts the machine
  const auto curves = run();
  ASSERT_TRUE(curves.ok()) << curves.error().message();
  EXPECT_EQ((*curves)[0].trials + (*curves)[1].trials, 30);
  for (const TuningCurve& curve : *curves) {
    EXPECT_FALSE(curve.complete);
    EXPECT_FALSE(curve.points.empty());
    EXPECT_EQ(static_cast<int64_t>(records(curve.mode, "search").size()), curve.trials);
  }
}

TEST_F(CompareModes, DoNotAddToRecordsThatAreThere) {
  ASSERT_TRUE(run().ok());
  EXPECT_ERROR(run(), "records-random-0.json: is there already");
  for (const Contestant& c : contestants)
    ASSERT_TRUE(set_aside_records(options.work_dir, c.name, 0).ok());
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(read_records(options.work_dir + "/records-random-0.json.1")->records.size(),
            read_records(options.work_dir + "/records-random-0.json")->records.size());
}

TEST_F(CompareModes, SayWhichLacksWeights) {
  contestants.push_back(contestant("moa-pruner"));
  EXPECT_ERROR(run(), "pam-siamese-update needs weights");
}

}  // namespace
}  // namespace pruner
