#include "tune/tune.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>

#include "golden.h"
#include "space/carry_over.h"
#include "tensor/operators.h"
#include "tune/fake_measurer.h"
#include "tune/recorded.h"

namespace pruner {
namespace {

WeightedTask operator_task(const std::string& text, int weight = 1) {
  return {make_task(*parse_operator(text), *parse_target("llvm -mcpu=haswell", 2), text), weight};
}

/// A tuner with a machine that is a function, its records in a file of its own.
struct TunerTest : testing::Test {
  TunerTest() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path = (std::filesystem::temp_directory_path() /
            ("pruner_tuner_" + std::to_string(getpid()) + test->name()))
               .string();
    std::filesystem::remove(path);
    options.search.random_samples = 32;
    options.search.evolve = {.population = 32, .generations = 1, .elites = 8};
  }
  ~TunerTest() override { std::filesystem::remove(path); }

  TuneEnd run(FakeMeasurer::Cost cost = FakeMeasurer::by_hash) {
    machine = std::make_unique<FakeMeasurer>(std::move(cost));
    machine->at_once = at_once;
    writer = std::make_unique<RecordWriter>(*RecordWriter::open(path));
    tuner.emplace(
        tasks,
        options,
        TuneTools{*machine, {*model}, *writer, machine->stop, [this](const RoundSummary& summary) {
                    rounds.push_back(summary);
                  }});
    return *tuner->run();
  }

