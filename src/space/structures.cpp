#include "space/structure.h"

#include <algorithm>
#include <numeric>

#include "space/dot.h"
#include "space/gpu/attention.h"
#include "space/mma.h"
#include "space/sketch_rule.h"

namespace pruner {
namespace {

constexpr int64_t kMaxRegisterRows = 16;
constexpr int64_t kMaxRegisterVectors = 8;
constexpr int64_t kMaxPointwiseVectors = 4;
constexpr int64_t kMaxTileRegisters = 6;  // tiles of sums; each operand takes one of the 8
constexpr int64_t kMostInStep = 16;
constexpr int64_t kMostFragments = 16;  // fragments of a warp along an axis
constexpr int64_t kMostGroupRows = 4;   // tiles of 64 rows of a group
constexpr int64_t kColumnsOfGroup = 8;  // columns of a group's instruction, of which it takes many
constexpr int64_t kMaxInner = 64;       // innermost tile of an axis, or elements of a run (Ansor's)
constexpr int64_t kMaxOuter = 1024;  // tile around the innermost; registers and shared memory bind

using Choices = std::vector<int32_t>;

Choices powers_of_two(int64_t from, int64_t to) {
  Choices powers;
  for (int64_t p = from; p <= to; p *= 2) powers.push_back(static_cast<int32_t>(p));
  return powers;
}

Choices any_tile(const TiledAxis& a) { return tile_choices(a.extent, a.extent); }
Choices register_tile(const TiledAxis& a) {
  return tile_choices(a.extent, a.vector ? kMaxRegisterVectors : kMaxRegisterRows);
}
Choices pointwise_tile(const TiledAxis& a) {
  return a.vector ? tile_choices(a.extent, kMaxPointwiseVectors) : Choices{};
}
Choices chunks(const TiledAxis& a) {
  Choices choices;
  for (int32_t chunk = 16; chunk < a.extent; chunk *= 2) choices.push_back(chunk);
  choices.push_back(static_cast<int32_t>(a.extent));
  return choices;
}
Choices steps(const TiledAxis& a) { return powers_of_two(16, a.extent / kMostInStep); }
Choices in_step(const TiledAxis&) { return powers_of_two(2, kMostInStep); }
Choices vthreads(const TiledAxis& a) { return tile_choices(a.extent, a.target->gpu.max_vthreads); }
Choices threads(const TiledAxis& a) {
  return tile_choices(a.extent, a.target->gpu.max_threads_per_block);
}
Choices outer_tile(const TiledAxis& a) { return tile_choices(a.extent, kMaxOuter); }
Choices inner_tile(const TiledAxis& a) { return tile_choices(a.extent, kMaxInner); }
Choices fetch_run(const TiledAxis&) {
  Choices runs(kMaxInner);
  std::iota(runs.begin(), runs.end(), 1);
  return runs;
}
Choices elements(const TiledAxis&) { return {1, 2, 4, 8}; }
Choices element_threads(const TiledAxis& a) {
  return powers_of_two(a.target->gpu.warp_size, a.target->gpu.max_threads_per_block);
}
// More would leave a thread too few registers for its tile.
Choices transform_threads(const TiledAxis& a) {
  return powers_of_two(a.target->gpu.warp_size,
                       std::min<int64_t>(a.target->gpu.max_threads_per_block, 256));
}
Choices rows(const TiledAxis&) { return powers_of_two(1, 32); }
Choices row_threads(const TiledAxis& a) {
  return powers_of_two(8, a.target->gpu.max_threads_per_block);
}

Choices warps(const TiledAxis& a) { return powers_of_two(1, std::min<int64_t>(a.extent, 8)); }
Choices fragments(const TiledAxis& a) { return tile_choices(a.extent, kMostFragments); }
Choices instructions(const TiledAxis& a) {
  return powers_of_two(1, std::min<int64_t>(a.extent, 8));
}

// A group's instruction has the rows of one tile, and all of the group's columns.
constexpr bool goes_along_rows(const TiledAxis& a) { return a.of_instruction > kColumnsOfGroup; }
Choices groups(const TiledAxis& a) { return powers_of_two(1, std::min<int64_t>(a.extent, 4)); }
Choices group_fragments(const TiledAxis& a) {
  return tile_choices(a.extent,
                      goes_along_rows(a) ? kMostGroupRows : MmaInstruction::kMostGroupFragments);
}
// 128 bytes of terms, which are the longest line that an instruction reads.
Choices group_steps(const TiledAxis& a) { return powers_of_two(1, std::min<int64_t>(a.extent, 4)); }

Choices key_steps(const TiledAxis& a) {
  Choices steps;
  for (const int32_t step : {1, 2, 4, 6, 8, 10, 12})
    if (step <= a.extent) steps.push_back(step);
  return steps;
}

using enum Axes;
using enum Iterations;
constexpr DecisionKind kTiles = DecisionKind::kTile;

constexpr Level kCoreTiles = {kSpace, Bind::kCores};
constexpr Level kMiddle = {kSpace, Bind::kSerial, kDecided, kTiles, "middle", nullptr, any_tile};
constexpr Level kInner = {kSpace, Bind::kSerial, kDecided, kTiles, "inner", nullptr, any_tile};
constexpr Level kRegisters = {
    kSpace, Bind::kUnrolled, kDecided, kTiles, "rows", "vectors", register_tile};
constexpr Level kLaneLevel = {kSpace, Bind::kVector, kLanes};
constexpr Level kSum = {kReduction, Bind::kSerial};
constexpr Level kChunk = {
    kReduction, Bind::kSerial, kOfLongest, DecisionKind::kChunk, "chunk", nullptr, chunks};

constexpr Level kSSSRS[] = {kCoreTiles, kMiddle, kInner, kSum, kRegisters, kLaneLevel};
constexpr Level kSSRSRS[] = {kCoreTiles, kMiddle, kSum, kInner, kChunk, kRegisters, kLaneLevel};
constexpr Level kTerms = {kReduction, Bind::kTerms, kShape};
constexpr Level kSSSRSR[] = {kCoreTiles, kMiddle, kInner, kSum, kRegisters, kLaneLevel, kTerms};
constexpr Level kSSRSRSR[] = {
    kCoreTiles, kMiddle, kSum, kInner, kChunk, kRegisters, kLaneLevel, kTerms};
// Tiles of an instruction's rows and steps, some of them in registers.
Choices tile_registers(const TiledAxis& a) { return tile_choices(a.extent, kMaxTileRegisters); }
Choices tile_chunks(const TiledAxis& a) {
  Choices choices;
  for (int32_t chunk = 1; chunk < a.extent; chunk *= 2) choices.push_back(chunk);
  choices.push_back(static_cast<int32_t>(a.extent));
  return choices;
}
constexpr Level kTileRegisters = {
    kSpace, Bind::kUnrolled, kDecided, kTiles, "rows", "vectors", tile_registers};
constexpr Level kTileRows = {kSpace, Bind::kMatrix, kRows};
constexpr Level kTileSteps = {kReduction, Bind::kMatrix, kSteps};
constexpr Level kTileChunk = {
    kReduction, Bind::kSerial, kOfLongest, DecisionKind::kChunk, "chunk", nullptr, tile_chunks};
constexpr Level kMatrixLevels[] = {
    kCoreTiles, kMiddle, kInner, kSum, kTileRegisters, kTileRows, kLaneLevel, kTileSteps, kTerms};
constexpr Level kMatrixCacheLevels[] = {kCoreTiles,
                                        kMiddle,
                                        kSum,
                                        kInner,
                                        kTileChunk,
                                        kTileRegisters,
                                        kTileRows,
                                        kLaneLevel,
                                        kTileSteps,
                                        kTerms};
constexpr DecisionKind kChunks = DecisionKind::kChunk;
constexpr Level kSSRSRRS[] = {
    kCoreTiles,
    kMiddle,
    kSum,
    kInner,
    {kReduction, Bind::kSerial, kOfLongest, kChunks, "steps", nullptr, steps},
    {kReduction, Bind::kSerial, kOfLongest, kChunks, "in_step", nullptr, in_step},
    kRegisters,
    kLaneLevel};
// With the levels of a contraction's root; nothing is read again, so that one of them is always 1.
constexpr Level kSSSS[] = {
    kCoreTiles,
    kMiddle,
    {kSpace, Bind::kSerial, kDecided, kTiles, "inner"},
    {kSpace, Bind::kUnrolled, kDecided, kTiles, "", "vectors", pointwise_tile},
    kLaneLevel};

constexpr Level kBoxLevels[] = {kCoreTiles, kSum, kLaneLevel};
constexpr Level kFoldLevels[] = {
    kCoreTiles, {kReduction, Bind::kUnrolled}, {kReduction, Bind::kVector, kLanes}};
constexpr Level kRowPartLevels[] = {kSum, {kSpace, Bind::kUnrolled}, kLaneLevel};
constexpr Level kTransformLevels[] = {kCoreTiles, {kSpace, Bind::kUnrolled, kTile}, kLaneLevel};

constexpr Level kSSSRRSRS[] = {
    {kSpace, Bind::kBlocks},
    {kSpace, Bind::kVirtualThreads, kDecided, kTiles, "vthreads", nullptr, vthreads},
    {kSpace, Bind::kThreads, kDecided, kTiles, "threads", nullptr, threads},
    {kReduction, Bind::kSerial},
    {kReduction, Bind::kSerial, kDecided, kTiles, "outer", nullptr, outer_tile},
    {kSpace, Bind::kSerial, kDecided, kTiles, "outer", nullptr, outer_tile},
    {kReduction, Bind::kSerial, kDecided, kTiles, "inner", nullptr, inner_tile},
    {kSpace, Bind::kSerial, kDecided, kTiles, "inner", nullptr, inner_tile}};
// The levels are tiles of blocks, of their warps, and of instructions. The elements that a lane has
// of an instruction's tile are the innermost level, where its registers are.
constexpr Level kWarpLevels[] = {
    {kSpace, Bind::kBlocks},
    {kSpace, Bind::kWarps, kDecided, kTiles, "warps", nullptr, warps},
    {kSpace, Bind::kThreads, kFragmentLanes},
    {kReduction, Bind::kSerial},
    {kReduction, Bind::kSerial, kDecided, kTiles, "steps", nullptr, instructions},
    {kSpace, Bind::kSerial, kDecided, kTiles, "fragments", nullptr, fragments},
    {kReduction, Bind::kSerial, kShape},
    {kSpace, Bind::kSerial, kFragment}};
// The same levels for groups of four warps.
constexpr Level kGroupLevels[] = {
    {kSpace, Bind::kBlocks},
    {kSpace, Bind::kWarps, kDecided, kTiles, "groups", nullptr, groups},
    {kSpace, Bind::kThreads, kFragmentLanes},
    {kReduction, Bind::kSerial},
    {kReduction, Bind::kSerial, kDecided, kTiles, "steps", nullptr, group_steps},
    {kSpace, Bind::kSerial, kDecided, kTiles, "fragments", nullptr, group_fragments},
    {kReduction, Bind::kSerial, kShape},
    {kSpace, Bind::kSerial, kFragment}};
// Chunks of keys of up to twelve instructions.
constexpr Level kGroupAttentionLevels[] = {
    {kSpace, Bind::kBlocks},
    {kSpace, Bind::kWarps, kDecided, kTiles, "groups", nullptr, groups},
    {kSpace, Bind::kThreads, kFragmentLanes},
    {kReduction, Bind::kSerial},
    {kReduction, Bind::kSerial, kDecided, kTiles, "steps", nullptr, key_steps},
    {kSpace, Bind::kSerial, kDecided, kTiles, "fragments", nullptr, fragments},
    {kReduction, Bind::kSerial, kShape},
    {kSpace, Bind::kSerial, kFragment}};
// A thread's scores of a chunk of keys, and its sums over them.
constexpr Level kAttentionPartLevels[] = {{kSpace, Bind::kSerial},
                                          {kReduction, Bind::kSerial},
                                          {kSpace, Bind::kSerial},
                                          {kReduction, Bind::kSerial}};
constexpr Level kFetchLevels[] = {
    {kFusedSpace, Bind::kSerial},
    {kFusedSpace, Bind::kThreads, kBlockThreads},
    {kFusedSpace, Bind::kVector, kDecided, DecisionKind::kVector, "vector", nullptr, fetch_run}};
// A warp takes a row at a time. What it reads of the row is in its lanes' registers until the
// reductions are known.
constexpr Level kHeldRowLevels[] = {{kFusedRows, Bind::kSerial},
                                    {kFusedRows, Bind::kThreads, kBlockWarps},
                                    {kFusedSpace, Bind::kSerial},
                                    {kFusedSpace, Bind::kThreads, kLanesOfWarp},
                                    {kFusedReduction, Bind::kSerial},
                                    {kFusedReduction, Bind::kThreads, kLanesOfWarp}};
constexpr DecisionKind kPerThread = DecisionKind::kThreads;
constexpr Level kElementLevels[] = {
    {kFusedSpace, Bind::kBlocks},
    {kFusedSpace, Bind::kSerial, kDecided, kPerThread, "elements", nullptr, elements},
    {kFusedSpace, Bind::kThreads, kDecided, kPerThread, "threads", nullptr, element_threads},
    kSum};
constexpr Level kThreadTransformLevels[] = {
    {kFusedSpace, Bind::kBlocks},
    {kFusedSpace, Bind::kThreads, kDecided, kPerThread, "threads", nullptr, transform_threads},
    {kSpace, Bind::kUnrolled, kTile}};
constexpr Level kRowLevels[] = {
    {kFusedRows, Bind::kBlocks},
    {kFusedRows, Bind::kThreads, kDecided, kPerThread, "rows", nullptr, rows},
    {kFusedSpace, Bind::kSerial},
    {kFusedSpace, Bind::kThreads, kDecided, kPerThread, "threads", nullptr, row_threads},
    {kFusedReduction, Bind::kSerial},
    {kFusedReduction, Bind::kThreads, kDecided, kPerThread, "threads"}};  // the root's decision

constexpr int64_t kPair[] = {2}, kQuad[] = {4}, kOct[] = {8};
constexpr int32_t kUnrollOnCpu[] = {16, 32, 64, 128};
// A loop's end costs nothing beside tiles, whose registers long code has too few for.
constexpr int32_t kUnrollOfMatrix[] = {4, 16};
constexpr int32_t kUnrollOnGpu[] = {0, 16, 64, 512, 1024};
constexpr int32_t kBuffers[] = {1, 2};
// Rows of blocks that share what they read of the columns in L2.
constexpr int32_t kRaster[] = {1, 4, 8};
constexpr int32_t kEpilogue[] = {0, 1};
// Stages of a pipeline of copies; a device without them fetches one chunk ahead. Ten are CUTLASS's
// for its smallest tile, whose chunks are 8 KiB.
constexpr int32_t kPipeline[] = {2, 3, 4, 5, 6, 8, 10};
// A chunk is copied while one is multiplied and another may still be read.
constexpr int32_t kGroupPipeline[] = {3, 4, 5, 6, 8, 10};
// Rows, columns and terms of the shapes of mma.h.
constexpr int64_t kM16N8K8[] = {16, 8, 8}, kM16N8K16[] = {16, 8, 16}, kM16N8K32[] = {16, 8, 32},
                  kM8N8K16[] = {8, 8, 16}, kM64N8K16[] = {64, 8, 16}, kM64N8K8[] = {64, 8, 8},
                  kM64N8K32[] = {64, 8, 32};

// A structure with a level more inside: the terms of a sum that one instruction adds.
constexpr LoopStructure of_terms(LoopStructure structure,
                                 const char* name,
                                 std::span<const Level> levels,
                                 std::span<const int64_t> terms) {
  structure.name = name;
  structure.levels = levels;
  structure.instruction = terms;
  return structure;
}

bool on_cpu(const ComputeDag&, const Target& target) { return !target.is_gpu(); }
bool on_gpu(const ComputeDag&, const Target& target) { return target.is_gpu(); }

bool has_contraction_of(const ComputeDag& dag, int64_t least) {
  for (int s = 0; s < dag.size(); ++s) {
    if (!needs_multi_level_tiling(dag, StageId{s}) || !dag[StageId{s}].is_reduction()) continue;
    for (const Iterator& axis : dag[StageId{s}].reduce_axes) {
      if (axis.extent >= least) return true;
    }
  }
  return false;
}
bool has_long_contraction(const ComputeDag& dag, const Target& target) {
  return !target.is_gpu() && has_contraction_of(dag, 64);
}
template <int kTermsOfSum, int kRowsOfTile>
bool has_dot(const ComputeDag& dag, const Target& target) {
  for (int s = 0; s < dag.size(); ++s) {
    const DotInstruction* dot = find_dot_instruction(dag, StageId{s}, target, kRowsOfTile > 1);
    if (dot != nullptr && dot->terms == kTermsOfSum && dot->rows == kRowsOfTile) return true;
  }
  return false;
}
template <int kTermsOfSum, int kRowsOfTile>
bool has_long_dot(const ComputeDag& dag, const Target& target) {
  return has_dot<kTermsOfSum, kRowsOfTile>(dag, target) && has_long_contraction(dag, target);
}
bool has_very_long_contraction(const ComputeDag& dag, const Target& target) {
  return !target.is_gpu() && has_contraction_of(dag, 4096);
}

}  // namespace

// The reduction runs to its end in registers, then the epilogue writes the tile.
constexpr LoopStructure kRegisterTile = {.name = "register-tile",
                                         .levels = kSSSRS,
                                         .sum = {3, 3, Scope::kRegister},
                                         .unroll = kUnrollOnCpu,
                                         .overlaps = true};
// Chunks of the reduction are added to a tile in cache, so that both operands of a chunk stay in
// the inner caches.
constexpr LoopStructure kCacheTile = {.name = "cache-tile",
                                      .levels = kSSRSRS,
                                      .sum = {2, 2, Scope::kLocal},
                                      .unroll = kUnrollOnCpu,
                                      .overlaps = true};
// A chunk's steps go around the window's taps, what a step holds stands next to each other inside.
constexpr LoopStructure kSteppedTile = {.name = "stepped-tile",
                                        .levels = kSSRSRRS,
                                        .sum = {2, 2, Scope::kLocal},
                                        .unroll = kUnrollOnCpu,
                                        .overlaps = true};
// The same two structures for instructions that add two or four narrow products to a sum.
constexpr LoopStructure kPairTile = of_terms(kRegisterTile, "pair-tile", kSSSRSR, kPair);
constexpr LoopStructure kPairCacheTile = of_terms(kCacheTile, "pair-cache-tile", kSSRSRSR, kPair);
constexpr LoopStructure kQuadTile = of_terms(kRegisterTile, "quad-tile", kSSSRSR, kQuad);
constexpr LoopStructure kQuadCacheTile = of_terms(kCacheTile, "quad-cache-tile", kSSRSRSR, kQuad);
// The two structures for instructions that add to a tile of rows. A complete tile goes to memory.
constexpr LoopStructure kMatrixTile = {.name = "matrix-tile",
                                       .levels = kMatrixLevels,
                                       .sum = {3, 3, Scope::kLocal},
                                       .unroll = kUnrollOfMatrix,
                                       .overlaps = true,
                                       .tile_rows = kMatrixRows,
                                       .tile_steps = kMatrixSteps};
constexpr LoopStructure kMatrixCacheTile = {.name = "matrix-cache-tile",
                                            .levels = kMatrixCacheLevels,
                                            .sum = {2, 2, Scope::kLocal},
                                            .unroll = kUnrollOfMatrix,
                                            .overlaps = true,
                                            .tile_rows = kMatrixRows,
                                            .tile_steps = kMatrixSteps};
constexpr LoopStructure kPairMatrix =
    of_terms(kMatrixTile, "pair-matrix-tile", kMatrixLevels, kPair);
constexpr LoopStructure kPairMatrixCache =
    of_terms(kMatrixCacheTile, "pair-matrix-cache-tile", kMatrixCacheLevels, kPair);
constexpr LoopStructure kQuadMatrix =
    of_terms(kMatrixTile, "quad-matrix-tile", kMatrixLevels, kQuad);
constexpr LoopStructure kQuadMatrixCache =
    of_terms(kMatrixCacheTile, "quad-matrix-cache-tile", kMatrixCacheLevels, kQuad);
// The same structure for tiles of two rows, each a vector, which lie in vector registers.
constexpr LoopStructure of_two_rows(LoopStructure structure) {
  structure.unroll = kUnrollOnCpu;
  structure.tile_rows = structure.tile_vectors = kPairRows;
  structure.tile_steps = 1;
  return structure;
}
constexpr LoopStructure kTwoRows = of_two_rows(kMatrixTile);
constexpr LoopStructure kTwoRowsCache = of_two_rows(kMatrixCacheTile);
constexpr LoopStructure kQuadRows =
    of_terms(kTwoRows, "quad-matrix-2x2-tile", kMatrixLevels, kQuad);
constexpr LoopStructure kQuadRowsCache =
    of_terms(kTwoRowsCache, "quad-matrix-2x2-cache-tile", kMatrixCacheLevels, kQuad);
constexpr LoopStructure kOctRows = of_terms(kTwoRows, "oct-matrix-2x2-tile", kMatrixLevels, kOct);
constexpr LoopStructure kOctRowsCache =
    of_terms(kTwoRowsCache, "oct-matrix-2x2-cache-tile", kMatrixCacheLevels, kOct);
constexpr LoopStructure kPointwise = {.name = "pointwise", .levels = kSSSS, .overlaps = true};
constexpr LoopStructure kBox = {.name = "box", .levels = kBoxLevels};
constexpr LoopStructure kFold = {.name = "fold", .levels = kFoldLevels};
constexpr LoopStructure kRowPart = {.name = "row-part", .levels = kRowPartLevels};
constexpr LoopStructure kTransform = {.name = "transform", .levels = kTransformLevels};
constexpr LoopStructure kBlockTile = {.name = "block-tile",
                                      .levels = kSSSRRSRS,
                                      .sum = {3, 2, Scope::kLocal},
                                      .fetch = {4, 1, Scope::kShared},
                                      .unroll = kUnrollOnGpu,
                                      .buffers = kBuffers};
constexpr LoopStructure kFetch = {.name = "fetch", .levels = kFetchLevels};
constexpr LoopStructure kThreadElements = {.name = "elements",
                                           .levels = kElementLevels,
                                           .sum = {3, 3, Scope::kLocal},
                                           .unroll = kUnrollOnGpu};
// Places in the tile are constants in the code; neighbouring threads have neighbouring channels.
constexpr LoopStructure kThreadTransform = {.name = "thread-transform",
                                            .levels = kThreadTransformLevels};
constexpr LoopStructure kBlockRows = {
    .name = "rows", .levels = kRowLevels, .sum = {4, 3, Scope::kShared}};
constexpr LoopStructure kHeldRows = {
    .name = "held-rows", .levels = kHeldRowLevels, .sum = {4, 2, Scope::kRegister}};

// The chunks of the reduction are copied ahead of the warps that add them up, by instructions on
// matrices in their lanes' registers.
constexpr LoopStructure of_warps(const char* name, std::span<const int64_t> shape) {
  return {.name = name,
          .levels = kWarpLevels,
          .sum = {3, 3, Scope::kRegister},
          .fetch = {4, 1, Scope::kShared},
          .buffers = kPipeline,
          .raster = kRaster,
          .epilogue = kEpilogue,
          .instruction = shape};
}
constexpr LoopStructure kWarpTile16 = of_warps("m16n8k16-tile", kM16N8K16);
constexpr LoopStructure kWarpTile8 = of_warps("m16n8k8-tile", kM16N8K8);
constexpr LoopStructure kWarpTile32 = of_warps("m16n8k32-tile", kM16N8K32);
constexpr LoopStructure kSmallWarpTile = of_warps("m8n8k16-tile", kM8N8K16);

// The same of groups, which read the chunks in shared memory.
constexpr LoopStructure of_groups(const char* name, std::span<const int64_t> shape) {
  LoopStructure structure = of_warps(name, shape);
  structure.levels = kGroupLevels;
  structure.buffers = kGroupPipeline;
  structure.warps = kGroupWarps;
  return structure;
}
constexpr LoopStructure kGroupTile16 = of_groups("m64n8k16-tile", kM64N8K16);
constexpr LoopStructure kGroupTile8 = of_groups("m64n8k8-tile", kM64N8K8);
constexpr LoopStructure kGroupTile32 = of_groups("m64n8k32-tile", kM64N8K32);

// Keys and values of a chunk are copied ahead together; more than a few chunks leave no room.
constexpr int32_t kAttentionPipeline[] = {2, 3, 4}, kGroupAttentionPipeline[] = {3, 4};
constexpr LoopStructure kAttentionTile = {.name = "attention-tile",
                                          .levels = kWarpLevels,
                                          .sum = {kAttentionChunks, 3, Scope::kRegister},
                                          .fetch = {kAttentionSteps, 1, Scope::kShared},
                                          .buffers = kAttentionPipeline,
                                          .instruction = kM16N8K16};
constexpr LoopStructure kGroupAttentionTile = {.name = "group-attention-tile",
                                               .levels = kGroupAttentionLevels,
                                               .sum = {kAttentionChunks, 3, Scope::kRegister},
                                               .fetch = {kAttentionSteps, 1, Scope::kShared},
                                               .buffers = kGroupAttentionPipeline,
                                               .instruction = kM64N8K16,
                                               .warps = kGroupWarps};
constexpr LoopStructure kAttentionScores = {
    .name = "attention-scores", .levels = kWarpLevels, .instruction = kM16N8K16};
constexpr LoopStructure kAttentionPart = {.name = "attention-part", .levels = kAttentionPartLevels};

template <const auto& kShape>
bool has_attention(const ComputeDag& dag, const Target& target) {
  return target.is_gpu() && has_attention_kernel(dag, target.gpu, kShape);
}

template <const auto& kShape>
bool has_mma(const ComputeDag& dag, const Target& target) {
  return target.is_gpu() && contracts_by_mma(dag, kShape, target.gpu);
}
// A smaller shape is slower: it is there for those who ask.
template <const auto& kLarger>
bool lacks_mma(const ComputeDag& dag, const Target& target) {
  return !has_mma<kLarger>(dag, target);
}

static constexpr StructureRule kRules[] = {
    {&kRegisterTile, on_cpu},
    {&kCacheTile, has_long_contraction},
    {&kSteppedTile, has_very_long_contraction},
    {&kPairTile, has_dot<2, 1>},
    {&kPairCacheTile, has_long_dot<2, 1>},
    {&kQuadTile, has_dot<4, 1>},
    {&kQuadCacheTile, has_long_dot<4, 1>},
    {&kPairMatrix, has_dot<2, kMatrixRows>},
    {&kPairMatrixCache, has_long_dot<2, kMatrixRows>},
    {&kQuadMatrix, has_dot<4, kMatrixRows>},
    {&kQuadMatrixCache, has_long_dot<4, kMatrixRows>},
    {&kQuadRows, has_dot<4, kPairRows>},
    {&kQuadRowsCache, has_long_dot<4, kPairRows>},
    {&kOctRows, has_dot<8, kPairRows>},
    {&kOctRowsCache, has_long_dot<8, kPairRows>},
    {&kBlockTile, on_gpu},
    {&kAttentionTile, has_attention<kM16N8K16>},
    {&kGroupAttentionTile, has_attention<kM64N8K16>},
    {&kWarpTile16, has_mma<kM16N8K16>},
    {&kWarpTile8, has_mma<kM16N8K8>, lacks_mma<kM16N8K16>},
    {&kWarpTile32, has_mma<kM16N8K32>},
    {&kSmallWarpTile, has_mma<kM8N8K16>, lacks_mma<kM16N8K32>},
    {&kGroupTile16, has_mma<kM64N8K16>},
    {&kGroupTile8, has_mma<kM64N8K8>},
    {&kGroupTile32, has_mma<kM64N8K32>}};
const std::span<const StructureRule> kStructureRules = kRules;

constexpr int64_t kMostRowsAtOnce = 4, kMostRowRegisters = 96;
int64_t rows_at_once(int64_t rows, int64_t elements) {
  int64_t together = std::min(kMostRowsAtOnce, rows);
  while (together > 1 &&
         (rows % together != 0 || together * ceil_div(elements, kWarpLanes) > kMostRowRegisters))
    --together;
  return together;
}

int64_t row_lane_registers(int64_t elements) {
  const int64_t of_row = ceil_div(elements, kWarpLanes);
  if (of_row > kMostHeldElements) return 1;
  return of_row * std::clamp<int64_t>(kMostRowRegisters / of_row, 1, kMostRowsAtOnce);
}

std::string print(const LoopStructure& structure) {
  std::string text;
  for (const Level& level : structure.levels) {
    if (level.iterations == kLanes || is_fused(level.axes)) continue;
    text += level.axes == kSpace ? 'S' : 'R';
  }
  return text;
}

}  // namespace pruner
