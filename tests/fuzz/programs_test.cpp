// label: cuda-fake
// Random DAGs x random candidates of every sketch x backends: programs compute what the DAG means,
// in the interpreter and as code that runs. For PRUNER_FUZZ_S seconds (default 20), from seed
// PRUNER_FUZZ_SEED on (default 1); a failure names its seed, which 0 seconds repeat.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "codegen/candidate_code.h"
#include "fakes/fake_cuda.h"
#include "fuzz/random_dag.h"
#include "lower/meaning.h"
#include "runtime/candidate_run.h"

namespace pruner {
namespace {

double number_of(const char* variable, double otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atof(text);
}

/// A backend, and how many of its candidates are interpreted for one that runs.
struct Row {
  const char* name;
  Target target;
  int64_t interpreted;
  int64_t programs = 0, runs = 0;
};

std::vector<Row> rows() {
  std::vector<Row> rows = {{"AVX2", test_target(32), 1}};
  if (__builtin_cpu_supports("avx512vl")) rows.push_back({"AVX-512", test_target(64), 1});
  rows.push_back({"CUDA", *parse_target("cuda --arch=sm_80", 0), 16});
  if (list_gpus(Backend::kOpenCl).ok()) rows.push_back({"OpenCL", *parse_target("opencl", 0), 4});
  return rows;
}

/// A legal candidate of one sketch, drawn and perhaps mutated; few draws of some sketches are
/// legal.
std::optional<Candidate> any_candidate(Space& space, Rng& rng) {
  space.drawn = {SketchId{static_cast<int32_t>(rng.below(std::ssize(space.sketches)))}};
  if (rng.below(4) == 0) {
    for (Sketch& sketch : space.sketches)
      for (Decision& decision : sketch.decisions) decision.worth_drawing.clear();
  }
  for (int draws = 0; draws < 30; ++draws) {
    const Candidate candidate = draw(space, rng);
    if (!is_legal(space, candidate)) continue;
    return rng.below(2) == 0 ? candidate : mutate(space, candidate, rng).value_or(candidate);
  }
  return std::nullopt;
}

void expect_same(const Tensor& found, const Tensor& expected) {
  ASSERT_EQ(found.shape(), expected.shape());
  for (int64_t e = 0; e < expected.num_elements(); ++e) {
    ASSERT_NEAR(found.get(e),
                expected.get(e),
                tolerance_of(expected.dtype()) * (1 + std::abs(expected.get(e))))
        << "element " << e;
  }
}

TEST(RandomPrograms, ComputeWhatTheDagDoes) {
  using Clock = std::chrono::steady_clock;
  const FakeCuda cuda;
  setenv("POCL_CACHE_DIR", testing::TempDir().c_str(), 1);
  const auto begin = Clock::now();
  const double limit_s = number_of("PRUNER_FUZZ_S", 20);
  auto seed = static_cast<uint64_t>(number_of("PRUNER_FUZZ_SEED", 1));
  std::vector<Row> backends = rows();
  do {
    SCOPED_TRACE("PRUNER_FUZZ_SEED=" + std::to_string(seed));
    Rng rng(seed++);
    const ComputeDag dag = rng.below(3) == 0 ? random_operator(rng) : RandomDag(rng).make();
    SCOPED_TRACE(print(dag));
    const Meaning meaning(dag, rng);
    for (Row& row : backends) {
      SCOPED_TRACE(row.name);
      const Task task = make_task(dag, row.target, "random");
      Space space = make_space(task);
      const std::optional<Candidate> candidate = any_candidate(space, rng);
      if (!candidate) continue;
      SCOPED_TRACE(print(space, *candidate));
      ++row.programs;
      meaning.check(space, *candidate);
      if (HasFailure()) return;
      if (rng.below(row.interpreted) != 0) continue;
      ++row.runs;
      if (task.target.is_gpu()) {
        const std::vector<Tensor> found =
            run_candidate(space, *candidate, meaning.inputs(), meaning.expected());
        if (!HasFailure()) expect_same(found[0], meaning.expected()[0]);
      } else {
        const Result<Program> program = lower(space, *candidate, "k");
        expect_same(run_code(*program, task.target, meaning.inputs()), meaning.expected()[0]);
      }
      if (HasFailure()) return;
    }
  } while (std::chrono::duration<double>(Clock::now() - begin).count() < limit_s);
  EXPECT_EQ(cuda.end(), "");
  for (const Row& row : backends)
    std::cout << row.name << ": " << row.programs << " programs, " << row.runs << " runs\n";
}

}  // namespace
}  // namespace pruner
