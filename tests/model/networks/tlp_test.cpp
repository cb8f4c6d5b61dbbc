#include "model/nn/network.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "analysis/golden_programs.h"
#include "model/checkpoints.h"
#include "model/nn/network.h"
#include "model/train.h"
#include "model/trainer_here.h"
#include "support/rng.h"

namespace pruner {
namespace {

// Splits, orders and annotations with numbers as records have them.
std::vector<int32_t> random_sequence(int steps, Rng& rng) {
  std::vector<ansor::Step> made;
  for (int i = 0; i < steps; ++i) {
    const int stage = static_cast<int>(rng.below(4));
    switch (rng.below(3)) {
      case 0:
        made.push_back(ansor::SplitStep{
            stage, 0, 1 + rng.below(1024), {1 + rng.below(16), 1 + rng.below(8)}, true});
        break;
      case 1: made.push_back(ansor::ComputeAtStep{stage, 5, static_cast<int>(rng.below(9))}); break;
      default: made.push_back(ansor::AnnotationStep{stage, 0, ansor::Annotation::kParallel});
    }
  }
  return primitives(made);
}

std::vector<ProgramFeatures> random_programs(int count, uint64_t seed) {
  Rng rng(seed);
  std::vector<ProgramFeatures> programs(static_cast<size_t>(count));
  for (ProgramFeatures& program : programs)
    program.primitives = random_sequence(1 + static_cast<int>(rng.below(30)), rng);
  return programs;
}

int64_t parameter_count(const PrimitiveForm& form, std::span<const std::string> heads) {
  const ModelWeights weights{
      .architecture = &kTlp, .form = form, .heads = {heads.begin(), heads.end()}};
  int64_t sum = 0;
  for (const WeightSpec& spec : tensor_specs(weights))
    sum += static_cast<int64_t>(spec.element_count());
  return sum;
}

TEST(Tlp, HasThePublishedNumberOfParameters) {
  EXPECT_EQ(parameter_count(kCpuPrimitives, {}), 610369);
  EXPECT_EQ(parameter_count(kGpuPrimitives, {}), 610241);
  const std::vector<std::string> two = {"k80", "t4"};
  EXPECT_EQ(parameter_count(kCpuPrimitives, two), 610369 + 107009);
}

// The network as TLP has it, in double precision: every row of the matrix is a token, zeros too.
class Spelled {
 public:
  explicit Spelled(const ModelWeights& weights) : weights_(weights) {}

  double score(const std::vector<float>& matrix) const {
    const auto width = static_cast<size_t>(weights_.form.width);
    Rows x;
    for (size_t i = 0; i < matrix.size(); i += width)
      x.emplace_back(matrix.begin() + static_cast<ptrdiff_t>(i),
                     matrix.begin() + static_cast<ptrdiff_t>(i + width));
    for (const char* name : {"encoder.0", "encoder.2", "encoder.4", "encoder.6"})
      x = relu(layer(name, x));
    Rows z = attention(x);
    for (size_t i = 0; i < x.size(); ++i)
      for (size_t j = 0; j < 256; ++j) z[i][j] += x[i][j];
    for (const char* name : {"l_list.0.0", "l_list.1.0"}) {
      const Rows next = relu(layer(name, z));
      for (size_t i = 0; i < z.size(); ++i)
        for (size_t j = 0; j < 256; ++j) z[i][j] += next[i][j];
    }
    for (const char* name : {"decoder.0", "decoder.2", "decoder.4"}) z = relu(layer(name, z));
    double sum = 0;
    for (const std::vector<double>& row : layer("decoder.6", z)) sum += row[0];
    return sum;
  }

 private:
  using Rows = std::vector<std::vector<double>>;

  Rows layer(const std::string& name, const Rows& x) const {
    return linear(x,
                  weights_.tensors.find(name + ".weight")->second,
                  weights_.tensors.find(name + ".bias")->second);
  }
  static Rows linear(const Rows& x, const WeightTensor& weight, const WeightTensor& bias) {
    const auto out = static_cast<size_t>(weight.shape[0]),
               in = static_cast<size_t>(weight.shape[1]);
    Rows y;
    for (const std::vector<double>& row : x) {
      std::vector<double>& to = y.emplace_back(bias.values.begin(), bias.values.end());
      for (size_t o = 0; o < out; ++o)
        for (size_t i = 0; i < in; ++i) to[o] += row[i] * double{weight.values[o * in + i]};
    }
    return y;
  }
  static Rows relu(Rows x) {
    for (std::vector<double>& row : x)
      for (double& v : row) v = std::max(v, 0.0);
    return x;
  }

