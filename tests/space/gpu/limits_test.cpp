// Checks what is legal on a GPU, and that draws reach all that is legal and little else.
#include <iostream>
#include <map>
#include <set>

#include "golden.h"
#include "space/gpu/gpu_task.h"
#include "space/gpu/warp_space.h"

namespace pruner {
namespace {

std::string reason(const Space& space, const Candidate& candidate) {
  std::string why;
  const bool legal = is_legal(space, candidate, &why);
  EXPECT_EQ(legal, why.empty());
  return why;
}

// `base` is legal, and is not with the values of `broken`, for a reason that holds `words`.
void expect_broken(const Space& space,
                   int sketch,
                   const Decided& base,
                   const Decided& broken,
                   const std::string& words) {
  EXPECT_EQ(reason(space, decided(space, sketch, base)), "") << words;
  Decided all = base;
  all.insert(all.end(), broken.begin(), broken.end());
  EXPECT_NE(reason(space, decided(space, sketch, all)).find(words), std::string::npos)
      << reason(space, decided(space, sketch, all)) << ", expected " << words;
}

TEST(GpuLimits, OfABlocksTileHaveEachTheirReason) {
  const Space space = make_space(gpu_task("matmul 512 512 512"));
  const Decided warp = {{".j.threads", 32}};
  expect_broken(space, 0, warp, {{".j.outer", 64}}, "the tiles of T_matmul_NN.j do not fit it");
  expect_broken(space, 0, warp, {{".i.threads", 64}}, "too many threads in a block");
  expect_broken(space,
                0,
                {{".i.threads", 4}, {".j.threads", 8}},
                {{".i.threads", 2}},
                "fewer threads than a warp");
  expect_broken(space,
                0,
                {{".j.threads", 32}, {".i.vthreads", 4}},
                {{".j.vthreads", 4}},
                "too many virtual threads");
  expect_broken(space,
                0,
                {{".j.threads", 32}, {".i.inner", 16}, {".j.inner", 8}},
                {{".i.outer", 2}},
                "the accumulators exceed the registers");
  const Space large = make_space(gpu_task("matmul 300000 300000 2"));
  expect_broken(
      large, 0, {{".i.threads", 32}, {".j.inner", 2}}, {{".j.inner", 1}}, "too many blocks");
}

TEST(GpuLimits, OfAChunkHaveEachTheirReason) {
  const Space space = make_space(gpu_task("matmul 512 512 512"));
  const Decided warp = {{".j.threads", 32}};
  expect_broken(space,
                0,
                warp,
                {{".k.outer", 32}, {".k.inner", 64}},
                "the tiles of T_matmul_NN.local.k do not fit it");
  const Decided chunk = {{".j.threads", 32}, {".i.outer", 32}, {".k.inner", 64}};
  const Decided longer = {{".j.threads", 32}, {".i.outer", 32}, {".k.inner", 64}, {".k.outer", 2}};
  expect_broken(space, 0, chunk, {{".k.outer", 4}}, "too much shared memory");
  expect_broken(space, 0, longer, {{".buffers", 2}}, "too much shared memory");
  expect_broken(
      space, 0, warp, {{"A.shared.vector", 3}}, "runs do not divide what is fetched of A.shared");
  EXPECT_EQ(reason(space, decided(space, 0, {{".j.threads", 32}, {"B.shared.vector", 4}})), "");
}

// Four warps have 128 x 128 sums. Chunks of 64 terms take 32 KiB each; three chunks are more than a
// block has without opt-in.
TEST(GpuLimits, OfTilesOfWarpsHaveEachTheirReason) {
  const Space space = make_space(gpu_task("matmul 512 512 512 bits=16"));
  ASSERT_EQ(space[SketchId{1}].name, "m16n8k16-tile");
  const Decided base = {{".i.warps", 2},
                        {".i.fragments", 4},
                        {".j.warps", 2},
                        {".j.fragments", 8},
                        {".k.steps", 4},
                        {".buffers", 3}};
  expect_broken(space, 1, base, {{".buffers", 6}}, "too much shared memory");
  expect_broken(space, 1, base, {{".i.fragments", 8}}, "the accumulators exceed the registers");
  expect_broken(
      space, 1, {{".i.warps", 8}, {".j.warps", 4}}, {{".j.warps", 8}}, "too many threads");
  expect_broken(space,
                1,
                {{".i.warps", 2}},
                {{".i.fragments", 12}},
                "the tiles of T_matmul_NN.i do not fit it");
}

// Sums lie where the chunks were: those of 128 x 256 take 130 KiB, of 99 that there are.
TEST(GpuLimits, OfTilesOfWarpsHaveRoomForSums) {
  const Space space = make_space(
      operator_task("matmul 512 512 512 bits=16", *parse_target("cuda --arch=sm_86", 0)));
  const Decided chunks = {{".i.warps", 2},
                          {".i.fragments", 4},
                          {".j.warps", 2},
                          {".j.fragments", 8},
                          {".k.steps", 4},
                          {".buffers", 3}};
  Decided sums = chunks;
  sums.push_back({".epilogue", 1});
  EXPECT_EQ(reason(space, decided(space, 1, sums)), "") << "64 KiB, less than the chunks";
  Decided large = chunks;
  large.insert(large.end(), {{".j.warps", 4}, {".k.steps", 1}});
  expect_broken(space, 1, large, {{".epilogue", 1}}, "too much shared memory");
}

// A tile of CUTLASS: of a block, the chunk's terms, stages, and warps.
struct CutlassTile {
  int m, n, k, stages, warps_m, warps_n;
};

void expect_legal(const Space& space, const CutlassTile& tile, int terms) {
  const SketchId sketch = space.drawn.front();
  for (const int epilogue : {0, 1}) {
    const Candidate candidate{sketch,
                              {tile.k / terms,
                               tile.stages,
                               epilogue,
                               tile.warps_m,
                               tile.m / 16 / tile.warps_m,
                               tile.warps_n,
                               tile.n / 8 / tile.warps_n,
                               1}};
    EXPECT_EQ(reason(space, candidate), "")
        << tile.m << "x" << tile.n << "x" << tile.k << ": " << print(space, candidate);
  }
}

// Every tile that CUTLASS's generator has for 16-bit types on sm_80.
TEST(GpuLimits, LeaveCutlassTheTilesItHas) {
  constexpr CutlassTile kTiles[] = {
      {256, 128, 32, 3, 4, 2}, {128, 256, 32, 3, 2, 4}, {256, 64, 32, 3, 4, 1},
      {256, 64, 32, 4, 4, 1},  {64, 256, 32, 4, 1, 4},  {128, 128, 32, 3, 2, 2},
      {128, 128, 32, 4, 2, 2}, {128, 128, 32, 5, 2, 2}, {128, 64, 32, 6, 2, 2},
      {64, 128, 32, 6, 2, 2},  {64, 64, 32, 10, 2, 2},  {256, 128, 64, 3, 4, 2},
      {128, 256, 64, 3, 2, 4}, {256, 64, 64, 3, 4, 1},  {256, 64, 64, 4, 4, 1},
      {64, 256, 64, 3, 1, 4},  {64, 256, 64, 4, 1, 4},  {128, 128, 64, 3, 2, 2},
      {128, 128, 64, 4, 2, 2}, {128, 64, 64, 3, 2, 2},  {64, 128, 64, 3, 2, 2},
      {64, 64, 64, 5, 2, 2}};
  for (const char* op :
       {"matmul 4096 4096 4096 bits=16", "matmul 4096 4096 4096 bits=16 exponent=8"}) {
    const Space space = warp_space(gpu_task(op), "m16n8k16-tile");
    for (const CutlassTile& tile : kTiles) expect_legal(space, tile, 16);
  }
}

// Those for bytes have the same with twice the terms, and narrow ones.
TEST(GpuLimits, LeaveCutlassItsTilesOfBytes) {
  constexpr CutlassTile kTiles[] = {
      {256, 128, 64, 3, 4, 2},  {128, 256, 64, 3, 2, 4},  {256, 64, 64, 4, 4, 1},
      {64, 256, 64, 4, 1, 4},   {256, 32, 64, 4, 4, 1},   {32, 256, 64, 4, 1, 4},
      {128, 128, 64, 5, 2, 2},  {128, 64, 64, 6, 2, 2},   {64, 128, 64, 6, 2, 2},
      {128, 32, 64, 6, 4, 1},   {32, 128, 64, 6, 1, 4},   {64, 64, 64, 10, 2, 2},
      {256, 128, 128, 3, 4, 2}, {128, 256, 128, 3, 2, 4}, {256, 64, 128, 4, 4, 1},
      {64, 256, 128, 4, 1, 4},  {256, 32, 128, 4, 4, 1},  {32, 256, 128, 4, 1, 4},
      {128, 128, 128, 4, 2, 2}, {128, 64, 128, 3, 2, 2},  {64, 128, 128, 3, 2, 2},
      {128, 32, 128, 4, 4, 1},  {32, 128, 128, 4, 1, 4},  {64, 64, 128, 5, 2, 2}};
  const Space space = warp_space(gpu_task("dense 4096 4096 4096 bits=8"), "m16n8k32-tile");
  for (const CutlassTile& tile : kTiles) expect_legal(space, tile, 32);
}

TEST(GpuLimits, AreMetByMostDrawsOfWarps) {
  for (const WarpOperator& row : kWarpOperators) {
    const Space space = warp_space(warp_task(row), row.structure);
    Rng rng(3);
    int legal = 0;
    constexpr int kDraws = 500;
    for (int i = 0; i < kDraws; ++i) legal += is_legal(space, draw(space, rng)) ? 1 : 0;
    EXPECT_GE(legal, 0.8 * kDraws) << row.arch << " " << row.op;
  }
}

TEST(GpuLimits, OfRowsAndElementsHaveEachTheirReason) {
  Target small = gpu_target();
  const Space rows = make_space(operator_task("sum 64 4096", small));
  expect_broken(rows,
                1,
                {{".threads", 512}, {".rows", 2}},
                {{".threads", 1024}},
                "too many threads in a block");
  expect_broken(rows, 1, {{".threads", 32}}, {{".threads", 16}}, "fewer threads than a warp");
  small.gpu.shared_bytes_per_block = 1024;
  const Space tight = make_space(operator_task("sum 64 4096", small));
  expect_broken(tight, 1, {{".threads", 256}}, {{".rows", 2}}, "too much shared memory");
  const Space large = make_space(gpu_task("relu 90000 1000000"));
  expect_broken(large, 0, {{".threads", 64}}, {{".threads", 32}}, "too many blocks");
}

TEST(GpuLimits, AllowABlockLessThanAWarpWhereThereIsNoMoreToDo) {
  const Space space = make_space(gpu_task("matmul 8 8 16"));
  EXPECT_EQ(reason(space, decided(space, 0, {})), "");
}

TEST(GpuLimits, NameADecisionThatIsOutOfRange) {
  const Space space = make_space(gpu_task("matmul 512 512 512"));
  EXPECT_EQ(reason(space, decided(space, 0, {{".j.threads", 37}})),
            "T_matmul_NN.j.threads is 37, not one of its choices");
}

class EveryGpuOperator : public testing::TestWithParam<const char*> {};

TEST_P(EveryGpuOperator, SamplesAreLegalAndPrintParsePrintIsStable) {
  const Space space = make_space(gpu_task(GetParam()));
  Rng rng(1);
  for (int i = 0; i < 200; ++i) {
    const Candidate candidate = sample(space, rng);
    ASSERT_EQ(reason(space, candidate), "");
    const Result<Candidate> parsed = parse_candidate(space, print(space, candidate));
    ASSERT_TRUE(parsed.ok()) << parsed.error().message();
    EXPECT_EQ(*parsed, candidate);
  }
}

TEST_P(EveryGpuOperator, MutationsAndCrossoversStayLegal) {
  const Space space = make_space(gpu_task(GetParam()));
  Rng rng(2);
  int children = 0;
  for (int i = 0; i < 300; ++i) {
    const Candidate a = sample(space, rng), b = sample(space, rng);
    const std::optional<Candidate> child = mutate(space, a, rng),
                                   mix = cross_over(space, a, b, rng);
    EXPECT_TRUE(!child || (is_legal(space, *child) && !(*child == a)));
    EXPECT_TRUE(!mix || is_legal(space, *mix));
    children += child.has_value();
  }
  EXPECT_GT(children, 30);
}

INSTANTIATE_TEST_SUITE_P(GpuCandidates, EveryGpuOperator, testing::ValuesIn(kSmallOperators));

// ---- what is drawn

// All legal candidates of a sketch, one decision vector after the other.
std::set<std::vector<int32_t>> legal_candidates(const Space& space, SketchId id) {
  const std::vector<Decision>& decisions = space[id].decisions;
  std::set<std::vector<int32_t>> legal;
  std::vector<size_t> at(decisions.size(), 0);
  Candidate candidate = decided(space, id.value, {});
  for (size_t d = 0; d < decisions.size();) {
    if (is_legal(space, candidate)) legal.insert(candidate.decisions);
    for (d = 0; d < decisions.size(); ++d) {  // counts like an odometer
      at[d] = (at[d] + 1) % decisions[d].drawn().size();
      candidate.decisions[d] = decisions[d].drawn()[at[d]];
      if (at[d] != 0) break;
    }
  }
  if (decisions.empty()) legal.insert(candidate.decisions);
  return legal;
}

// The legal candidates that no draw of `most` gives, and those of one sketch.
struct Reached {
  size_t legal = 0, missing = 0, not_legal = 0;
};
Reached reach(const Space& space, int64_t most) {
  std::set<std::pair<int32_t, std::vector<int32_t>>> missing, legal;
  for (const SketchId id : space.drawn) {
    for (const std::vector<int32_t>& decisions : legal_candidates(space, id))
      legal.insert({id.value, decisions});
  }
  missing = legal;
  Reached reached{legal.size(), 0, 0};
  Rng rng(11);
  for (int64_t i = 0; i < most && !missing.empty(); ++i) {
    const Candidate candidate = draw(space, rng);
    const auto key = std::pair(candidate.sketch.value, candidate.decisions);
    missing.erase(key);
    reached.not_legal += is_legal(space, candidate) && !legal.contains(key);
  }
  reached.missing = missing.size();
  return reached;
}

struct SmallSpace {
  const char* op;
  int64_t threads, shared_bytes, registers;
};

class GpuDraw : public testing::TestWithParam<SmallSpace> {};

// With limits that bind, so that the order in which tiles are drawn can't hide a part.
TEST_P(GpuDraw, ReachesEveryLegalCandidate) {
  Target target = gpu_target();
  target.gpu.max_threads_per_block = GetParam().threads;
  target.gpu.warp_size = std::min<int>(32, static_cast<int>(GetParam().threads) / 2);
  target.gpu.shared_bytes_per_block = GetParam().shared_bytes;
  target.gpu.max_registers_per_thread = GetParam().registers;
  const Space space = make_space(operator_task(GetParam().op, target));
  const Reached reached = reach(space, 4'000'000);
  std::cout << GetParam().op << ": " << reached.legal << " legal candidates\n";
  EXPECT_GT(reached.legal, 20u);
  EXPECT_EQ(reached.missing, 0u);
  EXPECT_EQ(reached.not_legal, 0u);
}

INSTANTIATE_TEST_SUITE_P(SmallSpaces,
                         GpuDraw,
                         testing::Values(SmallSpace{"matmul 4 2 2", 1024, 49152, 255},
                                         SmallSpace{"matmul 5 1 6", 4, 48, 36},
                                         SmallSpace{"matmul 6 4 1", 8, 32, 35},
                                         SmallSpace{"sum 3 64", 1024, 49152, 255},
                                         SmallSpace{"softmax 3 64", 64, 256, 255},
                                         SmallSpace{"relu 100", 1024, 49152, 255}));

// Returns the traits that the candidates of an operator show, by name.
std::set<std::string> traits(const char* op) {
  const Space space = make_space(gpu_task(op));
  std::set<std::string> seen;
  Rng rng(6);
  for (int i = 0; i < 500; ++i) {
    const Candidate candidate = sample(space, rng);
    const Sketch& sketch = space[candidate.sketch];
    if (sketch.form == "split-k") seen.insert("split-k");
    if (sketch.name.find("rows(") != std::string::npos) seen.insert("rows");
    const LoopNest nest = make_loop_nest(space, candidate);
    for (const NestStage& stage : nest.stages) {
      if (stage.buffers > 1) seen.insert("double buffer");
      const std::vector<Iterator>& axes = (*nest.dag)[stage.stage].axes;
      for (const NestLoop& loop : stage.loops) {
        const bool spatial = loop.axis >= 0 && loop.axis < static_cast<int>(axes.size());
        if (loop.kind == LoopKind::kUnroll) seen.insert("virtual threads");
        if (loop.kind == LoopKind::kVectorize) seen.insert("vectors");
        if (loop.kind == LoopKind::kBlock && spatial &&
            axes[static_cast<size_t>(loop.axis)].extent % loop.step != 0)
          seen.insert("imperfect tiles");
      }
    }
  }
  return seen;
}

TEST(GpuSample, ShowsAllThatASketchCanDo) {
  EXPECT_EQ(
      traits("matmul 16 24 2048"),
      (std::set<std::string>{
          "double buffer", "imperfect tiles", "rows", "split-k", "vectors", "virtual threads"}));
}

TEST(GpuDrawShare, IsMostlyLegal) {
  for (const char* op : {"matmul 512 512 512",
                         "conv2d 1 64 56 56 64 3 3 padding=1 +bias +relu",
                         "batch_matmul 12 128 64 128",
                         "conv2d 1 64 112 112 3 7 7 stride=2 padding=3 +bias +relu",
                         "matmul 127 509 33",
                         "matmul 16 24 2048",
                         "dense 1 1000 2048",
                         "conv2d 1 37 13 11 53 3 3 padding=1 +bias",
                         "winograd-2x2 conv2d 1 64 56 56 64 3 3 padding=1 +bias +relu",
                         "winograd-4x4 conv2d 1 37 13 11 53 3 3 padding=1 +bias"}) {
    std::string name = op;
    std::vector<std::string> forms;
    if (name.starts_with("winograd")) {
      forms = {name.substr(0, name.find(' '))};
      name = name.substr(name.find(' ') + 1);
    }
    const Space space = make_space(gpu_task(name), forms);
    Rng rng(5);
    int legal = 0;
    std::map<std::string, int> reasons;
    constexpr int kDraws = 2000;
    for (int i = 0; i < kDraws; ++i) {
      const std::string why = reason(space, draw(space, rng));
      ++reasons[why];
      legal += why.empty();
    }
    const double share = static_cast<double>(legal) / kDraws;
    std::cout << op << ": " << 100 * share << "% of draws are legal\n";
    EXPECT_GE(share, 0.8);
    for (const auto& [why, count] : reasons)
      if (!why.empty()) std::cout << "  " << count << " " << why << "\n";
  }
}

}  // namespace
}  // namespace pruner
