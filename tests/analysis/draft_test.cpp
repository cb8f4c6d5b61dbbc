#include "analysis/draft.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "space/operator_task.h"
#include "space/space.h"
#include "target/device_file.h"
#include "target/machine_model.h"

namespace pruner {
namespace {

Draft draft_of(const Task& task, const Space& space, const std::string& candidate) {
  const Result<Candidate> parsed = parse_candidate(space, candidate);
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().message());
  return draft(make_loop_nest(space, *parsed), task.target);
}

std::string matmul(const char* rows, const char* vectors) {
  return std::string(
             "register-tile: T_matmul_NN.local.unroll=64 T_matmul_NN.i.middle=4 "
             "T_matmul_NN.i.inner=1 T_matmul_NN.i.rows=") +
         rows + " T_matmul_NN.j.middle=2 T_matmul_NN.j.inner=1 T_matmul_NN.j.vectors=" + vectors +
         " T_matmul_NN.parallel_order=0 T_matmul_NN.order=0";
}

TEST(Draft, CountsTheOperationsOfAMatmul) {
  const Task task = operator_task("matmul 256 256 256");
  const Space space = make_space(task);
  const Draft d = draft_of(task, space, matmul("8", "2"));
  const StageSymbols& contraction = d.stages[0];
  // One vector operation does 16 multiply-adds.
  EXPECT_DOUBLE_EQ(contraction.steps * contraction.operation_cycles * task.target.fmas_per_cycle,
                   256.0 * 256 * 256 / 16);
  EXPECT_GT(d.latency_s, task.flops / (2 * task.target.peak_flops));
}

TEST(Draft, TooFewAccumulatorsWaitForTheirChain) {
  const Task task = operator_task("matmul 256 256 256");
  const Space space = make_space(task);
  EXPECT_GT(draft_of(task, space, matmul("1", "1")).latency_s,
            2 * draft_of(task, space, matmul("8", "2")).latency_s);
}

TEST(Draft, AnOddTileCostsTheWorkItRepeats) {
  const Task task = operator_task("matmul 256 256 256");
  const Space space = make_space(task);
  const Draft whole = draft_of(task, space, matmul("8", "2")),
              odd = draft_of(task, space, matmul("7", "2"));
  EXPECT_GT(odd.stages[0].steps * odd.stages[0].operation_cycles,
            whole.stages[0].steps * whole.stages[0].operation_cycles);
}

// A form's product is F(m x m): 9 m^2 / (m + 2)^2 times fewer multiplications than the direct one.
TEST(Draft, CountsTheOperationsOfAWinogradProduct) {
  const Task task = operator_task("conv2d 1 64 16 16 64 3 3 padding=1");
  for (const auto& [form, points, tiles] :
       {std::tuple{"winograd-2x2", 16., 64.}, {"winograd-4x4", 36., 16.}}) {
    const Space space = make_space(task, std::vector<std::string>{form});
    Rng rng(2);
    double least = 1e30;
    for (int i = 0; i < 200; ++i) {
      const Draft d = draft(make_loop_nest(space, sample(space, rng)), task.target);
      for (const StageSymbols& s : d.stages) {
        EXPECT_GT(s.steps, 0);
        EXPECT_TRUE(std::isfinite(s.operation_cycles + s.memory_cycles + s.l2_bytes + s.l3_bytes));
      }
      EXPECT_GT(d.latency_s, 0);
      const StageSymbols& product = d.stages[2];  // rows, data, product
      least = std::min(least, product.steps * product.operation_cycles);
    }
    // Full tiles do exactly that; others repeat some of it.
    EXPECT_DOUBLE_EQ(least * task.target.fmas_per_cycle, points * tiles * 64 * 64 / 16);
  }
}

// Vectors of 16 lanes lie in two groups of 18 channels, in one of 16, and are two whole ones of 8.
TEST(Draft, CountsTheVectorsThatTwoGroupsShare) {
  const auto memory_cycles = [](const std::string& groups) {
    const Task task = operator_task("conv2d 1 " + groups + " 3 3 padding=1 groups=4");
    const Space space = make_space(task, std::vector<std::string>{"direct"});
    Rng rng(3);
    double least = 1e30;
    for (int i = 0; i < 100; ++i) {
      const Candidate candidate = sample(space, rng);
      for (const StageSymbols& s : draft(make_loop_nest(space, candidate), task.target).stages) {
        if (s.chain_cycles > 0) least = std::min(least, s.memory_cycles / s.operation_cycles);
      }
    }
    return least;
  };
  EXPECT_GT(memory_cycles("72 14 14 72"), 2 * memory_cycles("64 14 14 64"));
  EXPECT_GT(memory_cycles("72 14 14 72"), 2 * memory_cycles("32 14 14 32"));
}

// The sum of a convolution of 8 groups of 24 channels in vectors of 8, in tiles of `rows` rows.
StageSymbols grouped_tile(const std::string& rows, const char* vectors, const char* padding) {
  const Task task = operator_task("conv2d 1 192 28 28 192 3 3 padding=1 groups=8");
  const Space space = make_space(task, std::vector<std::string>{"direct"});
  const Draft drafted = draft_of(
      task,
      space,
      std::string("register-tile: PaddedInput.at=") + padding +
          " Conv2dOutput.local.unroll=16 Conv2dOutput.local.prefetch=0 "
          "Conv2dOutput.yy.middle=1 Conv2dOutput.yy.inner=1 Conv2dOutput.yy.rows=" +
          rows +
          " Conv2dOutput.xx.middle=1 Conv2dOutput.xx.inner=14 Conv2dOutput.xx.rows=1 "
          "Conv2dOutput.ff.middle=1 Conv2dOutput.ff.inner=1 Conv2dOutput.ff.vectors_of_8=" +
          vectors + " Conv2dOutput.parallel_order=0 Conv2dOutput.order=0");
  for (const StageSymbols& s : drafted.stages)
    if (s.chain_cycles > 0) return s;
  return {};
}

// Two vectors of 8 may lie in two groups of 24 channels, three are one.
TEST(Draft, CountsAValueForEachGroupOfATile) {
  const StageSymbols two = grouped_tile("7", "2", "0"), three = grouped_tile("7", "3", "0");
  EXPECT_DOUBLE_EQ(two.operation_cycles, 7);
  EXPECT_DOUBLE_EQ(two.memory_cycles, 7 + 1);  // 2 groups of 7 rows, 2 vectors of the weight
  EXPECT_DOUBLE_EQ(three.operation_cycles, 10.5);
  EXPECT_DOUBLE_EQ(three.memory_cycles, 3.5 + 1.5);
}

// The rows of a tile of 16 columns are 12,288 bytes apart, in one set; those of all 30 are not.
TEST(Draft, SeesRowsInOneSetOfAnAttachedTile) {
  EXPECT_DOUBLE_EQ(grouped_tile("7", "3", "1").memory_cycles, 2.5 * 3.5 + 1.5);
}

// A weight that is packed by terms comes from memory once, with hardly more than its bytes, in
// some candidates of each structure that reads it so.
TEST(Draft, StreamsPackedTermsOnce) {
  const Result<Target> target = parse_target("llvm -mcpu=sapphirerapids", 2);
  ASSERT_TRUE(target.ok());
  const Task task =
      operator_task("conv2d 1 256 14 14 256 3 3 padding=1 bits=16 exponent=8", *target);
  const Space space = make_space(task);
  constexpr double kWeightBytes = 2 * 9 * 256 * 256;
  std::map<std::string, double> least;
  Rng rng(3);
  for (int i = 0; i < 600; ++i) {
    const Candidate candidate = sample(space, rng);
    const std::string& name = space[candidate.sketch].name;
    if (!name.starts_with("pair")) continue;
    double bytes = 0;
    for (const StageSymbols& stage : draft(make_loop_nest(space, candidate), *target).stages)
      bytes += stage.dram_bytes;
    const auto [it, fresh] = least.try_emplace(name, bytes);
    it->second = std::min(it->second, bytes);
  }
  ASSERT_EQ(least.size(), 2u);  // in registers and in cache, of tiles
  for (const auto& [name, bytes] : least) {
    EXPECT_GE(bytes, CpuModel().round_wait_share * kWeightBytes) << name;  // a round ahead
    EXPECT_LE(bytes, 1.1 * kWeightBytes) << name;
  }
}

TEST(Draft, PrintsALineForEachStage) {
  const Task task = operator_task("softmax 64 128");
  const Space space = make_space(task);
  Rng rng(1);
  const Candidate candidate = sample(space, rng);
  const std::string text =
      print(draft(make_loop_nest(space, candidate), task.target), space[candidate.sketch].dag);
  EXPECT_NE(text.find("T_softmax_norm: visits 1 "), std::string::npos) << text;
}

// --psa: the program is made for one GPU and drafted for another.
TEST(Draft, OfAGpuTakesTheNumbersOfItsAbstraction) {
  const Target a100 = *parse_target("cuda --model=a100", 0);
  const Target as_k80 = *with_abstraction(a100, "k80");
  const Task task = operator_task("matmul 256 256 256", a100);
  const Space space = make_space(task);
  Rng rng(8);
  const LoopNest nest = make_loop_nest(space, sample(space, rng));
  EXPECT_EQ(draft_latency_s(nest, as_k80), draft_latency_s(nest, *read_device("k80")));
  EXPECT_GT(draft_latency_s(nest, as_k80), draft_latency_s(nest, a100));
}

// A penalty only adds: without it no candidate is slower, and some are faster.
TEST(Draft, LeavesOutAPenalty) {
  for (const Target& target : {host_target(0), *parse_target("cuda --model=a100", 0)}) {
    const Task task = operator_task("conv2d 1 64 28 28 96 3 3 padding=1 +relu", target);
    const Space space = make_space(task);
    Rng rng(9);
    std::array<int, std::size(kPenaltyNames)> faster{};
    for (int i = 0; i < 300; ++i) {
      const LoopNest nest = make_loop_nest(space, sample(space, rng));
      const double whole_s = draft_latency_s(nest, target);
      for (size_t p = 0; p < faster.size(); ++p) {
        const Penalty penalty = *parse_penalty(kPenaltyNames[p]);
        const double fewer_s = draft_latency_s(nest, target, Penalties().without(penalty));
        EXPECT_LE(fewer_s, whole_s * 1.0001) << kPenaltyNames[p];
        faster[p] += fewer_s < whole_s * 0.9999 ? 1 : 0;
      }
    }
    for (size_t p = 0; p < faster.size(); ++p)
      EXPECT_GT(faster[p], 0) << kPenaltyNames[p] << (target.is_gpu() ? " of a GPU" : " of a CPU");
  }
}

}  // namespace
}  // namespace pruner