  Rows attention(const Rows& x) const {
    const Rows qkv = linear(x,
                            weights_.tensors.find("attention.in_proj_weight")->second,
                            weights_.tensors.find("attention.in_proj_bias")->second);
    Rows context(x.size(), std::vector<double>(256));
    for (size_t head = 0; head < 8; ++head) {
      for (size_t i = 0; i < x.size(); ++i) {
        std::vector<double> share;
        double sum = 0, largest = -std::numeric_limits<double>::infinity();
        for (size_t j = 0; j < x.size(); ++j) {
          double dot = 0;
          for (size_t c = head * 32; c < head * 32 + 32; ++c) dot += qkv[i][c] * qkv[j][256 + c];
          largest = std::max(largest, share.emplace_back(dot / std::sqrt(32.0)));
        }
        for (double& s : share) sum += s = std::exp(s - largest);
        for (size_t j = 0; j < x.size(); ++j)
          for (size_t c = head * 32; c < head * 32 + 32; ++c)
            context[i][c] += share[j] / sum * qkv[j][512 + c];
      }
    }
    return layer("attention.out_proj", context);
  }

  const ModelWeights& weights_;
};

TEST(Tlp, GivesTheScoreOfTheWholeMatrixSpelledOut) {
  const ModelWeights weights = random_weights(kTlp, 5);
  const std::vector<ProgramFeatures> programs = random_programs(12, 6);
  const std::vector<float> scores = Network(weights).predict(programs, 1);
  for (size_t b = 0; b < programs.size(); ++b) {
    const double expected =
        Spelled(weights).score(primitive_matrix(programs[b].primitives, weights.form));
    EXPECT_NEAR(scores[b], expected, 1e-5 * std::max(1.0, std::abs(expected))) << b;
  }
}

// Numbers that a program of its own computed from the published layers, in double precision.
TEST(Tlp, ScoresTheGoldenProgramsByWeightsOfAFormula) {
  const Network network(formula_weights(kTlp));
  int compared = 0;
  for_golden_programs([&](const GoldenProgram& golden) {
    if (golden.model.is_null()) return;
    ProgramFeatures program;
    program.primitives = primitives(golden.steps);
    const double expected = golden.model["tlp"].get<double>();
    EXPECT_NEAR(network.predict({&program, 1}, 1)[0] / expected, 1, 1e-5) << golden.name;
    ++compared;
  });
  EXPECT_EQ(compared, kGoldenPrograms);
}

TEST(Tlp, ScoresAProgramTheSameInEveryBatchAndOnEveryNumberOfThreads) {
  const Network network(random_weights(kTlp, 5));
  const std::vector<ProgramFeatures> programs = random_programs(101, 6);
  const std::vector<float> scores = network.predict(programs, 1);
  EXPECT_EQ(network.predict(programs, 3), scores);
  for (size_t b = 0; b < programs.size(); b += 10)
    EXPECT_EQ(network.predict(std::span(programs).subspan(b, 1), 1)[0], scores[b]) << b;
}

TEST(Tlp, AProgramWithoutPrimitivesIsTheWorst) {
  std::vector<ProgramFeatures> programs = random_programs(2, 6);
  programs[1].primitives.clear();
  const Network network(random_weights(kTlp, 5));
  const std::vector<float> scores = network.predict(programs, 1);
  EXPECT_TRUE(std::isfinite(scores[0]));
  EXPECT_EQ(scores[1], -std::numeric_limits<float>::infinity());
}

TEST(Tlp, AgreesWithLibTorchOnEveryHead) {
  NEEDS_TRAINER();
  const std::vector<ProgramFeatures> programs = random_programs(40, 6);
  const std::vector<std::string> platforms = {"k80", "v100"};
  for (const bool several : {false, true}) {
    const ModelWeights weights = initial_weights(
        kTlp,
        7,
        kCpuPrimitives,
        several ? std::span<const std::string>(platforms) : std::span<const std::string>());
    const auto trainer = make_torch_trainer(weights, {});
    ASSERT_TRUE(trainer.ok()) << trainer.error().message();
    const int64_t heads = several ? 3 : 1;
    TrainingBatch batch;
    std::vector<const ProgramFeatures*> view;
    for (const ProgramFeatures& program : programs) {
      for (int64_t head = 0; head < heads; ++head)
        batch.requests.push_back({static_cast<int64_t>(view.size()), head});
      view.push_back(&program);
    }
    batch.branches = {make_tokens(Input::kPrimitives, view, {.primitives = weights.form})};
    const Result<std::vector<float>> torch = (*trainer)->forward(batch);
    ASSERT_TRUE(torch.ok()) << torch.error().message();
    for (int64_t head = 0; head < heads; ++head) {
      const std::vector<float> scores =
          Network(weights, static_cast<size_t>(head)).predict(programs, 2);
      for (size_t b = 0; b < programs.size(); ++b) {
        const float expected = (*torch)[b * static_cast<size_t>(heads) + static_cast<size_t>(head)];
        EXPECT_NEAR(scores[b], expected, 1e-5f * std::max(1.0f, std::abs(expected))) << b;
      }
    }
  }
}

}  // namespace
}  // namespace pruner
