#include "dataset/pretrain.h"

#include <filesystem>

#include "dataset/synthetic_table.h"
#include "golden.h"
#include "support/file.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

struct Pretrain : testing::Test {
  Pretrain() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    dir =
        (fs::temp_directory_path() / ("pruner_pretrain_" + std::to_string(getpid())) / test->name())
            .string();
    fs::create_directories(dir);
    options.out_file = dir + "/model.safetensors";
    options.epochs = 12;
    options.split.seed = 3;
  }
  ~Pretrain() override { fs::remove_all(dir); }

  static ProgramTable tasks(const std::string& target) {
    ProgramTable table;
    for (const char* workload : {"a", "b", "c", "d", "e"})
      add_synthetic(workload, target, 100, table);
    return table;
  }
  Result<Pretrained> run(ProgramTable table) { return pretrain(table, options, {nullptr, stop}); }
  std::string dir;
  PretrainOptions options;
  std::atomic<bool> stop = false;
};

#define NEEDS_TRAINER(trained)                                                         \
  if (!trained.ok() && trained.error().message().find("plug-in") != std::string::npos) \
  GTEST_SKIP() << trained.error().message()

TEST_F(Pretrain, OrdersWhatItHasNotSeenAndKnowsWhatItHas) {
  const Result<Pretrained> trained = run(tasks("cuda"));
  NEEDS_TRAINER(trained);
  ASSERT_TRUE(trained.ok()) << trained.error().message();
  EXPECT_EQ(trained->trained_on, 450);
  EXPECT_EQ(trained->held_out, 50);
  EXPECT_EQ(trained->tasks, 5);
  ASSERT_TRUE(trained->held_out_evaluation);
  EXPECT_EQ(trained->held_out_evaluation->metrics.programs, 50);
  EXPECT_GT(trained->held_out_evaluation->metrics.pairwise_accuracy, 0.85);
  EXPECT_FALSE(fs::exists(options.out_file + ".checkpoint"));

  const auto model = load_learned_model(options.out_file, 1);
  ASSERT_TRUE(model.ok()) << model.error().message();
  const std::optional<TrainedOn> seen = *(*model)->trained_on();
  const SeenCount count = count_seen(tasks("cuda"), seen);
  EXPECT_TRUE(count.known);
  EXPECT_EQ(count.seen, 450);
  EXPECT_EQ(count.of_known_tasks, 50);
}

TEST_F(Pretrain, FineTuningKnowsBothTrainings) {
  ProgramTable first;
  add_synthetic("a", "cuda", 100, first);
  const Result<Pretrained> trained = run(std::move(first));
  NEEDS_TRAINER(trained);
  ASSERT_TRUE(trained.ok()) << trained.error().message();
  options.load_model = options.out_file;
  options.out_file = dir + "/tuned.safetensors";
  ProgramTable second;
  add_synthetic("b", "rocm", 100, second);
  const Result<Pretrained> tuned = run(std::move(second));
  ASSERT_TRUE(tuned.ok()) << tuned.error().message();
  const TrainedOn seen = *load_weights(options.out_file)->trained_on;
  EXPECT_EQ(seen.programs.size(), 180u);
  EXPECT_TRUE(seen.complete && seen.has_workload("a") && seen.has_workload("b"));
  EXPECT_EQ(seen.steps.size(), 2u);
}

TEST_F(Pretrain, AnInterruptedTrainingGoesOnToTheSameEnd) {
  const Result<Pretrained> whole = run(tasks("cuda"));
  NEEDS_TRAINER(whole);
  ASSERT_TRUE(whole.ok()) << whole.error().message();
  const ModelWeights expected = *load_weights(options.out_file);
  fs::remove(options.out_file);

  ProgramTable table = tasks("cuda");
  const PretrainWatch cut{[&](const PretrainProgress& p) { stop = p.now.step > 5; }, stop};
  const Result<Pretrained> interrupted = pretrain(table, options, cut);
  ASSERT_TRUE(interrupted.ok()) << interrupted.error().message();
  EXPECT_TRUE(interrupted->interrupted);
  EXPECT_FALSE(fs::exists(options.out_file));

  stop = false;
  options.resume = true;
  const Result<Pretrained> resumed = run(tasks("cuda"));
  ASSERT_TRUE(resumed.ok()) << resumed.error().message();
  EXPECT_TRUE(resumed->resumed);
  EXPECT_EQ(resumed->report.losses, whole->report.losses);
  EXPECT_EQ(*load_weights(options.out_file), expected);
}

TEST_F(Pretrain, RefusesTheCheckpointOfAnotherRun) {
  ProgramTable table = tasks("cuda");
  const PretrainWatch cut{[&](const PretrainProgress& p) { stop = p.now.step > 2; }, stop};
  const Result<Pretrained> interrupted = pretrain(table, options, cut);
  NEEDS_TRAINER(interrupted);
  stop = false;
  options.resume = true;
  options.epochs = 20;
  EXPECT_ERROR(run(tasks("cuda")), "checkpoint: of a run with other options or programs");
}

TEST_F(Pretrain, TreesKnowWhatTheyHaveSeenToo) {
  options.model = "xgb";
  options.out_file = dir + "/model.json";
  const Result<Pretrained> trained = run(tasks("cuda"));
  if (!trained.ok() && trained.error().message().starts_with("no libxgboost"))
    GTEST_SKIP() << trained.error().message();
  ASSERT_TRUE(trained.ok()) << trained.error().message();
  EXPECT_GT(trained->held_out_evaluation->metrics.pairwise_accuracy, 0.7);
  const auto model = load_learned_model(options.out_file, 1);
  EXPECT_EQ((*(*model)->trained_on())->programs.size(), 450u);
}

TEST_F(Pretrain, SaysWhatCannotBeTrainedOn) {
  ProgramTable alike;
  for (uint64_t i = 0; i < 20; ++i) {
    ProgramFeatures features;
    features.rows.assign(kRowFeatures, static_cast<float>(i));
    alike.add({"a", "cuda"}, i, features, 1e-3);
  }
  EXPECT_ERROR(run(alike), "all 18 programs of the training set are equally fast");
  ProgramTable one;
  add_synthetic("a", "cuda", 1, one);
  EXPECT_ERROR(run(std::move(one)), "the training set is empty: 0 of 1 programs are left");
  options.model = "linear";
  EXPECT_ERROR(run(tasks("cuda")), "--model linear cannot be trained; use pam, mlp, tlp or xgb");
}

}  // namespace
}  // namespace pruner
