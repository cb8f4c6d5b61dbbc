// label: codegen
#include "deploy/range_kernels.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "codegen/codegen.h"
#include "deploy/range_trials.h"
#include "lower/range_tasks.h"

namespace pruner {
namespace {

const std::vector<Symbol> kLength = {{"n", 1, 100, {16, 64}}};

/// Times as they were measured, by the task's key.
struct Measured {
  std::map<std::string, std::vector<std::pair<Candidate, double>>> of_tasks;

  ScheduleTimes times() const {
    return
        [this](
            const Task& task, const Space&, const Candidate& candidate) -> std::optional<double> {
          const auto found = of_tasks.find(task.key);
          if (found == of_tasks.end()) return std::nullopt;
          for (const auto& [known, seconds] : found->second)
            if (known == candidate) return seconds;
          return std::nullopt;
        };
  }
};

std::vector<RangeKernel> kernels_of(const std::string& op, const Measured& measured) {
  TaskRange task = task_range(op, kLength, host_target(2));
  const auto any = [](size_t, const PackSpec&) { return true; };
  Result<std::vector<RangeKernel>> kernels =
      range_kernels(task, nullptr, measured.times(), any, "k");
  EXPECT_TRUE(kernels.ok()) << kernels.error().message();
  return kernels.ok() ? *std::move(kernels) : std::vector<RangeKernel>();
}

/// Asks for times until none is missing, as often as that may take: `seconds` of the pass.
template <typename Seconds>
Measured measured_until_known(const std::string& op, const Seconds& seconds) {
  Measured measured;
  for (int pass = 0; pass < 12; ++pass) {
    TaskRange task = task_range(op, kLength, host_target(2));
    const Result<std::vector<ShapeTrials>> missing = contenders(task, nullptr, measured.times());
    EXPECT_TRUE(missing.ok()) << missing.error().message();
    if (missing->empty()) return measured;
    for (const ShapeTrials& trials : *missing) {
      for (const Candidate& candidate : trials.candidates) {
        EXPECT_TRUE(is_legal(trials.space, candidate));
        measured.of_tasks[trials.task.key].emplace_back(candidate, seconds(pass));
      }
    }
  }
  ADD_FAILURE() << "there is no end to what is asked for";
  return measured;
}

class RangeKernels : public testing::TestWithParam<const char*> {};

TEST_P(RangeKernels, HaveOneKernelAtEachShape) {
  std::vector<int> of_shapes(101, 0);
  for (const RangeKernel& kernel : kernels_of(GetParam(), {}))
    for (const SymbolBox& box : kernel.boxes)
      for (int64_t n = box.min[0]; n <= box.max[0]; ++n) ++of_shapes[static_cast<size_t>(n)];
  for (size_t n = 1; n <= 100; ++n) EXPECT_EQ(of_shapes[n], 1) << n;
}

TEST_P(RangeKernels, AskForTimesUntilTheyAreKnown) {
  Rng rng(6);
  measured_until_known(GetParam(),
                       [&](int) { return 1e-3 * static_cast<double>(1 + rng.below(100)); });
}

INSTANTIATE_TEST_SUITE_P(Deploy,
                         RangeKernels,
                         testing::Values("dense {n} 64 96 +bias",
                                         "layernorm {n} 32",
                                         "attention 1 2 {n} {n} 16"));

// The grid of two symbols has many cells without a program of a range, which once had kernels each.
TEST(RangeKernelsOfTwoSymbols, AreFewAndHaveOneAtEachShape) {
  TaskRange task =
      task_range("softmax {m} {n}", {{"m", 2, 16, {}}, {"n", 2, 16, {}}}, host_target(2));
  const auto any = [](size_t, const PackSpec&) { return true; };
  const Result<std::vector<RangeKernel>> kernels = range_kernels(task, nullptr, nullptr, any, "k");
  ASSERT_TRUE(kernels.ok()) << kernels.error().message();
  EXPECT_LT(kernels->size(), 20u);
  std::map<SymbolValues, int> of_shapes;
  for (const RangeKernel& kernel : *kernels)
    for (const SymbolBox& box : kernel.boxes)
      for (int64_t m = box.min[0]; m <= box.max[0]; ++m)
        for (int64_t n = box.min[1]; n <= box.max[1]; ++n) ++of_shapes[{m, n}];
  EXPECT_EQ(of_shapes.size(), 15u * 15u);
  for (const auto& [shape, count] : of_shapes) EXPECT_EQ(count, 1) << shape[0] << " " << shape[1];
}

// The draft's first candidates are measured to be slow; those it asks for later, to be fast.
TEST(RangeKernelsByTime, AreThoseMeasuredFastest) {
  const std::string op = "dense {n} 64 96 +bias";
  std::set<std::string> drafted;
  for (const RangeKernel& kernel : kernels_of(op, {})) drafted.insert(print(kernel.program));
  const Measured measured =
      measured_until_known(op, [](int pass) { return pass == 0 ? 1.0 : 1e-6; });
  for (const RangeKernel& kernel : kernels_of(op, measured)) {
    const bool few = kernel.boxes.front().max[0] < 16;  // small boxes may have no other schedule
    EXPECT_TRUE(few || !drafted.contains(print(kernel.program))) << kernel.boxes.front().min[0];
  }
}

TEST(LimitTrials, LeavesTheFirstOfEachTaskBeforeTheSecondOfAny) {
  const Task task = operator_task("matmul 8 8 8");
  const Space space = make_space(task);
  const auto trials_of = [&](std::initializer_list<int> counts) {
    std::vector<ShapeTrials> trials;
    for (const int count : counts) {
      trials.push_back({task, space, {}});
      for (int32_t c = 0; c < count; ++c) trials.back().candidates.push_back({SketchId{0}, {c}});
    }
    return trials;
  };
  std::vector<ShapeTrials> trials = trials_of({3, 1, 2});
  limit_trials(trials, 5);
  EXPECT_EQ(trials[0].candidates, (trials_of({2})[0].candidates));
  EXPECT_EQ(trials[1].candidates.size(), 1u);
  EXPECT_EQ(trials[2].candidates.size(), 2u);
  limit_trials(trials, 2);
  EXPECT_EQ(trials.size(), 2u);
}

// Whose rows lie at constant distances; no machine with the unit is needed to compile them.
TEST(RangeKernelsOfMatrixUnits, AreCompiled) {
  const Target target = *parse_target("llvm -mcpu=sapphirerapids", 2);
  TaskRange task = task_range("dense {n} 128 128 bits=16 exponent=8", {{"n", 32, 128, {}}}, target);
  const Space& space = task.space_at({128});
  Rng rng(8);
  int compiled = 0;
  for (int i = 0; i < 60; ++i) {
    const Candidate candidate = sample(space, rng);
    if (space[candidate.sketch].name.find("matrix") == std::string::npos) continue;
    const Result<RangeProgram> made = lower_over_range(task, {128}, candidate, "k", task.box());
    if (!made.ok()) continue;
    const Result<Artifact> artifact = compile(made->program, target, "k");
    EXPECT_TRUE(artifact.ok()) << artifact.error().message();
    ++compiled;
  }
  EXPECT_GT(compiled, 0);
}

}  // namespace
}  // namespace pruner
