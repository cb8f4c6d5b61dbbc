// Training of TLP: one decoder, several platforms, few records of a new one.
#include <cmath>

#include "golden.h"
#include "model/nn/network.h"
#include "model/synthetic.h"
#include "model/train.h"
#include "model/trainer_here.h"
#include "own_path.h"
#include "support/rng.h"

namespace pruner {
namespace {

/// Programs of two splits and an annotation; the latency is known of the factors. A platform likes
/// the second factor large or, where `turned`, small.
std::vector<TrainingSample> splits(int tasks, int per_task, bool turned, uint64_t seed) {
  Rng rng(seed);
  std::vector<TrainingSample> samples;
  for (int i = 0; i < tasks * per_task; ++i) {
    TrainingSample& sample = samples.emplace_back();
    sample.task = i % tasks;
    const int64_t outer = 1 + rng.below(16), inner = 1 + rng.below(16);
    const std::vector<ansor::Step> steps = {
        ansor::SplitStep{1, 0, 256 << sample.task, {outer, 4}, true},
        ansor::SplitStep{1, 3, 512, {2, inner}, true},
        ansor::AnnotationStep{1, 0, ansor::Annotation::kParallel}};
    sample.features.primitives = primitives(steps);
    const double liked = static_cast<double>(turned ? 17 - inner : inner);
    sample.latency_s = 1e-5 * (20 - static_cast<double>(outer)) / (1 + liked);
  }
  return samples;
}

double accuracy(const ModelWeights& weights,
                size_t head,
                const std::vector<TrainingSample>& samples) {
  return accuracy_of(Network(weights, head).predict(features_of(samples), 1), samples);
}

TEST(TlpTraining, TeachesItToOrderProgramsThatItHasNotSeen) {
  NEEDS_TRAINER();
  const std::vector<TrainingSample> samples = splits(2, 100, false, 1),
                                    others = splits(2, 80, false, 2);
  const ModelWeights start = initial_weights(kTlp, 3, primitive_form_of(samples));
  const Result<Trained> trained = train(start, samples, {.epochs = 15, .batch = 32, .seed = 4});
  ASSERT_TRUE(trained.ok()) << trained.error().message();
  EXPECT_LT(accuracy(start, 0, others), 0.8);
  EXPECT_GT(accuracy(trained->weights, 0, others), 0.9);
  EXPECT_LT(trained->report.losses.back(), 0.5 * trained->report.losses.front());
}

TEST(TlpTraining, HeadsLearnPlatformsThatDisagree) {
  NEEDS_TRAINER();
  std::vector<TrainingSample> samples = splits(1, 150, false, 1);
  for (TrainingSample& sample : samples) sample.platform = 0;
  for (TrainingSample sample : splits(1, 150, true, 2)) {
    sample.platform = 1;
    sample.task += 1;
    samples.push_back(std::move(sample));
  }
  const std::vector<std::string> platforms = {"k80", "v100"};
  ModelWeights start = initial_weights(kTlp, 3, kCpuPrimitives, platforms);
  Result<Trained> trained = train(start, samples, {.epochs = 30, .batch = 32, .seed = 4});
  ASSERT_TRUE(trained.ok()) << trained.error().message();
  ModelWeights& weights = trained->weights;
  EXPECT_EQ(weights.heads, (std::vector<std::string>{"k80", "v100", "other"}));
  const std::vector<TrainingSample> straight = splits(2, 80, false, 5),
                                    turned = splits(2, 80, true, 6);
  EXPECT_GT(accuracy(weights, head_of(weights, "k80"), straight), 0.85);
  EXPECT_GT(accuracy(weights, head_of(weights, "v100"), turned), 0.85);
  EXPECT_LT(accuracy(weights, head_of(weights, "v100"), straight), 0.75);
  EXPECT_EQ(head_of(weights, "a100"), 2u) << "the other platforms'";

  // A platform that comes later starts as the others' head is, and learns from few records.
  const double before = accuracy(weights, head_of(weights, "a100"), turned);
  const size_t head = add_platform(weights, "a100");
  EXPECT_EQ(weights.heads[head], "a100");
  EXPECT_EQ(accuracy(weights, head, turned), before);
  EXPECT_EQ(add_platform(weights, "a100"), head);
  std::vector<TrainingSample> few = splits(2, 20, true, 7);
  for (TrainingSample& sample : few) sample.platform = static_cast<int32_t>(head);
  const Result<Trained> tuned =
      train(weights, few, {.epochs = 15, .validation_share = 0, .seed = 8});
  ASSERT_TRUE(tuned.ok()) << tuned.error().message();
  EXPECT_GT(accuracy(tuned->weights, head, turned), std::max(before, 0.8));
}

TEST(TlpTraining, SamplesAreOfTheWeightsKindOfDevice) {
  const std::vector<TrainingSample> samples = splits(1, 4, false, 1);
  EXPECT_EQ(primitive_form_of(samples), (PrimitiveForm{false, 25, 22, true}));
  EXPECT_ERROR(train(initial_weights(kTlp, 1, kGpuPrimitives), samples, {}),
               "the weights are of a TLP for programs of a GPU, the samples are of a CPU");
  std::vector<TrainingSample> without = samples;
  for (TrainingSample& sample : without) sample.features.primitives.clear();
  EXPECT_ERROR(train(initial_weights(kTlp, 1), without, {}),
               "training needs two programs, there are 0");
}

TEST(TlpTraining, PublishedConstants) {
  const TrainOptions options = published_training(kTlp);
  EXPECT_EQ(options.batch, 1024);
  EXPECT_EQ(options.epochs, 50);
  EXPECT_EQ(options.patience, 0);
  EXPECT_FALSE(options.group_by_task);
  EXPECT_EQ(options.learning_rate, 7e-4);
  EXPECT_EQ(options.weight_decay, 1e-6);
  EXPECT_EQ(options.clip_norm, 0.5);
}

TEST(TlpWeights, ComeBackFromTheirFileWithFormAndHeads) {
  const std::vector<std::string> platforms = {"k80", "v100"};
  for (const auto& heads : {std::vector<std::string>(), platforms}) {
    const ModelWeights weights = initial_weights(kTlp, 1, {true, 40, 20, heads.empty()}, heads);
    const std::string path = own_path("tlp.safetensors");
    ASSERT_TRUE(save_weights(path, weights).ok());
    const Result<ModelWeights> read = load_weights(path);
    ASSERT_TRUE(read.ok()) << read.error().message();
    EXPECT_EQ(*read, weights);
  }
}

}  // namespace
}  // namespace pruner
