#include "model/learned_model.h"

#include <cmath>

#include "golden.h"
#include "model/checkpoints.h"
#include "model/synthetic.h"
#include "model/trainer_here.h"
#include "own_path.h"

namespace pruner {
namespace {

std::unique_ptr<LearnedModel> made(std::string_view name, const LearnedModelOptions& options = {}) {
  Result<std::unique_ptr<LearnedModel>> model = make_learned_model(name, options);
  EXPECT_TRUE(model.ok()) << model.error().message();
  return *std::move(model);
}

std::string weights_file(const Architecture& architecture) {
  const std::string path = own_path("weights");
  EXPECT_TRUE(save_weights(path, random_weights(architecture, 1)).ok());
  return path;
}

void expect_learns_online(std::string_view name, double least) {
  const std::vector<TrainingSample> samples = synthetic_samples(4, 100, 1);
  const std::vector<TrainingSample> unseen = synthetic_samples(4, 50, 999);
  const auto model = made(name);
  EXPECT_TRUE(model->predict(features_of(unseen)).empty()) << "untrained";
  EXPECT_ERROR(model->save(own_path("none")), "before the first training");
  for (size_t first = 0; first < samples.size(); first += 100) {
    const Result<Unit> updated = model->update(std::span(samples).subspan(first, 100));
    ASSERT_TRUE(updated.ok()) << updated.error().message();
  }
  const std::vector<float> scores = model->predict(features_of(unseen));
  ASSERT_EQ(scores.size(), unseen.size());
  EXPECT_GT(accuracy_of(scores, unseen), least);

  const std::string path = own_path("saved");
  ASSERT_TRUE(model->save(path).ok());
  const auto read = made(std::string(name) + "-no-update", {.load_model = path});
  EXPECT_EQ(read->predict(features_of(unseen)), scores);
  ASSERT_TRUE(read->update(samples).ok());
  EXPECT_EQ(read->predict(features_of(unseen)), scores) << "it does not update";
}

TEST(LearnedModel, NetworksLearnOnline) {
  NEEDS_TRAINER();
  expect_learns_online("pam", 0.8);
  expect_learns_online("tenset-mlp", 0.75);
}

TEST(LearnedModel, TreesLearnOnline) {
  const Result<Unit> updated = made("xgb")->update(synthetic_samples(1, 2, 1));
  if (!updated.ok()) GTEST_SKIP() << updated.error().message();
  expect_learns_online("xgb", 0.7);
}

/// The scales in the file that the model saves.
std::vector<float> saved_scales(const LearnedModel& model) {
  const std::string path = own_path("scales");
  EXPECT_TRUE(model.save(path).ok());
  return load_weights(path)->scale[Input::kStatements];
}

// TenSet: its first fit's stay; PaCM's are of each fit.
TEST(LearnedModel, TenSetMlpAsPublishedKeepsTheScalesOfItsFirstFit) {
  NEEDS_TRAINER();
  std::vector<TrainingSample> larger = synthetic_samples(1, 20, 2);
  for (TrainingSample& sample : larger)
    for (float& value : sample.features.rows) value *= 3;
  for (const bool mlp : {true, false}) {
    const auto model = made(mlp ? "mlp" : "pam", {.as_published = true});
    ASSERT_TRUE(model->update(synthetic_samples(1, 20, 1)).ok());
    const std::vector<float> first = saved_scales(*model);
    ASSERT_TRUE(model->update(larger).ok());
    EXPECT_EQ(saved_scales(*model) == first, mlp);
  }
}

TEST(LearnedModel, TreesAsPublishedScoreAtRandomAtFirst) {
  const std::vector<TrainingSample> samples = synthetic_samples(2, 100, 1);
  const std::vector<ProgramFeatures> programs = features_of(samples);
  const LearnedModelOptions options{.as_published = true, .warm_up_samples = 100};
  const auto model = made("xgb", options);
  EXPECT_TRUE(model->ready());
  const std::vector<float> drawn = model->predict(programs);
  EXPECT_EQ(drawn, made("xgb", options)->predict(programs)) << "one seed, one run";
  EXPECT_NEAR(accuracy_of(drawn, samples), 0.5, 0.05);
  const Result<Unit> updated = model->update(std::span(samples).first(100));
  if (!updated.ok()) GTEST_SKIP() << updated.error().message();
  EXPECT_NEAR(accuracy_of(model->predict(programs), samples), 0.5, 0.05) << "100 are not more";
  ASSERT_TRUE(model->update(std::span(samples).subspan(100, 10)).ok());
  EXPECT_GT(accuracy_of(model->predict(programs), samples), 0.7);

  const std::string path = own_path("trees");
  ASSERT_TRUE(model->save(path).ok());
  LearnedModelOptions loaded = options;
  loaded.load_model = path;
  EXPECT_EQ(made("xgb", loaded)->predict(programs), model->predict(programs));
}

// The trees score from 100 samples on, and are trained again when a fifth more samples are there.
TEST(LearnedModel, TreesOfMetaScheduleScoreFrom100SamplesOn) {
  const std::vector<TrainingSample> samples = synthetic_samples(2, 100, 1);
  const std::vector<ProgramFeatures> programs = features_of(samples);
  const auto model = made("xgb-metaschedule");
  EXPECT_TRUE(model->is_blind_to_units());
  EXPECT_FALSE(made("xgb")->is_blind_to_units());
  const auto learn = [&](size_t first, size_t count) {
    return model->update(std::span(samples).subspan(first, count));
  };
  const Result<Unit> updated = learn(0, 99);
  if (!updated.ok()) GTEST_SKIP() << updated.error().message();
  EXPECT_NEAR(accuracy_of(model->predict(programs), samples), 0.5, 0.05) << "drawn";
  ASSERT_TRUE(learn(99, 1).ok());
  const std::vector<float> first = model->predict(programs);
  EXPECT_GT(accuracy_of(first, samples), 0.7);
  ASSERT_TRUE(learn(100, 18).ok());
  EXPECT_EQ(model->predict(programs), first) << "118 are less than 6/5 of 99";
  ASSERT_TRUE(learn(118, 1).ok());
  EXPECT_NE(model->predict(programs), first);
}

// A program without rows is nothing to it: it does not count, nor is it learned from.
TEST(LearnedModel, TreesLeaveOutProgramsWithoutRows) {
  std::vector<TrainingSample> samples = synthetic_samples(1, 120, 1);
  for (size_t i = 0; i < 40; ++i) samples[i].features.rows.clear();
  const auto model = made("xgb-metaschedule");
  const Result<Unit> updated = model->update(samples);
  if (!updated.ok()) GTEST_SKIP() << updated.error().message();
  const std::vector<ProgramFeatures> programs = features_of(samples);
  EXPECT_NE(model->predict(programs), model->predict(programs)) << "80 are drawn for";
  ASSERT_TRUE(model->update(synthetic_samples(1, 20, 2)).ok());
  EXPECT_EQ(model->predict(programs), model->predict(programs));
}

// 10 samples pay for 400 passes, a training for 30 epochs over them takes 300.
TEST(LearnedModel, TrainsWhenNewSamplesHavePaidForIt) {
  NEEDS_TRAINER();
  const std::vector<TrainingSample> samples = synthetic_samples(1, 60, 1);
  const auto model = made("pam");
  const auto scores_after = [&](size_t first) {
    EXPECT_TRUE(model->update(std::span(samples).subspan(first, 10)).ok());
    return model->predict(features_of(samples));
  };
  const std::vector<float> first = scores_after(0);
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(scores_after(10), first) << "500 passes are left, 20 samples take 600";
  EXPECT_NE(scores_after(20), first) << "900 of 900";
}

TEST(LearnedModel, SiameseUpdatesFollowMomentum) {
  NEEDS_TRAINER();
  const std::vector<TrainingSample> samples = synthetic_samples(2, 40, 1);
  const auto model = made("pam-siamese-update", {.load_model = weights_file(kPacm)});
  const std::vector<ProgramFeatures> programs = features_of(samples);
  const std::vector<float> pretrained = model->predict(programs);
  for (size_t round = 0; round < 3; ++round)
    ASSERT_TRUE(model->update(std::span(samples).subspan(20 * round, 20)).ok());
  EXPECT_EQ(model->predict(programs), pretrained);
  ASSERT_TRUE(model->update(std::span(samples).subspan(60, 20)).ok());
  EXPECT_GT(accuracy_of(model->predict(programs), samples), accuracy_of(pretrained, samples));
}

TEST(LearnedModel, WithUselessScoresLeavesTheOrderToTheDraft) {
  const std::string path = own_path("constant");
  ModelWeights weights = random_weights(kTenSetMlp, 1);
  for (float& v : weights.tensors["decoder.weight"].values) v = 0;
  ASSERT_TRUE(save_weights(path, weights).ok());
  const auto model = made("mlp-no-update", {.load_model = path});
  const std::vector<ProgramFeatures> programs = features_of(synthetic_samples(1, 4, 1));
  testing::internal::CaptureStdout();
  EXPECT_TRUE(model->predict(programs).empty());
  EXPECT_TRUE(model->predict(programs).empty());
  const std::string log = testing::internal::GetCapturedStdout();
  EXPECT_NE(log.find("the same for all programs"), std::string::npos);
  EXPECT_EQ(log.find("the same for all programs"), log.rfind("the same for all programs"));
  EXPECT_EQ(model->predict(std::vector(3, programs[0])).size(), 3u) << "equal programs may tie";
}

TEST(LearnedModel, OfPrimitivesScoresItsKindOfDeviceOnly) {
  std::vector<ProgramFeatures> programs(2);
  for (int i = 0; i < 2; ++i) {
    const std::vector<ansor::Step> steps = {
        ansor::SplitStep{1, 0, 64, {i + 2}, true},
        ansor::AnnotationStep{1, 0, ansor::Annotation::kParallel}};
    programs[static_cast<size_t>(i)].primitives = primitives(steps);
  }
  for (const PrimitiveForm& form : {kCpuPrimitives, kGpuPrimitives}) {
    const std::string path = own_path("tlp");
    ASSERT_TRUE(save_weights(path, initial_weights(kTlp, 1, form)).ok());
    const auto model = made("tlp-no-update", {.load_model = path});
    EXPECT_TRUE(model->reads_primitives());
    EXPECT_EQ(model->predict(programs).size(), form.gpu ? 0u : 2u);
    const auto loaded = load_learned_model(path, 1);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message();
    EXPECT_EQ((*loaded)->predict(programs), model->predict(programs));
  }
}

TEST(FaultOf, NamesNaNs) {
  const std::vector<ProgramFeatures> programs = features_of(synthetic_samples(1, 3, 1));
  EXPECT_EQ(fault_of(std::vector<float>{1, NAN, 2}, programs), "NaN");
  EXPECT_EQ(fault_of(std::vector<float>{1, 1, 1}, programs), "the same for all programs");
  EXPECT_EQ(fault_of(std::vector<float>{1, 1, 2}, programs), std::nullopt);
}

TEST(MakeLearnedModel, SaysWhatIsWrong) {
  EXPECT_ERROR(make_learned_model("pan", {}),
               "cost model pan is unknown; use pam, mlp, tlp or xgb");
  EXPECT_ERROR(make_learned_model("", {}), "is unknown");
  EXPECT_ERROR(make_learned_model("pacm-no-update", {}),
               "cost model pacm-no-update needs weights to start from: --load-model FILE");
  EXPECT_ERROR(make_learned_model("tlp-no-update", {}),
               "cost model tlp-no-update needs weights to start from: --load-model FILE");
  EXPECT_ERROR(make_learned_model("tlp-siamese-update", {.load_model = "x"}),
               "TLP has no momentum");
  EXPECT_ERROR(make_learned_model("mlp", {.load_model = weights_file(kPacm)}),
               "weights of pacm, expected tenset-mlp");
  EXPECT_ERROR(make_learned_model("xgb-siamese-update", {.load_model = "x"}),
               "momentum needs a network's weights");
  EXPECT_ERROR(make_learned_model("xgb", {.load_model = weights_file(kPacm)}),
               "not a model of boosted trees");
}

}  // namespace
}  // namespace pruner
