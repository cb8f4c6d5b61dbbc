#include "model/momentum.h"

#include "model/nn/network.h"
#include "model/synthetic.h"
#include "model/trainer_here.h"

namespace pruner {
namespace {

constexpr TrainOptions kShort = {.epochs = 3};

TEST(MomentumAdaptation, TrainsACopyEveryFourthRoundAndMovesOnePercentTowardsIt) {
  NEEDS_TRAINER();
  const std::vector<TrainingSample> samples = synthetic_samples(3, 40, 1);
  ModelWeights pretrained = random_weights(kPacm, 2);
  widen_scales(scales_of(samples), pretrained);  // nothing is left to widen
  MomentumAdaptation moa(pretrained, {});
  for (int round = 1; round < 4; ++round) {
    const Result<bool> trained = moa.update(samples, kShort);
    ASSERT_TRUE(trained.ok()) << trained.error().message();
    EXPECT_FALSE(*trained);
    EXPECT_EQ(moa.target(), pretrained);
  }
  ASSERT_TRUE(*moa.update(samples, kShort));
  const Result<Trained> alone = train(pretrained, samples, kShort);
  EXPECT_EQ(moa.target(), alone->weights);
  for (const auto& [name, tensor] : moa.siamese().tensors) {
    const std::vector<float>& before = pretrained.tensors[name].values;
    const std::vector<float>& towards = moa.target().tensors.at(name).values;
    const float step = name.starts_with("norm.running_") ? 0.0f : 0.01f;
    for (size_t i = 0; i < before.size(); i += 97)
      ASSERT_NEAR(tensor.values[i], before[i] + step * (towards[i] - before[i]), 1e-6) << name;
  }
  EXPECT_NE(moa.siamese(), pretrained);
}

TEST(MomentumAdaptation, WidensScalesWithoutChangingTheSiameseNetwork) {
  NEEDS_TRAINER();
  const std::vector<TrainingSample> samples = synthetic_samples(2, 20, 1);
  ModelWeights pretrained = random_weights(kPacm, 2);
  pretrained.scale[Input::kStatements].assign(kRowFeatures, 0.5f);
  const std::vector<ProgramFeatures> programs = features_of(samples);
  const auto moved = [&](bool replace_scales) {
    MomentumAdaptation moa(pretrained,
                           {.momentum = 1, .period = 1, .replace_scales = replace_scales});
    EXPECT_TRUE(moa.update(samples, kShort).ok());
    EXPECT_EQ(moa.target().scale[Input::kStatements], moa.siamese().scale[Input::kStatements]);
    const std::vector<float> before = Network(pretrained).predict(programs, 1);
    const std::vector<float> after = Network(moa.siamese()).predict(programs, 1);
    float most = 0;
    for (size_t i = 0; i < before.size(); ++i)
      most = std::max(most, std::abs(after[i] - before[i]));
    return most;
  };
  EXPECT_LT(moved(false), 1e-3f);
  EXPECT_GT(moved(true), 0.01f);  // the released code moves, too
}

}  // namespace
}  // namespace pruner
