// label: codegen
// A net under changes that are to change nothing: for each task and target, fixed candidates, and
// what every layer makes of them. tests/golden/replay has a line a task: hashes of the candidates,
// of their loop nests, programs and code, and weighed sums of the scores of drafts and cost models,
// which may differ in the sixth digit between machines.
//
// PRUNER_GOLDEN=write writes the lines anew; a commit that does so says what changed and why. With
// PRUNER_REPLAY=DIR each candidate's texts are kept in DIR, so that those of two versions can be
// compared.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "analysis/draft.h"
#include "analysis/draft_form.h"
#include "analysis/features.h"
#include "ansor/own_steps.h"
#include "codegen/codegen.h"
#include "golden.h"
#include "lower/lower.h"
#include "lower/warp_rules.h"
#include "model/nn/network.h"
#include "model/train.h"
#include "space/gpu/gpu_task.h"
#include "space/operator_task.h"
#include "space/structure.h"

namespace pruner {
namespace {

constexpr int kCandidates = 50;      // candidates per task, shared by its sketches
constexpr int kAttempts = 100'000;   // attempts per sketch, after which fewer candidates have to do
constexpr double kTolerance = 1e-5;  // relative error of sums of scores

/// Beside kSmallOperators: operators of networks at their sizes.
constexpr const char* kNetworkOperators[] = {
    "matmul 128 768 768 +bias",
    "dense 1 1000 2048 +bias",
    "batch_matmul 12 128 128 64",
    "conv2d 1 64 112 112 3 7 7 stride=2 padding=3 +bias +relu",
    "conv2d 1 64 56 56 64 3 3 padding=1 +bias +relu",
    "conv2d 1 256 14 14 1024 1 1 +bias +residual +relu",
    "conv2d 1 128 28 28 128 3 3 padding=1 groups=32 +bias +relu",
    "depthwise_conv2d 1 96 56 56 3 3 stride=2 padding=1 +bias +relu",
    "softmax 12 128 128",
    "layernorm 128 768",
};

/// The same candidates in whatever order sketches and decisions come: a sketch's depend on its
/// name, each decision on its name, too. Small choices are drawn more often, since products of many
/// have limits.
std::vector<Candidate> fixed_candidates(const Space& space) {
  const int each = (kCandidates + static_cast<int>(space.sketches.size()) - 1) /
                   static_cast<int>(space.sketches.size());
  std::vector<Candidate> candidates;
  for (size_t s = 0; s < space.sketches.size(); ++s) {
    const Sketch& sketch = space.sketches[s];
    std::vector<Rng> chances;
    for (const Decision& decision : sketch.decisions)
      chances.emplace_back(hash64(sketch.name + " " + decision.name));
    std::vector<Candidate> found;
    for (int attempt = 0; attempt < kAttempts && std::ssize(found) < each; ++attempt) {
      Candidate candidate{SketchId{static_cast<int32_t>(s)}, {}};
      for (size_t d = 0; d < chances.size(); ++d) {
        const std::vector<int32_t>& choices = sketch.decisions[d].drawn();
        const double place =
            std::pow(chances[d].uniform(), 3) * static_cast<double>(choices.size());
        candidate.decisions.push_back(choices[static_cast<size_t>(place)]);
      }
      if (is_legal(space, candidate) && std::ranges::find(found, candidate) == found.end())
        found.push_back(candidate);
    }
    candidates.insert(candidates.end(), found.begin(), found.end());
  }
  return candidates;
}

std::vector<CodeText> texts_of(const Target& target, const Program& program) {
  if (!target.is_gpu()) return {CodeText::kEmitted};
  if (has_warp_statements(program)) return {CodeText::kCuda};
  return {CodeText::kCuda, CodeText::kOpenCl};
}

/// One number for many, that changes when two of them change places.
double weighed_sum(std::span<const float> values) {
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i)
    sum += static_cast<double>(values[i]) * (1 + 0.1 * static_cast<double>(i % 7));
  return sum / static_cast<double>(values.size());
}

struct NamedNetwork {
  std::string name;
  Network network;
};

/// Cost models with drawn weights.
std::vector<NamedNetwork> networks_for(const Target& target) {
  PrimitiveForm form = target.is_gpu() ? kGpuPrimitives : kCpuPrimitives;
  form.log = true;
  std::vector<NamedNetwork> networks;
  for (const auto& [name, architecture] :
       {std::pair{"pacm", &kPacm}, std::pair{"mlp", &kTenSetMlp}, std::pair{"tlp", &kTlp}}) {
    ModelWeights weights = initial_weights(*architecture, 5, form);
    for (const Branch& branch : branches_of(*architecture))
      weights.scale[branch.input].assign(static_cast<size_t>(input_row(branch.input).width), 10);
    networks.push_back({name, Network(weights)});
  }
  return networks;
}

/// The column's name, and a number for each candidate.
using Scores = std::vector<std::pair<std::string, std::vector<float>>>;

Scores scores_of(const Task& task,
                 const Space& space,
                 std::span<const Candidate> candidates,
                 std::span<const NamedNetwork> networks) {
  const TaskFlags flags = task_flags(task.dag);
  std::vector<ProgramFeatures> programs;
  std::vector<float> draft, release, paper, rows, dataflow;
  for (const Candidate& candidate : candidates) {
    const LoopNest nest = make_loop_nest(space, candidate);
    const Statements statements = make_statements(nest);
    draft.push_back(static_cast<float>(1e6 * draft_latency_s(nest, task.target)));
    if (task.target.is_gpu()) {
      const auto scored = [&](DraftForm form) {
        return static_cast<float>(draft_score(statements, task.target.gpu, form));
      };
      release.push_back(scored(DraftForm::kRelease));
      paper.push_back(scored(DraftForm::kPaper));
    }
    ProgramFeatures& program = programs.emplace_back(features(statements, flags));
    program.primitives = primitives(ansor::steps_of(space, candidate));
    rows.push_back(static_cast<float>(weighed_sum(program.rows)));
    dataflow.push_back(static_cast<float>(weighed_sum(program.dataflow)));
  }
  Scores scores = {{"draft us", draft}};
  if (task.target.is_gpu()) scores.insert(scores.end(), {{"release", release}, {"paper", paper}});
  scores.insert(scores.end(), {{"rows", rows}, {"data flow", dataflow}});
  for (const NamedNetwork& named : networks)
    scores.emplace_back(named.name, named.network.predict(programs, 1));
  return scores;
}

/// `Replay` makes a line of the golden file: what the layers make of a task's candidates.
class Replay {
 public:
  Replay(const Task& task, const std::string& target, const std::string& op)
      : task_(task), name_(target + "/" + op) {}

