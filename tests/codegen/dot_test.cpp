// label: codegen
// Contractions of narrow numbers by instructions that add several products to each sum of a vector
// or of a tile: their programs compute what the DAG does, and code that a CPU with the instructions
// runs gives the same bits, of small whole numbers, whose sums are exact in any order.
#include <gtest/gtest.h>

#include <limits>

#include "analysis/draft.h"
#include "codegen/candidate_code.h"
#include "codegen/dot_tasks.h"
#include "lower/meaning.h"
#include "space/dot.h"

namespace pruner {
namespace {

// "bits=" multiplies numbers in parts of narrower types.
constexpr const char* kTileTypes[] = {kOfBfloat16, "bits=16", kOfBytes, "bits=32"};

Target dot_target(int64_t vector_bytes) {
  Target target = test_target(vector_bytes);
  target.dots = {2, 4};
  target.mcpu = "znver4";
  return target;
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

// Arm's, of which programs alone are run here (aarch64_test runs code).
void expect_meaning(std::span<const Task> tasks, bool (*wanted)(const Sketch&)) {
  Rng rng(5);
  for (const Task& task : tasks) {
    SCOPED_TRACE(task.name);
    const Meaning meaning(task.dag, rng);
    const Space space = make_space(task);
    ASSERT_TRUE(std::ranges::any_of(space.sketches, wanted));
    for (int i = 0; i < candidates_each(3); ++i)
      meaning.check(space, sample_dot(space, rng, wanted));
  }
}

TEST(ArmDotInstructions, MeanWhatTheDagDoes) {
  const Target arm = arm_target("neoverse-v1"), alike = arm_target("cortex-a76");
  std::vector<Task> tasks = {quantized_task(arm),
                             quantized_task(alike, DType::kInt8),
                             byte_product_task(alike, 33, 50, 68, DType::kInt8, DType::kInt8),
                             byte_product_task(alike, 33, 50, 68, DType::kUInt8, DType::kUInt8)};
  for (const char* op : kDotOperators) {
    tasks.push_back(operator_task(typed(op, kOfBfloat16), arm));
    tasks.push_back(operator_task(typed(op, kOfBytes), arm));
  }
  expect_meaning(tasks, is_dot);
}

TEST(ArmMatrixInstructions, MeanWhatTheDagDoes) {
  const Target arm = arm_target("neoverse-v1");
  std::vector<Task> tasks = {quantized_task(arm),
                             byte_product_task(arm, 33, 50, 72, DType::kInt8, DType::kInt8),
                             byte_product_task(arm, 2, 3, 8, DType::kUInt8, DType::kUInt8)};
  for (const char* op : kTileOperators) {
    tasks.push_back(operator_task(typed(op, kOfBfloat16), arm));
    tasks.push_back(operator_task(typed(op, kOfBytes), arm));
  }
  expect_meaning(tasks, is_matrix);
}

// Some candidates' code has the instruction and gives what the interpreter gives, bit for bit.
void expect_bits(const Task& task,
                 bool (*wanted)(const Sketch&),
                 const std::string& instruction,
                 int candidates) {
  const Space space = make_space(task);
  ASSERT_TRUE(std::ranges::any_of(space.sketches, wanted));
  Rng rng(7);
  const std::vector<Tensor> inputs = small_inputs(task.dag, rng);
  const std::vector<Tensor> expected = interpret(task.dag, inputs);
  for (int i = 0; i < candidates; ++i) {
    const Candidate candidate = sample_dot(space, rng, wanted);
    const std::string what = print(space, candidate);
    const Result<Program> program = lower(space, candidate, "k");
    ASSERT_TRUE(program.ok()) << program.error().message() << "\n" << what;
    const Result<std::string> text = compile_to_text(*program, task.target, CodeText::kAssembly);
    ASSERT_TRUE(text.ok()) << text.error().message();
    EXPECT_NE(text->find(instruction), std::string::npos) << what;
    const Tensor out = run_code(*program, task.target, inputs);
    ASSERT_EQ(out.shape(), expected[0].shape()) << what;
    for (int64_t e = 0; e < out.num_elements(); ++e)
      ASSERT_EQ(out.get(e), expected[0].get(e)) << "element " << e << "\n" << what;
  }
}

bool is_of_bytes(const Task& task) { return task.dag[task.dag.inputs()[0]].dtype == DType::kUInt8; }

TEST_P(DotInstructions, GiveTheBitsOfTheInterpreter) {
  if (!__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_supports("avx512vnni"))
    GTEST_SKIP() << "this CPU has no AVX512-BF16 or no AVX512-VNNI";
  expect_bits(task, is_dot, is_of_bytes(task) ? "vpdpbusd" : "vdpbf16ps", candidates_each(6));
}

INSTANTIATE_TEST_SUITE_P(Candidates,
                         DotInstructions,
                         testing::Combine(testing::ValuesIn(kDotOperators),
                                          testing::Values(kOfBfloat16, kOfBytes),
                                          testing::Values(64, 32)));

class MatrixInstructions : public testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  MatrixInstructions()
      : task(operator_task(typed(std::get<0>(GetParam()), std::get<1>(GetParam())),
                           matrix_target())) {}
  static Target matrix_target() {
    Target target = test_target(64);
    target.dots = {0, 0, 16, 32, 0, 16};
    target.mcpu = "sapphirerapids";
    return target;
  }
  Task task;
};

TEST_P(MatrixInstructions, MeanWhatTheDagDoes) {
  Rng rng(5);
  const Meaning meaning(task.dag, rng);
  const Space space = make_space(task);
  ASSERT_TRUE(std::ranges::any_of(space.sketches, is_matrix));
  for (int i = 0; i < candidates_each(4); ++i)
    meaning.check(space, sample_dot(space, rng, is_matrix));
}

TEST_P(MatrixInstructions, GiveTheBitsOfTheInterpreter) {
  if (host_target(1).dots.bfloat16_tile == 0) GTEST_SKIP() << "this machine has no AMX";
  if (task.dag[task.dag.inputs()[0]].dtype == DType::kFloat16)
    GTEST_SKIP() << "Float16Tiles looks at its code";
  expect_bits(task, is_matrix, is_of_bytes(task) ? "tdpbusd" : "tdpbf16ps", candidates_each(6));
}

INSTANTIATE_TEST_SUITE_P(Candidates,
                         MatrixInstructions,
                         testing::Combine(testing::ValuesIn(kTileOperators),
                                          testing::ValuesIn(kTileTypes)));

// Sums beyond 256, which bfloat16 has not all of.
Task rounded_task(const Target& target) {
  DagBuilder b;
  const StageId data = b.placeholder("data", {37, 96}, DType::kBFloat16);
  const StageId weight = b.placeholder("weight", {83, 96}, DType::kBFloat16, true);
  const StageId sums = add_dense(b, data, weight, DType::kFloat32);
  const StageId rounded =
      add_elementwise(b, "T_cast", {{sums}}, [](auto x) { return cast(DType::kBFloat16, x[0]); });
  return make_task(b.finish({rounded}), target, "rounded");
}

TEST(DotInstructionsOfBfloat16, RoundWhatIsStoredByOne) {
  if (!__builtin_cpu_supports("avx512bf16")) GTEST_SKIP() << "this CPU has no AVX512-BF16";
  expect_bits(rounded_task(dot_target(64)), is_dot, "vcvtneps2bf16", candidates_each(6));
}

TEST(Float16Tiles, AreInTheCodeForACpuThatHasThem) {
  const Result<Target> target = parse_target("llvm -mcpu=graniterapids --threads=2", 0);
  ASSERT_TRUE(target.ok()) << target.error().message();
  const Task task = operator_task("dense 37 96 80 bits=16", *target);
  const Space space = make_space(task);
  ASSERT_TRUE(std::ranges::any_of(space.sketches, is_matrix));
  Rng rng(3);
  const Result<Program> program = lower(space, sample_dot(space, rng, is_matrix), "k");
  ASSERT_TRUE(program.ok()) << program.error().message();
  const Result<std::string> text = compile_to_text(*program, *target, CodeText::kAssembly);
  ASSERT_TRUE(text.ok()) << text.error().message();
  EXPECT_NE(text->find("tdpfp16ps"), std::string::npos);
  EXPECT_FALSE(
      std::ranges::any_of(make_space(operator_task("dense 37 96 80 bits=16",
                                                   *parse_target("llvm -mcpu=sapphirerapids", 0)))
                              .sketches,
                          is_matrix));
}

TEST(QuantizedConvolution, GivesTheBitsOfTheInterpreter) {
  if (!__builtin_cpu_supports("avx512vnni")) GTEST_SKIP() << "this CPU has no AVX512-VNNI";
  expect_bits(quantized_task(dot_target(64)), is_dot, "vpdpbusd", candidates_each(8));
  if (host_target(1).dots.bfloat16_tile == 0) GTEST_SKIP() << "this machine has no AMX";
  Target tiles = test_target(64);
  tiles.dots = {0, 0, 16, 32};
  tiles.mcpu = "sapphirerapids";
  expect_bits(quantized_task(tiles), is_matrix, "tdpbusd", candidates_each(8));
}

// The whole tiles of an axis, and tiles that overlap as little as may be.
TEST(MatrixRows, DivideTheAxis) {
  for (const auto& [extent, rows] :
       {std::pair{16, 16}, {128, 16}, {56, 14}, {14, 14}, {7, 7}, {35, 12}, {197, 16}})
    EXPECT_EQ(matrix_rows(extent, 16), rows) << extent;
  for (const auto& [extent, steps] :
       {std::pair{16, 16}, {32, 16}, {24, 12}, {40, 10}, {13, 13}, {17, 1}})
    EXPECT_EQ(matrix_steps(extent, 16), steps) << extent;
}

// The least draft of some candidates of a kind.
double best_draft_s(const Task& task, bool (*wanted)(const Sketch&)) {
  const Space space = make_space(task);
  Rng rng(11);
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 200; ++i) {
    const Candidate candidate = sample_dot(space, rng, wanted);
    least = std::min(least, draft_latency_s(make_loop_nest(space, candidate), task.target));
  }
  return least;
}

// The draft of a faster instruction is faster by the ratio of the rates, or nearly.
TEST(ArmInstructions, AreWhatTheDraftPrefers) {
  const auto is_plain = [](const Sketch& sketch) { return !is_dot(sketch) && !is_matrix(sketch); };
  for (const char* type : {kOfBytes, kOfBfloat16}) {
    const Task task = operator_task(typed("dense 128 768 768", type), arm_target("neoverse-v1"));
    const double matrix_s = best_draft_s(task, is_matrix), dot_s = best_draft_s(task, is_dot);
    EXPECT_LT(1.4 * matrix_s, dot_s) << type;
    EXPECT_LT(1.4 * dot_s, best_draft_s(task, is_plain)) << type;
  }
  const Task alike =
      byte_product_task(arm_target("cortex-a76"), 128, 768, 768, DType::kInt8, DType::kInt8);
  EXPECT_LT(2 * best_draft_s(alike, is_dot), best_draft_s(alike, is_plain));
}

// Tiles of two rows, whose terms divide the sum, where unsigned data meet signed weights.
TEST(MatrixInstruction, OfTwoRowsIsTakenWhereItFits) {
  const auto has = [](const Task& task) {
    return std::ranges::any_of(make_space(task).sketches, is_matrix);
  };
  const auto of_bytes = [&](const Target& target, int64_t m, int64_t k, DType data, DType weight) {
    return has(byte_product_task(target, m, 16, k, data, weight));
  };
  const Target arm = arm_target("neoverse-n2"), alike = arm_target("neoverse-n1");
  constexpr DType kU8 = DType::kUInt8, kS8 = DType::kInt8;
  EXPECT_TRUE(has(operator_task("dense 8 16 36 bits=16 exponent=8", arm)));
  EXPECT_FALSE(has(operator_task("dense 8 16 34 bits=16 exponent=8", arm)));
  EXPECT_TRUE(of_bytes(arm, 2, 8, kU8, kS8) && of_bytes(arm, 3, 8, kS8, kS8));
  EXPECT_FALSE(of_bytes(arm, 1, 8, kU8, kS8) || of_bytes(arm, 2, 12, kU8, kS8));
  EXPECT_FALSE(of_bytes(arm, 2, 8, kS8, kU8) || of_bytes(alike, 2, 8, kS8, kS8));
}

// The instruction is not taken if FMAs are as fast, a term is left over or no weight can be packed.
TEST(DotInstruction, IsTakenWhereItPays) {
  const auto has = [](const std::string& op, const Target& target) {
    return has_dots(make_space(operator_task(op, target)));
  };
  Target slow = dot_target(64);
  slow.dots = {0.5, 0};
  const std::string pair = "dense 8 16 32 bits=16 exponent=8", quad = "dense 8 16 32 bits=8";
  const Target arm = arm_target("neoverse-v1"), alike = arm_target("cortex-a76");
  EXPECT_TRUE(has(pair, arm) && has(quad, arm));
  EXPECT_FALSE(has(pair, alike) || has(quad, alike));
  EXPECT_FALSE(has(pair, arm_target("cortex-a72")) || has(quad, arm_target("cortex-a72")));
  for (const DType type : {DType::kInt8, DType::kUInt8}) {
    const auto has_alike = [&](const Target& target) {
      return has_dots(make_space(byte_product_task(target, 8, 16, 32, type, type)));
    };
    EXPECT_TRUE(has_alike(arm) && has_alike(alike));
    EXPECT_FALSE(has_alike(arm_target("cortex-a72")) || has_alike(dot_target(64)));
  }
  EXPECT_TRUE(has(pair, dot_target(64)) && has(quad, dot_target(64)));
  EXPECT_FALSE(has(pair, slow) || has(quad, slow));
  EXPECT_FALSE(has("dense 8 16 33 bits=16 exponent=8", dot_target(64)));
  EXPECT_FALSE(has("dense 8 16 34 bits=8", dot_target(64)));
  EXPECT_FALSE(has("matmul 8 16 32 bits=16 exponent=8", dot_target(64)));
  EXPECT_FALSE(has("dense 8 16 32 bits=16", dot_target(64)));
}

}  // namespace
}  // namespace pruner
