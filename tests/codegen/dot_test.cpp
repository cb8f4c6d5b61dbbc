// label: codegen
// Contractions of narrow numbers by instructions that add several products to a sum: their programs
// compute what the DAG does, and code that a CPU with the instructions runs gives the same bits, of
// small whole numbers, whose sums are exact in any order.
#include <gtest/gtest.h>

#include <algorithm>

#include "codegen/candidate_code.h"
#include "lower/meaning.h"
#include "space/dot.h"
#include "space/operator_task.h"

namespace pruner {
namespace {

constexpr const char* kOperators[] = {
    "dense 5 19 24 +bias",
    "dense 33 100 68",
    "dense 17 48 4104 +relu",
    "conv2d 1 16 7 7 8 3 3 padding=1 +bias +relu",
    "conv2d 2 20 9 5 4 3 3 stride=2 padding=1",
    "conv2d 1 53 6 6 36 1 1 +bias +residual +relu",
    "conv2d 1 8 6 6 12 3 3 padding=2 dilation=2",
};
constexpr const char* kTypes[] = {"bits=16 exponent=8", "bits=8"};

Target dot_target(int64_t vector_bytes) {
  Target target = test_target(vector_bytes);
  target.dots = {2, 4};
  target.mcpu = "znver4";
  return target;
}

std::string typed(const std::string& op, const std::string& type) {
  const size_t plus = std::min(op.find(" +"), op.size());
  return op.substr(0, plus) + " " + type + op.substr(plus);
}

bool is_dot(const Sketch& sketch) {
  return sketch.name.find("pair") != std::string::npos ||
         sketch.name.find("quad") != std::string::npos;
}

bool has_dots(const Space& space) { return std::ranges::any_of(space.sketches, is_dot); }

Candidate sample_dot(const Space& space, Rng& rng) {
  while (true) {
    const Candidate candidate = sample(space, rng);
    if (is_dot(space[candidate.sketch])) return candidate;
  }
}

Tensor small_numbers(const Stage& stage, Rng& rng) {
  Tensor tensor(stage.dtype, stage.shape());
  const int64_t least = stage.dtype == DType::kUInt8 ? 0 : -8;
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    tensor.set(i, static_cast<double>(least + static_cast<int64_t>(rng.below(17))));
  return tensor;
}

class DotInstructions
    : public testing::TestWithParam<std::tuple<const char*, const char*, int64_t>> {
 protected:
  DotInstructions()
      : task(operator_task(typed(std::get<0>(GetParam()), std::get<1>(GetParam())),
                           dot_target(std::get<2>(GetParam())))) {}
  Task task;
};

TEST_P(DotInstructions, MeanWhatTheDagDoes) {
  Rng rng(5);
  const Meaning meaning(task.dag, rng);
  const Space space = make_space(task);
  ASSERT_TRUE(has_dots(space));
  for (int i = 0; i < candidates_each(4); ++i) meaning.check(space, sample_dot(space, rng));
}

TEST_P(DotInstructions, GiveTheBitsOfTheInterpreter) {
  if (!__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_supports("avx512vnni"))
    GTEST_SKIP() << "this CPU has no AVX512-BF16 or no AVX512-VNNI";
  const Space space = make_space(task);
  ASSERT_TRUE(has_dots(space));
  Rng rng(7);
  std::vector<Tensor> inputs;
  for (const StageId id : task.dag.inputs()) inputs.push_back(small_numbers(task.dag[id], rng));
  const std::vector<Tensor> expected = interpret(task.dag, inputs);
  const bool floats = task.dag[task.dag.inputs()[0]].dtype == DType::kBFloat16;
  for (int i = 0; i < candidates_each(6); ++i) {
    const Candidate candidate = sample_dot(space, rng);
    const std::string what = print(space, candidate);
    const Result<Program> program = lower(space, candidate, "k");
    ASSERT_TRUE(program.ok()) << program.error().message() << "\n" << what;
    const Result<std::string> text = compile_to_text(*program, task.target, CodeText::kAssembly);
    ASSERT_TRUE(text.ok()) << text.error().message();
    EXPECT_NE(text->find(floats ? "vdpbf16ps" : "vpdpbusd"), std::string::npos) << what;
    const Tensor out = run_code(*program, task.target, inputs);
    ASSERT_EQ(out.shape(), expected[0].shape()) << what;
    for (int64_t e = 0; e < out.num_elements(); ++e)
      ASSERT_EQ(out.get(e), expected[0].get(e)) << "element " << e << "\n" << what;
  }
}

INSTANTIATE_TEST_SUITE_P(Candidates,
                         DotInstructions,
                         testing::Combine(testing::ValuesIn(kOperators),
                                          testing::ValuesIn(kTypes),
                                          testing::Values(64, 32)));

// Where FMAs are as fast, where a term is left over, and where no weight can be packed.
TEST(DotInstruction, IsTakenWhereItPays) {
  const auto has = [](const std::string& op, const Target& target) {
    return has_dots(make_space(operator_task(op, target)));
  };
  Target slow = dot_target(64);
  slow.dots = {0.5, 0};
  const std::string pair = "dense 8 16 32 bits=16 exponent=8", quad = "dense 8 16 32 bits=8";
  EXPECT_TRUE(has(pair, dot_target(64)) && has(quad, dot_target(64)));
  EXPECT_FALSE(has(pair, slow) || has(quad, slow));
  EXPECT_FALSE(has("dense 8 16 33 bits=16 exponent=8", dot_target(64)));
  EXPECT_FALSE(has("dense 8 16 34 bits=8", dot_target(64)));
  EXPECT_FALSE(has("matmul 8 16 32 bits=16 exponent=8", dot_target(64)));
  EXPECT_FALSE(has("dense 8 16 32 bits=16", dot_target(64)));
}

}  // namespace
}  // namespace pruner