  /// Cells in the order of their columns, each with its column's name.
  std::vector<std::pair<std::string, std::string>> cells(std::span<const NamedNetwork> networks) {
    const Space space = make_space(task_);
    const std::vector<Candidate> candidates = fixed_candidates(space);
    std::array<Hasher64, 4> hashers;
    for (size_t i = 0; i < candidates.size(); ++i) {
      const auto add = [&](size_t column, const std::string& text) {
        hashers[column].add(text);
        keep(kHashed[column], i, text);
      };
      add(0, print(space, candidates[i]));
      const LoopNest nest = make_loop_nest(space, candidates[i]);
      add(1, print(nest));
      const Result<Program> program = lower(space, candidates[i], "k");
      EXPECT_TRUE(program.ok()) << program.error().message();
      add(2, print(*program));
      for (const CodeText form : texts_of(task_.target, *program)) {
        const Result<std::string> code = compile_to_text(*program, task_.target, form);
        EXPECT_TRUE(code.ok()) << code.error().message() << "\n" << print(space, candidates[i]);
        if (code.ok()) add(3, *code);
      }
    }
    std::vector<std::pair<std::string, std::string>> cells = {
        {"number", std::to_string(candidates.size())}};
    for (size_t column = 0; column < hashers.size(); ++column)
      cells.emplace_back(kHashed[column], fmt::format("{:016x}", hashers[column].hash()));
    for (const auto& [name, scores] : scores_of(task_, space, candidates, networks))
      cells.emplace_back(name, fmt::format("{:.9g}", weighed_sum(scores)));
    return cells;
  }

 private:
  static constexpr const char* kHashed[] = {"candidates", "nests", "programs", "code"};

  /// In the folder that PRUNER_REPLAY names.
  void keep(const std::string& what, size_t candidate, const std::string& text) const {
    const char* folder = std::getenv("PRUNER_REPLAY");
    if (folder == nullptr) return;
    const std::filesystem::path path = std::filesystem::path(folder) / name_;
    std::filesystem::create_directories(path);
    std::ofstream(path / fmt::format("{}.{}", candidate, what), std::ios::app) << text << "\n";
  }

  const Task& task_;
  std::string name_;
};

/// Hashes must be equal, scores nearly.
bool agree(const std::string& expected, const std::string& found) {
  if (expected == found) return true;
  if (found.size() == 16) return false;
  const double a = std::atof(expected.c_str()), b = std::atof(found.c_str());
  return std::abs(a - b) <= kTolerance * std::max(std::abs(a), std::abs(b));
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) parts.push_back(part);
  return parts;
}

struct ReplayCase {
  const char* name;
  Target (*target)();
};

class EveryTask : public testing::TestWithParam<ReplayCase> {};

TEST_P(EveryTask, GivesWhatItGave) {
  const Target target = GetParam().target();
  const std::vector<NamedNetwork> networks = networks_for(target);
  std::vector<std::string> operators(std::begin(kSmallOperators), std::end(kSmallOperators));
  operators.insert(operators.end(), std::begin(kNetworkOperators), std::end(kNetworkOperators));
  std::string header = "task", text;
  for (const std::string& op : operators) {
    const Task task = operator_task(op, target);
    std::string names = "task";
    text += op;
    for (const auto& [name, cell] : Replay(task, GetParam().name, op).cells(networks)) {
      names += "\t" + name;
      text += "\t" + cell;
    }
    header = names;
    text += "\n";
  }
  const std::string file = std::string("replay/") + GetParam().name + ".tsv";
  text = header + "\n" + text;
  const Result<std::string> golden = read_file(test_path("golden/" + file));
  if (!golden.ok() || std::getenv("PRUNER_GOLDEN") != nullptr) {
    EXPECT_GOLDEN(file, text);
    return;
  }
  const std::vector<std::string> expected = split(*golden, '\n'), found = split(text, '\n');
  const std::vector<std::string> columns = split(header, '\t');
  ASSERT_EQ(expected.size(), found.size());
  for (size_t l = 0; l < found.size(); ++l) {
    const std::vector<std::string> was = split(expected[l], '\t'), is = split(found[l], '\t');
    ASSERT_EQ(was.size(), columns.size()) << expected[l];
    for (size_t c = 0; c < columns.size(); ++c)
      EXPECT_TRUE(agree(was[c], is[c]))
          << columns[c] << " of " << is[0] << ": was " << was[c] << ", is " << is[c];
  }
}

INSTANTIATE_TEST_SUITE_P(Targets,
                         EveryTask,
                         testing::Values(ReplayCase{"cpu_16_lanes", [] { return test_target(64); }},
                                         ReplayCase{"cpu_8_lanes", [] { return test_target(32); }},
                                         ReplayCase{"cuda_sm_80", [] { return gpu_target(); }}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace pruner
