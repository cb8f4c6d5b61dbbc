#include "model/train.h"

#include <cmath>

#include "golden.h"
#include "model/nn/network.h"
#include "model/synthetic.h"
#include "model/trainer_here.h"
#include "support/json.h"

namespace pruner {
namespace {

double held_out_accuracy(const ModelWeights& weights) {
  const std::vector<TrainingSample> samples = synthetic_samples(8, 60, 999);
  return accuracy_of(Network(weights).predict(features_of(samples), 1), samples);
}

/// All programs, each to be scored once.
TrainingBatch batch_of(const Architecture& architecture,
                       std::span<const ProgramFeatures> programs) {
  TrainingBatch batch;
  std::vector<const ProgramFeatures*> pointers;
  for (const ProgramFeatures& program : programs) {
    batch.requests.push_back({std::ssize(pointers), 0});
    pointers.push_back(&program);
  }
  for (const Branch& branch : branches_of(architecture)) {
    const std::vector<float> ones(static_cast<size_t>(input_row(branch.input).width), 1);
    batch.branches.push_back(make_tokens(branch.input, pointers, {.divisor = ones}));
  }
  return batch;
}

TEST(Train, TeachesBothNetworksToOrderProgramsTheyHaveNotSeen) {
  NEEDS_TRAINER();
  const std::vector<TrainingSample> samples = synthetic_samples(8, 120, 1);
  for (const Architecture* architecture : {&kPacm, &kTenSetMlp}) {
    ModelWeights start = initial_weights(*architecture, 3);
    ModelWeights untrained = start;
    widen_scales(scales_of(samples), untrained);
    const Result<Trained> trained = train(start, samples, {.epochs = 30, .seed = 4});
    ASSERT_TRUE(trained.ok()) << trained.error().message();
    const double before = held_out_accuracy(untrained);
    const double after = held_out_accuracy(trained->weights);
    EXPECT_LT(before, 0.7);
    // The data flow, which TenSetMLP does not see, decides a part of the pairs.
    EXPECT_GT(after, architecture == &kPacm ? 0.9 : 0.8) << "before " << before;

    const TrainReport& report = trained->report;
    ASSERT_EQ(report.losses.size(), static_cast<size_t>(report.epochs));
    EXPECT_LT(report.losses.back(), 0.5 * report.losses.front());
    EXPECT_EQ(report.validation_accuracy.size(), report.losses.size());
    EXPECT_EQ(report.validation_losses[static_cast<size_t>(report.best_epoch - 1)],
              *std::ranges::min_element(report.validation_losses));
    RecordProperty("samples_per_s", std::to_string(report.samples_per_s));
  }
}

TEST(Train, AsPublishedLearnsToo) {
  NEEDS_TRAINER();
  const std::vector<TrainingSample> samples = synthetic_samples(8, 120, 1);
  TrainOptions options = published_training(kPacm);
  EXPECT_EQ(options.patience, 16);
  EXPECT_EQ(published_training(kTenSetMlp).patience, 8);
  options.epochs = 30;
  const Result<Trained> trained = train(initial_weights(kPacm, 3), samples, options);
  ASSERT_TRUE(trained.ok()) << trained.error().message();
  EXPECT_GT(held_out_accuracy(trained->weights), 0.85);
  EXPECT_TRUE(trained->report.validation_accuracy.empty());
  EXPECT_EQ(trained->weights.scale[Input::kStatements], scales_of(samples)[Input::kStatements]);
}

TEST(Train, GoesOnFromTheLastWeightsWithinItsTimeBox) {
  NEEDS_TRAINER();
  const std::vector<TrainingSample> samples = synthetic_samples(8, 120, 1);
  const Result<Trained> first = train(initial_weights(kTenSetMlp, 3), samples, {.epochs = 15});
  ASSERT_TRUE(first.ok()) << first.error().message();
  const double reached = held_out_accuracy(first->weights);
  const Result<Trained> second =
      train(first->weights, samples, {.epochs = 1000, .patience = 0, .time_box_s = 0.3, .seed = 5});
  ASSERT_TRUE(second.ok()) << second.error().message();
  EXPECT_EQ(second->report.stopped, "time box");
  EXPECT_LT(second->report.epochs, 1000);
  EXPECT_GT(held_out_accuracy(second->weights), reached - 0.05);
}

TEST(Train, GivesTheSameWeightsForTheSameSeed) {
  NEEDS_TRAINER();
  const std::vector<TrainingSample> samples = synthetic_samples(3, 30, 1);
  const auto run = [&](uint64_t seed) {
    return train(initial_weights(kPacm, 3), samples, {.epochs = 2, .seed = seed})->weights;
  };
  const ModelWeights first = run(1);
  EXPECT_EQ(run(1), first);
  EXPECT_NE(run(2), first);
}

TEST(Train, FineTuningIsPlainSgdOnTheScalesThatWere) {
  NEEDS_TRAINER();
  const std::vector<TrainingSample> samples = synthetic_samples(3, 30, 1);
  const ModelWeights start = random_weights(kPacm, 7);
  TrainOptions options = published_fine_tuning();
  options.epochs = 1;
  const Result<Trained> tuned = train(start, samples, options);
  ASSERT_TRUE(tuned.ok()) << tuned.error().message();
  EXPECT_EQ(tuned->weights.scale[Input::kStatements], start.scale[Input::kStatements]);
  EXPECT_NE(tuned->weights.tensors, start.tensors);
}

TEST(Train, NeedsTwoPrograms) {
  EXPECT_ERROR(train(initial_weights(kPacm, 1), synthetic_samples(1, 1, 1), {}),
               "training needs two programs, there are 1");
}

TEST(InitialWeights, FitTheirNetworkOnceTheyHaveScales) {
  for (const Architecture* architecture : {&kPacm, &kTenSetMlp}) {
    ModelWeights weights = initial_weights(*architecture, 1);
    EXPECT_ERROR(check_weights(weights), "it has no scales of statement rows");
    widen_scales(scales_of(synthetic_samples(2, 3, 1)), weights);
    EXPECT_TRUE(check_weights(weights).ok());
    EXPECT_LE(std::abs(weights.tensors["l0.0.bias"].values[9]), 1 / 16.0f);
    EXPECT_NE(weights.tensors["l0.0.bias"].values[9], 0);
  }
}

TEST(TorchTrainer, GivesThePublishedScoresByBatchStatistics) {
  NEEDS_TRAINER();
  const std::string folder = PRUNER_SHARED_DATA "/pruner-checkpoints/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
  const Json golden = *parse_json(*read_file(folder + "golden_forward.json"));
  std::vector<ProgramFeatures> programs;
  size_t row = 0;
  for (const Json& segment : golden["segments"]) {
    ProgramFeatures& program = programs.emplace_back();
    for (const size_t end = row + segment.get<size_t>(); row < end; ++row) {
      for (const Json& value : golden["X"][row]) program.rows.push_back(value.get<float>());
      program.rows.resize(program.rows.size() + kRowFeatures - kPublishedRowFeatures);
    }
    float* to = program.dataflow.data();
    for (const Json& step : golden["Z"][programs.size() - 1])
      for (const Json& value : step) *to++ = value.get<float>();
  }
  const TrainingBatch batch = batch_of(kPacm, programs);  // its numbers are divided already
  const auto trainer = make_torch_trainer(*load_weights(folder + "pam_k80_1500.pkl"), {});
  ASSERT_TRUE(trainer.ok()) << trainer.error().message();
  const Result<std::vector<float>> scores = (*trainer)->forward(batch);
  ASSERT_TRUE(scores.ok()) << scores.error().message();
  const Json& expected = golden["results"]["k80"]["score_batch_statistics"];
  for (size_t b = 0; b < expected.size(); ++b)
    EXPECT_NEAR((*scores)[b], expected[b].get<float>(), 1e-4) << b;
}

TEST(TorchTrainerDeathTest, SaysWhatToInstallWithoutThePlugin) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process that has not loaded it
  EXPECT_EXIT(
      {
        setenv("PRUNER_TORCH_PLUGIN", "/nowhere/libpruner_torch.so", 1);
        const auto trainer = make_torch_trainer(random_weights(kPacm, 1), {});
        std::cerr << (trainer.ok() ? "a trainer" : trainer.error().message());
        std::exit(0);
      },
      testing::ExitedWithCode(0),
      "training needs the plug-in libpruner_torch.so, .* install libtorch-dev");
}

TEST(TorchTrainer, WordsWhatLibTorchThrows) {
  NEEDS_TRAINER();
  ModelWeights weights = random_weights(kTenSetMlp, 1);
  weights.tensors.erase("l1.0.bias");
  const auto trainer = make_torch_trainer(weights, {});
  ASSERT_TRUE(trainer.ok());
  ProgramFeatures program;
  program.rows.resize(kRowFeatures);
  const TrainingBatch batch = batch_of(kTenSetMlp, {&program, 1});
  EXPECT_ERROR((*trainer)->forward(batch), "LibTorch: ");
}

}  // namespace
}  // namespace pruner