  std::string path;
  std::vector<WeightedTask> tasks = {operator_task("matmul 64 64 64")};
  TuneOptions options;
  std::unique_ptr<CostModel> model = make_calibrated_draft_model();
  int at_once = 1;
  std::unique_ptr<FakeMeasurer> machine;
  std::unique_ptr<RecordWriter> writer;
  std::optional<Tuner> tuner;
  std::vector<RoundSummary> rounds;
};

// Tiles that no search draws, at a shape that is not tuned: recorded, and of no account for the
// task.
TEST_F(TunerTest, MeasuresOtherShapesBesideTheSearch) {
  options.trials = 8;
  run();
  const Task other = operator_task("matmul 65 64 64").task;
  Space space = make_space(other);
  space.any_tiles = true;
  Rng rng(4);
  const Candidate candidate = sample(make_space(other), rng);
  ASSERT_TRUE(tuner->measure_shapes(std::vector<ShapeTrials>{{other, space, {candidate}}}).ok());
  EXPECT_EQ(tuner->trials(), 8);

  const Result<std::vector<Record>> records = read_intact_records(path);
  ASSERT_TRUE(records.ok()) << records.error().message();
  EXPECT_EQ(records->back().origin, kShapesOrigin);
  const RecordedSchedules schedules(*records, other.target);
  EXPECT_EQ(schedules.cost_s(other, space, candidate), FakeMeasurer::by_hash(candidate, 1));
  EXPECT_EQ(schedules.of_task(other), 0);
  EXPECT_FALSE(schedules.best(other, space)) << "it is no result of a search there";
  EXPECT_EQ(schedules.of_device(), std::ssize(*records) - 1);

  const Result<RestoreSummary> again = tuner->restore(*records);
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(again->skipped(), 0);
}

TEST_F(TunerTest, WarmUpLeavesHalfOfASmallBudget) {
  tasks.clear();
  for (int n = 1; n <= 5; ++n)
    tasks.push_back(operator_task("matmul 64 64 " + std::to_string(16 * n)));
  options.trials = 30;
  EXPECT_EQ(run(), TuneEnd::kTrials);
  int64_t warm_up = 0;
  for (size_t i = 0; i < 5; ++i) warm_up += rounds[i].ok;
  EXPECT_LE(warm_up, 15);
  for (const TunedTask& task : tuner->tasks()) EXPECT_GE(task.trials, 1);
}

TEST_F(TunerTest, FewerTrialsThanTasksGoToTheCostliest) {
  tasks = {operator_task("matmul 16 16 16"),
           operator_task("matmul 256 256 256"),
           operator_task("matmul 64 64 64")};
  options.trials = 2;
  EXPECT_EQ(run(), TuneEnd::kTrials);
  EXPECT_EQ(tuner->tasks()[0].trials, 0);
  EXPECT_EQ(tuner->tasks()[1].trials, 1);
  EXPECT_EQ(tuner->tasks()[2].trials, 1);
  EXPECT_FALSE(tuner->total_latency_s().has_value());
}

TEST_F(TunerTest, FirstRoundsAreOfTheirOwnSize) {
  tasks.push_back(operator_task("matmul 64 64 128"));
  options.trials = 30;
  options.first_round_size = 2;
  run();
  EXPECT_EQ(rounds[0].samples.size(), 2u);
  EXPECT_EQ(rounds[1].samples.size(), 2u);
  EXPECT_NE(rounds[0].task, rounds[1].task);
  EXPECT_EQ(rounds[2].samples.size(), 10u);
}

TEST_F(TunerTest, OffersATaskTheBestOfItsOtherShapes) {
  tasks = {operator_task("matmul 64 64 48"),
           operator_task("matmul 64 64 48 +relu"),
           operator_task("matmul 32 64 48")};
  options.trials = 60;
  options.share_shapes = true;
  EXPECT_EQ(run(), TuneEnd::kTrials);
  const std::span<const TunedTask> tuned = tuner->tasks();
  EXPECT_EQ(tuned[0].other_shapes, std::vector<size_t>{2});
  EXPECT_EQ(tuned[2].other_shapes, std::vector<size_t>{0});
  EXPECT_TRUE(tuned[1].other_shapes.empty());
  // Task 2 tried what is nearest to the best of task 0, unless the last round was of task 0.
  const Candidate best = tuned[0].history.best(1)[0].candidate;
  const std::optional<Candidate> near = nearest_like(tuned[0].space, best, tuned[2].space);
  ASSERT_TRUE(near);
  EXPECT_TRUE(tuned[2].history.tried().contains(*near) || rounds.back().task == 0);
}

TEST_F(TunerTest, EndsWhenTheBudgetIsSpent) {
  options.budget_s = 100;
  options.earlier_s = 100;
  EXPECT_EQ(run(), TuneEnd::kBudget);
  EXPECT_EQ(tuner->trials(), 0);
}

TEST_F(TunerTest, EndsAfterTrialsWithoutGain) {
  options.early_stopping = 30;
  EXPECT_EQ(run([](const Candidate&, int) { return 1e-3; }), TuneEnd::kEarlyStopping);
  EXPECT_LE(tuner->trials(), 50);
}

TEST_F(TunerTest, GivesATaskUpThatNeverWorks) {
  EXPECT_EQ(run([](const Candidate&, int) { return kFailedCost; }), TuneEnd::kNothingLeft);
  EXPECT_EQ(tuner->trials(), tuner->tasks()[0].failed);
  EXPECT_LE(tuner->trials(), 40);
}

TEST_F(TunerTest, SaysWhyAllTrialsFailed) {
  options.trials = 5;
  run();
  EXPECT_FALSE(tuner->all_failed());
  std::filesystem::remove(path);
  run([](const Candidate&, int) { return kFailedCost; });
  ASSERT_TRUE(tuner->all_failed());
  EXPECT_EQ(tuner->all_failed()->message(),
            "all 5 trials of this run failed, 5 of them so: made to fail");
  std::filesystem::remove(path);
  int64_t measured = 0;
  run([&](const Candidate&, int) { return ++measured == 3 ? 1e-3 : kFailedCost; });
  EXPECT_FALSE(tuner->all_failed());
}

TEST_F(TunerTest, EndsWhenASmallSpaceIsUsedUp) {
  tasks = {operator_task("relu 1")};
  EXPECT_EQ(run(), TuneEnd::kNothingLeft);
}

// The device's time is not this CPU's: the next task is proposed while one is measured.
TEST_F(TunerTest, SearchesAheadWithoutMoreTrialsThanAllowed) {
  tasks = {operator_task("matmul 256 256 256", 3),
           operator_task("matmul 256 512 256"),
           operator_task("matmul 512 256 128")};
  options.search_ahead = true;
  options.trials = 95;
  EXPECT_EQ(run(), TuneEnd::kTrials);
  EXPECT_EQ(tuner->trials(), 95);
  ASSERT_TRUE(tuner->total_latency_s().has_value());
  int number = 0;
  for (const RoundSummary& round : rounds) {
    if (round.final) continue;
    EXPECT_EQ(round.round, ++number);
    EXPECT_FALSE(round.samples.empty());
    if (number > 1) {
      EXPECT_NE(round.task, rounds[static_cast<size_t>(number) - 2].task) << "in flight";
    }
  }
  const std::vector<Record> records = read_records(path)->records;
  EXPECT_EQ(std::ranges::count(records, "search", &Record::origin), 95);
}

TEST_F(TunerTest, SearchesAheadOfOneTaskInTurns) {
  options.search_ahead = true;
  options.trials = 45;
  EXPECT_EQ(run(), TuneEnd::kTrials);
  EXPECT_EQ(tuner->trials(), 45);
}

// Several batches that workers measure at once may be of one task, too, and no batch has a
// candidate of another batch.
TEST_F(TunerTest, SearchesAheadOfOneTaskForSeveralWorkers) {
  options.search_ahead = true;
  options.trials = 85;
  at_once = 4;
  EXPECT_EQ(run(), TuneEnd::kTrials);
  EXPECT_EQ(tuner->trials(), 85);
  EXPECT_EQ(tuner->tasks()[0].history.trials().size(), 85u);
  options.task_trials = 30;
  std::filesystem::remove(path);
  EXPECT_EQ(run(), TuneEnd::kNothingLeft);
  EXPECT_EQ(tuner->trials(), 30);
}

TEST_F(TunerTest, SearchesAheadUntilItIsStopped) {
  tasks.push_back(operator_task("matmul 64 64 128"));
  options.search_ahead = true;
  EXPECT_EQ(run([this](const Candidate& candidate, int nth) {
              if (machine->measured == 33) machine->stop = true;
              return FakeMeasurer::by_hash(candidate, nth);
            }),
            TuneEnd::kInterrupted);
  EXPECT_GE(tuner->trials(), 33);
  EXPECT_EQ(read_records(path)->records.size(), static_cast<size_t>(tuner->trials()));
}

TEST_F(TunerTest, ADeviceThatIsGoneEndsTheRunAndKeepsTheRecords) {
  for (const bool ahead : {false, true}) {
    std::filesystem::remove(path);
    tasks = {operator_task("matmul 64 64 64"), operator_task("matmul 64 64 128")};
    options.search_ahead = ahead;
    machine = std::make_unique<FakeMeasurer>();
    machine->gone_after = 25;
    writer = std::make_unique<RecordWriter>(*RecordWriter::open(path));
    tuner.emplace(
        tasks,
        options,
        TuneTools{*machine, {*model}, *writer, machine->stop, [](const RoundSummary&) {}});
    EXPECT_ERROR(tuner->run(), "the device is gone");
    EXPECT_GE(read_records(path)->records.size(), 20u);
  }
}

TEST_F(TunerTest, BelievesTheBestOnlyWhenItsTimeIsFoundAgain) {
  // Every twentieth candidate looks twice as fast the first time as it is.
  const auto lucky = [](const Candidate& candidate, int nth) {
    const double true_s = FakeMeasurer::by_hash(candidate, nth);
    return nth == 1 && CandidateHash{}(candidate) % 20 == 0 ? true_s / 2 : true_s;
  };
  options.trials = 100;
  run(lucky);
  const Trial best = tuner->tasks()[0].history.best(1)[0];
  EXPECT_EQ(best.cost_s, FakeMeasurer::by_hash(best.candidate, 2));
  EXPECT_EQ(tuner->trials(), 100) << "looking again is no trial";
}

}  // namespace
}  // namespace pruner
