#include "model/nn/network.h"

#include <cmath>

#include "analysis/golden_programs.h"
#include "golden.h"
#include "model/checkpoints.h"
#include "support/json.h"
#include "support/rng.h"

namespace pruner {
namespace {

const std::string kCheckpoints = PRUNER_SHARED_DATA "/pruner-checkpoints/";
constexpr std::pair<const char*, const char*> kPublished[] = {{"k80", "pam_k80_1500.pkl"},
                                                              {"a100", "fine_tune_pam_a100.pth"}};

std::vector<float> flat(const Json& rows) {
  std::vector<float> values;
  for (const Json& row : rows)
    for (const Json& value : row) values.push_back(value.get<float>());
  return values;
}

void expect_first8(const Json& expected, const Matrix& found, const char* what) {
  for (size_t i = 0; i < 8; ++i) {
    const float value = expected[i].get<float>();
    EXPECT_NEAR(found.row(0)[i], value, 1e-4 * std::max(1.0f, std::abs(value))) << what << i;
  }
}

TEST(Pacm, GivesThePublishedActivationsAndScores) {
  if (!std::filesystem::exists(kCheckpoints)) GTEST_SKIP() << "no " << kCheckpoints;
  const Json golden = *parse_json(*read_file(kCheckpoints + "golden_forward.json"));
  std::vector<ProgramFeatures> programs;
  size_t first = 0;
  for (const Json& segment : golden["segments"]) {
    const size_t rows = segment.get<size_t>();
    ProgramFeatures& program = programs.emplace_back();
    for (size_t r = first; r < first + rows; ++r) {
      for (const Json& value : golden["X"][r]) program.rows.push_back(value.get<float>());
      program.rows.resize(program.rows.size() + kRowFeatures - kPublishedRowFeatures);
    }
    const std::vector<float> dataflow = flat(golden["Z"][programs.size() - 1]);
    std::copy(dataflow.begin(), dataflow.end(), program.dataflow.begin());
    first += rows;
  }
  for (const auto& [name, file] : kPublished) {
    ModelWeights weights = *load_weights(kCheckpoints + file);
    weights.scale[Input::kStatements].assign(kRowFeatures, 1);  // the inputs are divided already
    weights.scale[Input::kDataflow].assign(kDataflowFeatures, 1);
    const Json& expected = golden["results"][name];
    const std::vector<Matrix> given = Network(weights).activations(programs);
    std::map<std::string, const Matrix*> by_name;  // sums by the layer before
    for (size_t i = 1; i < given.size(); ++i) {
      const Layer& layer = kPacm.layers[i];
      by_name[layer.kind == LayerKind::kSum ? kPacm.layers[i - 1].name : layer.name] = &given[i];
    }
    expect_first8(expected["S_program0_first8"], *by_name["segment_encoder.2"], "S");
    expect_first8(expected["G_program0_first8"], *by_name["attention"], "G");
    expect_first8(expected["U_program0_first8"], *by_name["fuse.0"], "U");
    expect_first8(expected["N_program0_first8"], *by_name["norm"], "N");
    ASSERT_EQ(given.back().rows, 4);
    for (size_t b = 0; b < 4; ++b)
      EXPECT_NEAR(given.back().values[b], expected["score_eval"][b].get<float>(), 1e-4)
          << name << " " << b;
  }
}

TEST(Pacm, ScoresTheGoldenProgramsAsPublished) {
  const std::string folder = PRUNER_SHARED_DATA "/pruner-golden/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
  int compared = 0;
  for (const auto& [name, file] : kPublished) {
    const Network network(*load_weights(kCheckpoints + file));
    for (const char* workload :
         {"matmul", "matmul_bias_relu", "conv2d", "conv2d_s2", "softmax", "reduce", "add"}) {
      const Json golden = *parse_json(*read_file(folder + workload + ".json"));
      std::vector<ProgramFeatures> programs;
      std::vector<float> expected;
      for (const Json& state : golden["states"]) {
        if (!state["valid"].get<bool>()) continue;
        ProgramFeatures& program = programs.emplace_back();
        for (const Json& row : state["statement_features"]) {
          for (const Json& value : row) program.rows.push_back(value.get<float>());
          for (const Json& flag : golden["task_embedding"])
            program.rows.push_back(flag.get<float>());
          program.rows.resize(program.rows.size() + kRowFeatures - kPublishedRowFeatures);
        }
        const std::vector<float> dataflow = flat(state["dataflow_features"]);
        std::copy(dataflow.begin(), dataflow.end(), program.dataflow.begin());
        expected.push_back(state["pacm_score"][std::string(name) + "_eval"].get<float>());
      }
      const std::vector<float> scores = network.predict(programs, 2);
      for (size_t b = 0; b < scores.size(); ++b, ++compared)
        EXPECT_NEAR(scores[b], expected[b], 1e-4) << workload << " " << b;
    }
  }
  EXPECT_EQ(compared, 2 * 38);
}

// Numbers that a program of its own computed from the published layers, in double precision.
TEST(Network, ScoresTheGoldenProgramsByWeightsOfAFormula) {
  const Network pacm(formula_weights(kPacm));
  const Network mlp(formula_weights(kTenSetMlp));
  int compared = 0;
  for_golden_programs([&](const GoldenProgram& golden) {
    if (golden.model.is_null()) return;
    const ProgramFeatures program = features(
        make_statements(golden.nest), task_flags(golden.nest.structure->task), /*compat=*/true);
    EXPECT_NEAR(pacm.predict({&program, 1}, 1)[0], golden.model["pacm"].get<double>(), 2e-6)
        << golden.name;
    EXPECT_NEAR(mlp.predict({&program, 1}, 1)[0], golden.model["tenset-mlp"].get<double>(), 2e-6)
        << golden.name;
    ++compared;
  });
  EXPECT_EQ(compared, kGoldenPrograms);
}

std::vector<ProgramFeatures> random_programs(int count, uint64_t seed) {
  Rng rng(seed);
  std::vector<ProgramFeatures> programs(static_cast<size_t>(count));
  for (ProgramFeatures& program : programs) {
    program.rows.resize(static_cast<size_t>(kRowFeatures * (1 + rng.below(6))));
    for (float& v : program.rows) v = static_cast<float>(rng.uniform());
    if (rng.below(2) == 0)
      for (float& v : program.dataflow) v = static_cast<float>(rng.uniform());
  }
  return programs;
}

TEST(Network, ScoresAProgramTheSameInEveryBatchAndOnEveryNumberOfThreads) {
  for (const Architecture* architecture : {&kPacm, &kTenSetMlp}) {
    const Network network(random_weights(*architecture, 5));
    const std::vector<ProgramFeatures> programs = random_programs(101, 6);
    const std::vector<float> scores = network.predict(programs, 1);
    EXPECT_EQ(network.predict(programs, 3), scores);
    for (size_t b = 0; b < programs.size(); b += 10)
      EXPECT_NEAR(network.predict({&programs[b], 1}, 1)[0], scores[b], 1e-5);
  }
}

// y = decoder(block1(block0(sum of encoded rows))), spelled out in double precision.
TEST(TenSetMlp, IsTheNetworkOfItsPaper) {
  const ModelWeights weights = random_weights(kTenSetMlp, 7);
  const auto linear = [&](const std::string& name, const std::vector<double>& x, bool relu) {
    const WeightTensor& w = weights.tensors.at(name + ".weight");
    std::vector<double> y;
    for (size_t j = 0; j < static_cast<size_t>(w.shape[0]); ++j) {
      double sum = weights.tensors.at(name + ".bias").values[j];
      for (size_t k = 0; k < x.size(); ++k) sum += w.values[j * x.size() + k] * x[k];
      y.push_back(relu ? std::max(sum, 0.0) : sum);
    }
    return y;
  };
  const ProgramFeatures program = random_programs(1, 8)[0];
  std::vector<double> sum(256);
  for (size_t r = 0; r < program.rows.size(); r += kRowFeatures) {
    const std::vector<double> row(program.rows.begin() + static_cast<ptrdiff_t>(r),
                                  program.rows.begin() + static_cast<ptrdiff_t>(r + kRowFeatures));
    const std::vector<double> encoded =
        linear("segment_encoder.2", linear("segment_encoder.0", row, true), true);
    for (size_t j = 0; j < sum.size(); ++j) sum[j] += encoded[j];
  }
  for (const char* block : {"l0.0", "l1.0"}) {
    const std::vector<double> next = linear(block, sum, true);
    for (size_t j = 0; j < sum.size(); ++j) sum[j] += next[j];
  }
  EXPECT_NEAR(
      Network(weights).predict({&program, 1}, 1)[0], linear("decoder", sum, false)[0], 1e-5);
}

TEST(Network, PutsAProgramWithoutRowsLast) {
  const Network network(random_weights(kPacm, 5));
  EXPECT_EQ(network.predict(std::vector<ProgramFeatures>(1), 1)[0],
            -std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace pruner
