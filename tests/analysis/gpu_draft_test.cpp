#include "analysis/gpu_draft.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "space/gpu/warp_space.h"

namespace pruner {
namespace {

// Decisions of a tile of warps: steps, stages, and warps and fragments of rows and of columns.
using Tile = std::array<int32_t, 6>;
constexpr int32_t kDirect = 0, kThroughShared = 1;  // the epilogue

class Contraction {
 public:
  explicit Contraction(const char* op,
                       const char* structure = "m16n8k16-tile",
                       const char* target = "cuda --model=a100")
      : Contraction(operator_task(op, *parse_target(target, 0)), structure) {}
  explicit Contraction(Task task, const char* structure = "m16n8k16-tile")
      : task_(std::move(task)), space_(warp_space(task_, structure)) {}
  Candidate candidate(const Tile& tile, int32_t epilogue) const {
    Candidate made{space_.drawn.front(), {tile.begin(), tile.end()}};
    made.decisions.insert(made.decisions.begin() + 2, epilogue);
    made.decisions.push_back(1);  // no groups of rows of blocks
    EXPECT_TRUE(is_legal(space_, made)) << print(space_, made);
    return made;
  }
  Draft draft_of(const Candidate& candidate) const {
    return draft(make_loop_nest(space_, candidate), task_.target);
  }
  KernelSymbols kernel(const Tile& tile, int32_t epilogue = kDirect) const {
    return draft_of(candidate(tile, epilogue)).kernels.front();
  }
  const Space& space() const { return space_; }

 private:
  Task task_;
  Space space_;
};

// The tiles that win in CUTLASS's profiles of large products on an A100 are among the best
// hundredth of what is drawn, or at its edge: float32 is written directly at no cost. Those of two
// blocks of four warps, or of one of eight, are among the best 20.
TEST(GpuDraft, RanksTheTilesThatWinOnAnA100High) {
  const Contraction product("matmul 4096 4096 4096 bits=16");
  constexpr int kDrawn = 10000;
  std::vector<double> drawn;
  Rng rng(1);
  for (int i = 0; i < kDrawn; ++i)
    drawn.push_back(product.draft_of(sample(product.space(), rng)).latency_s);
  std::ranges::sort(drawn);
  const struct {
    const char* name;
    Tile tile;
    int most_better;
  } tiles[] = {{"128x256x64 in 3 stages", {4, 3, 2, 4, 4, 8}, 20},
               {"256x128x64 in 3 stages", {4, 3, 4, 4, 2, 8}, 20},
               {"128x256x32 in 3 stages", {2, 3, 2, 4, 4, 8}, 20},
               {"256x128x32 in 3 stages", {2, 3, 4, 4, 2, 8}, 20},
               {"128x128x32 in 3 stages", {2, 3, 2, 4, 2, 8}, 20},
               {"128x128x32 in 4 stages", {2, 4, 2, 4, 2, 8}, 20},
               {"128x128x32 in 5 stages", {2, 5, 2, 4, 2, 8}, 20},
               {"128x128x64 in 3 stages", {4, 3, 2, 4, 2, 8}, kDrawn / 80},
               {"128x128x64 in 4 stages", {4, 4, 2, 4, 2, 8}, kDrawn / 80}};
  for (const auto& row : tiles) {
    const double latency = product.draft_of(product.candidate(row.tile, kDirect)).latency_s;
    const auto better = std::ranges::lower_bound(drawn, latency) - drawn.begin();
    printf("%s: %.0f us, %td of %d are better\n", row.name, latency * 1e6, better, kDrawn);
    EXPECT_LE(better, row.most_better) << row.name;
  }
}

// A warp's tile of 64 x 64 takes half of the fragments from shared memory, by product, that one of
// 32 x 32 takes.
TEST(GpuDraft, KnowsWhatWarpsReadOfSharedMemory) {
  const Contraction product("matmul 4096 4096 4096 bits=16");
  const KernelSymbols large = product.kernel({2, 3, 2, 4, 2, 8});
  const KernelSymbols small = product.kernel({2, 3, 4, 2, 4, 4});
  EXPECT_EQ(large.blocks, small.blocks);
  EXPECT_EQ(large.l2_bytes, small.l2_bytes);
  EXPECT_GT(small.shared_s, 1.5 * large.shared_s);
  EXPECT_GT(small.compute_s, 1.1 * large.compute_s);
}

// Few blocks read long rows: the bytes that are on their way at a time decide.
TEST(GpuDraft, WaitsForCopiesThatAreTooFew) {
  const Contraction rows("dense 32 512 4096 bits=16");
  const double two = rows.kernel({2, 2, 1, 1, 4, 1}).compute_s;
  const double four = rows.kernel({2, 4, 1, 1, 4, 1}).compute_s;
  EXPECT_NEAR(two / four, 3, 0.3);  // one chunk ahead, and three
}

// Without copies ahead each chunk waits for memory.
TEST(GpuDraft, WaitsForEachChunkWhereNothingIsCopiedAhead) {
  const Contraction product("matmul 256 256 4096 bits=16", "m16n8k8-tile", "cuda --arch=sm_75");
  EXPECT_GT(product.kernel({2, 2, 2, 2, 2, 4}).compute_s,
            1.5 * product.kernel({8, 2, 2, 2, 2, 4}).compute_s);
  // Rows of an odd number of bytes' pairs are copied one by one, which none goes ahead of.
  const Contraction even("dense 64 64 4096 bits=16"), odd("dense 64 64 4095 bits=16");
  EXPECT_GT(odd.kernel({2, 4, 2, 2, 2, 4}).compute_s,
            2 * even.kernel({2, 4, 2, 2, 2, 4}).compute_s);
}

// Each lane has two neighbours of a row, four lanes a sector of float32: what is written is whole.
TEST(GpuDraft, CountsTheSectorsOfAWarpsResult) {
  const Contraction product("matmul 256 256 64 bits=16");
  const KernelSymbols k = product.kernel({4, 2, 2, 4, 2, 8});
  constexpr double kOperands = 2 * 2.0 * 128 * 64 * 4, kResult = 256 * 256 * 4;
  EXPECT_DOUBLE_EQ(k.l2_bytes, kOperands + kResult);
  EXPECT_DOUBLE_EQ(product.kernel({4, 2, 2, 4, 2, 8}, kThroughShared).l2_bytes, k.l2_bytes);
}

// Two neighbours of float16 fill half of a sector, sixteen bytes from shared memory half of one by
// each of two lanes.
TEST(GpuDraft, CountsTheSectorsOfAWarpsHalves) {
  const Contraction product(with_half_result(
      operator_task("dense 256 256 64 bits=16 +relu", *parse_target("cuda --model=a100", 0))));
  constexpr double kOperands = 2 * 2.0 * 128 * 64 * 4, kResult = 256 * 256 * 2;
  const KernelSymbols direct = product.kernel({4, 2, 2, 4, 2, 8});
  const KernelSymbols rows = product.kernel({4, 2, 2, 4, 2, 8}, kThroughShared);
  EXPECT_DOUBLE_EQ(direct.l2_bytes, kOperands + 2 * kResult);
  EXPECT_DOUBLE_EQ(rows.l2_bytes, kOperands + kResult);
  EXPECT_GT(rows.shared_s, direct.shared_s);
}

}  // namespace
}  // namespace pruner
