#include "space/metaschedule.h"

#include <algorithm>

#include "space/dot.h"
#include "space/draw_axis.h"
#include "space/factors.h"
#include "space/perfect_tile.h"
#include "space/sketch_rule.h"
#include "space/weighted_row.h"
#include "support/ceil_div.h"
#include "support/check.h"

namespace pruner {

namespace {

// TVM's default rules (meta_schedule/schedule_rule).
constexpr int64_t kMaxInnermostFactor = 64;
constexpr int64_t kMaxVectorizeExtent = 64;
constexpr int64_t kMaxJobsPerCore = 16;  // with more outputs a contraction has no rfactor
constexpr int32_t kUnrollOnCpu[] = {0, 16, 64, 512};
// SSRSRS, the same around an instruction, and SSSRRSRS.
constexpr std::string_view kStructures[] = {
    "register-tile", "cache-tile", "quad-tile", "quad-cache-tile", "block-tile"};
constexpr std::string_view kIntrinsics[] = {"vpdpbusd", "sdot", "udot"};
/// A group of instructions of tensor cores, in ours: a warp's fragments come in multiples.
struct TensorCoreRow {
  std::string_view structure;
  int32_t buffers, epilogue;
  int64_t rows, columns;
  int below = 1000;  // compute capability of the first devices that have a larger one in its place
};
// wmma's 16 x 16 x 16, without a pipeline, that is with the shortest of ours, and whose sums go
// through shared memory; and m16n8k8, whose pipeline has three stages, whose warps have multiples
// of 32 x 32 and write their sums themselves.
constexpr TensorCoreRow kTensorCores[] = {{"m16n8k16-tile", 2, 1, 1, 2},
                                          {"m16n8k32-tile", 2, 1, 1, 2},
                                          {"m8n8k16-tile", 2, 1, 2, 2, 80},
                                          {"m16n8k8-tile", 3, 0, 2, 4}};
const TensorCoreRow* find_tensor_core(const LoopStructure& structure) {
  const auto found = std::ranges::find(kTensorCores, structure.name, &TensorCoreRow::structure);
  return found == std::end(kTensorCores) ? nullptr : found;
}

template <typename T>
bool is_one_of(std::span<const T> all, const T& one) {
  return std::ranges::find(all, one) != all.end();
}

// Whether a structure has both R levels of SSRSRS. If it has one of them, the other is 1.
bool splits_reduction(const LoopStructure& structure) {
  const auto chunk = [](const Level& level) { return level.iterations == Iterations::kOfLongest; };
  return std::ranges::any_of(structure.levels, chunk);
}

int64_t units_of(const Stage& stage, const AxisTiles& tiles) {
  return ceil_div(iterator_of(stage, tiles.axis).extent, fixed_elements(tiles));
}

enum class Mutator : uint8_t { kTileSize, kComputeLocation, kUnroll, kParallel, kThreadBinding };
struct MutatorRow {
  Mutator mutator;
  double cpu, gpu;  // how often it is drawn
};
constexpr MutatorRow kMutators[] = {{Mutator::kTileSize, 0.90, 0.90},
                                    {Mutator::kComputeLocation, 0.05, 0},
                                    {Mutator::kUnroll, 0.03, 0.08},
                                    {Mutator::kParallel, 0.02, 0},
                                    {Mutator::kThreadBinding, 0, 0.02}};

/// Returns the mutator that draws a decision of a kind again. No kind belongs to kParallel: our
/// parallel loop has all outermost tiles, so that the number of jobs follows from the tiles.
std::optional<Mutator> mutator_of(DecisionKind kind) {
  switch (kind) {
    case DecisionKind::kVector: return Mutator::kTileSize;  // vector of a cooperative fetch
    case DecisionKind::kLocation: return Mutator::kComputeLocation;
    case DecisionKind::kUnroll: return Mutator::kUnroll;
    case DecisionKind::kThreads: return Mutator::kThreadBinding;
    case DecisionKind::kTile:
    case DecisionKind::kChunk:
    case DecisionKind::kOrder:
    case DecisionKind::kPrefetch:
    case DecisionKind::kStreaming:
    case DecisionKind::kBuffers:
    case DecisionKind::kEpilogue: break;
  }
  return std::nullopt;
}

int32_t draw_choice(const std::vector<int32_t>& choices, Rng& rng) {
  return choices[rng.below(static_cast<int64_t>(choices.size()))];
}

}  // namespace

/// Reads a sketch of ours by MetaSchedule's rules.
class PartMaker {
 public:
  using Split = MetaScheduleSpace::Split;
  using Part = MetaScheduleSpace::Part;

  PartMaker(const Space& space, SketchId id) : space_(space), sketch_(space[id]) {
    part_.sketch = id;
    for (const Decision& decision : sketch_.decisions) part_.choices.push_back(decision.drawn());
  }

  /// nullopt: the sketch is none of MetaSchedule's.
  std::optional<Part> make() {
    if (!has_form()) return std::nullopt;
    for (const StagePlan& plan : sketch_.plans) {
      if (plan.accumulates() && needs_tiling(plan.stage) && !read_contraction(plan))
        return std::nullopt;
      if (plan.first == 0) read_root(plan);
    }
    for (size_t i = 0; i < sketch_.decisions.size(); ++i) read_annotation(static_cast<int>(i));
    for (const Split& split : part_.splits) keep_divisors(split);
    const auto none = [](const std::vector<int32_t>& choices) { return choices.empty(); };
    if (std::ranges::any_of(part_.choices, none)) return std::nullopt;
    return std::move(part_);
  }

 private:
  bool gpu() const { return space_.target.is_gpu(); }
  bool needs_tiling(StageId stage) const { return needs_multi_level_tiling(sketch_.dag, stage); }
  const Decision& decision(DecisionRef ref) const { return sketch_.decisions[ref]; }

  template <typename Keep>
  void keep(DecisionRef ref, const Keep& fits) {
    if (ref != kFixed) std::erase_if(part_.choices[ref], [&](int32_t c) { return !fits(c); });
  }
  void keep_one(DecisionRef ref, int32_t value) {
    keep(ref, [&](int32_t choice) { return choice == value; });
  }

  // AddRFactor of a contraction: fewer outputs than terms, and than what gives each core its jobs.
  bool has_form() const {
    if (sketch_.form == kDirect.name) return true;
    if (sketch_.form == kImplicitGemm.name) return true;  // ReIndex, on GPUs alone
    if (sketch_.form != kSplitK.name || gpu()) return false;
    for (const Stage& stage : sketch_.dag.stages) {
      if (stage.tag != kSplitTag) continue;
      const int64_t parts = stage.axes[0].extent;
      const int64_t outputs = stage.num_elements() / parts, terms = stage.reduce_size() * parts;
      if (outputs >= terms || outputs > kMaxJobsPerCore * space_.target.threads) return false;
    }
    return true;
  }

  // Reads the reduction's levels. Returns whether the structure is one of MetaSchedule's.
  bool read_contraction(const StagePlan& plan) {
    const LoopStructure& structure = *plan.structure;
    if (!is_one_of<std::string_view>(kStructures, structure.name) && !has_tensor_cores(plan))
      return false;
    const DotInstruction* dot = sketch_.tables->dots[plan.stage];
    const bool terms = !structure.instruction.empty();
    if (terms && !gpu() && (dot == nullptr || !is_one_of<std::string_view>(kIntrinsics, dot->name)))
      return false;
    part_.tensorized = part_.tensorized || terms;
    if (terms && gpu()) {
      keep_one(plan.buffers, find_tensor_core(structure)->buffers);
      keep_one(plan.epilogue, find_tensor_core(structure)->epilogue);
    }
    const Stage& stage = sketch_.dag[plan.stage];
    for (const AxisTiles& tiles : plan.tiles) {
      if (tiles.axis < std::ssize(stage.axes)) continue;
      const Split split = split_of(stage, tiles, kMaxInnermostFactor);
      if (!split.levels.empty()) {
        part_.splits.push_back(split);
      } else if (splits_reduction(structure) && split.extent > kMaxInnermostFactor) {
        return false;  // all of it would be in the innermost R
      }
    }
    return true;
  }

  // MetaSchedule has no tensor core instructions for bfloat16 and tf32.
  bool has_tensor_cores(const StagePlan& plan) const {
    const std::optional<MmaContraction>& mma = sketch_.tables->mmas[plan.stage];
    const TensorCoreRow* row = find_tensor_core(*plan.structure);
    return row != nullptr && mma && compute_capability(space_.target.gpu) < row->below &&
           mma->instruction->a != DType::kBFloat16 && mma->instruction->a != DType::kFloat32;
  }

  // Returns the number of which the fragments along an axis are a multiple.
  int64_t fragment_unit(const StagePlan* anchor, int axis) const {
    const TensorCoreRow* row = anchor == nullptr ? nullptr : find_tensor_core(*anchor->structure);
    if (row == nullptr) return 1;
    const MmaContraction& mma = *sketch_.tables->mmas[anchor->stage];
    return axis == mma.m ? row->rows : axis == mma.n ? row->columns : 1;
  }

  static bool is_tile(const Decision& decision) {
    return decision.kind == DecisionKind::kTile || decision.kind == DecisionKind::kChunk;
  }

  Split split_of(const Stage& stage, const AxisTiles& tiles, int64_t most_innermost) const {
    Split split{.levels = {}, .extent = units_of(stage, tiles), .most_innermost = most_innermost};
    for (const Factor& factor : tiles.factors)
      if (factor.decision != kFixed && is_tile(decision(factor.decision)))
        split.levels.push_back(factor.decision);
    return split;
  }

  // The spatial axes. A block that is tiled stays where it is; one that is not has a vector, and
  // else plain loops.
  void read_root(const StagePlan& plan) {
    const StagePlan* anchor = anchor_of(sketch_, plan);
    const bool tiled = anchor != nullptr && needs_tiling(anchor->stage);
    if (tiled) keep_one(plan.location, 0);
    for (const AxisTiles& tiles : plan.tiles) {
      if (tiles.axis < 0 || tiles.axis >= std::ssize(sketch_.dag[plan.stage].axes)) continue;
      const int64_t lanes = tiles.vector ? plan.lanes : 1;
      Split split = split_of(
          sketch_.dag[plan.stage], tiles, std::max<int64_t>(1, kMaxInnermostFactor / lanes));
      if (split.levels.empty()) continue;
      if (!tiled && !gpu()) {
        read_plain_loops(tiles, split, lanes);
        continue;
      }
      if (!gpu() && !splits_reduction(*anchor->structure) && is_long(*anchor))
        fix_second_space(*anchor, tiles, split);
      if (!plan.structure->instruction.empty()) split.most_innermost = kMaxInnermostFactor;
      split.unit = tiled ? fragment_unit(anchor, tiles.axis) : 1;
      split.extent = ceil_div(split.extent, split.unit);
      part_.splits.push_back(split);
    }
  }

  // The longest vector up to 64 elements that divides the axis.
  void read_plain_loops(const AxisTiles& tiles, const Split& split, int64_t lanes) {
    for (const DecisionRef level : split.levels) {
      int32_t value = 1;
      for (const int32_t choice : part_.choices[level]) {
        const bool innermost = level == split.levels.back() && tiles.vector;
        if (innermost && choice * lanes <= kMaxVectorizeExtent && split.extent % choice == 0)
          value = choice;
      }
      keep_one(level, value);
    }
  }

  bool is_long(const StagePlan& anchor) const {
    const Stage& stage = sketch_.dag[anchor.stage];
    return std::ranges::any_of(anchor.tiles, [&](const AxisTiles& tiles) {
      return tiles.axis >= std::ssize(stage.axes) && units_of(stage, tiles) > kMaxInnermostFactor;
    });
  }

  // A reduction that is too long for the inner R of SSRSRS is the outer one. The S between them
  // stands around our one level, so that it is 1.
  void fix_second_space(const StagePlan& anchor, const AxisTiles& tiles, Split& split) {
    const DecisionRef around = tiles.decision(anchor.structure->sum.level - 1);
    keep_one(around, 1);
    std::erase(split.levels, around);
  }

  // Restricts the choices of a decision that is no tile.
  void read_annotation(DecisionRef ref) {
    switch (decision(ref).kind) {
      case DecisionKind::kUnroll:
        if (!gpu()) keep(ref, [](int32_t c) { return is_one_of<int32_t>(kUnrollOnCpu, c); });
        break;
      case DecisionKind::kOrder: keep_one(ref, gpu() ? 1 : 0); break;
      case DecisionKind::kPrefetch:
      case DecisionKind::kStreaming: keep_one(ref, 0); break;
      case DecisionKind::kBuffers:
        if (!part_.tensorized) keep_one(ref, 1);
        break;
      case DecisionKind::kTile:
      case DecisionKind::kChunk:
      case DecisionKind::kLocation:
      case DecisionKind::kThreads:
      case DecisionKind::kEpilogue:
      case DecisionKind::kVector: break;
    }
  }

  void keep_divisors(const Split& split) {
    for (const DecisionRef level : split.levels) {
      const bool innermost = level == split.levels.back();
      const int64_t unit = split.unit_of(level);
      keep(level, [&](int32_t c) {
        return c % unit == 0 && split.extent % (c / unit) == 0 &&
               (!innermost || c / unit <= split.most_innermost);
      });
    }
  }

  const Space& space_;
  const Sketch& sketch_;
  Part part_;
};

MetaScheduleSpace::MetaScheduleSpace(const Space& space) : space_(space) {
  for (size_t s = 0; s < space.sketches.size(); ++s) {
    std::optional<Part> part = PartMaker(space, SketchId{static_cast<int32_t>(s)}).make();
    if (part) parts_.push_back(*std::move(part));
  }
  // A contraction that the instruction computes is not tiled without it, too.
  if (std::ranges::any_of(parts_, &Part::tensorized))
    std::erase_if(parts_, [](const Part& part) { return !part.tensorized; });
  CHECK(!parts_.empty()) << "no sketch is one of MetaSchedule's";
}

const MetaScheduleSpace::Part* MetaScheduleSpace::part_of(SketchId sketch) const {
  const auto found = std::ranges::find(parts_, sketch, &Part::sketch);
  return found == parts_.end() ? nullptr : &*found;
}

bool MetaScheduleSpace::contains(const Candidate& candidate) const {
  const Part* part = part_of(candidate.sketch);
  if (part == nullptr) return false;
  for (size_t i = 0; i < part->choices.size(); ++i)
    if (!is_one_of<int32_t>(part->choices[i], candidate.decisions[i])) return false;
  return std::ranges::all_of(part->splits, [&](const Split& split) {
    int64_t product = 1;
    for (const DecisionRef level : split.levels) product *= candidate.decisions[level];
    return split.extent * split.unit % product == 0;
  });
}

Candidate MetaScheduleSpace::draw(Rng& rng) const {
  constexpr int kAttempts = 64;  // to hit what our structures have of a level
  const Part& part = parts_[rng.below(std::ssize(parts_))];
  Candidate candidate{part.sketch, {}};
  for (const std::vector<int32_t>& choices : part.choices)
    candidate.decisions.push_back(draw_choice(choices, rng));
  for (const Split& split : part.splits) {
    bool has = false;
    for (int attempt = 0; attempt < kAttempts && !has; ++attempt) {
      const std::vector<int64_t> tiles =
          sample_perfect_tile(split.extent, split.levels.size() + 1, split.most_innermost, rng);
      has = true;
      for (size_t l = 0; l < split.levels.size(); ++l) {
        const DecisionRef level = split.levels[l];
        candidate.decisions[level] = static_cast<int32_t>(tiles[l + 1] * split.unit_of(level));
        has = has && is_one_of<int32_t>(part.choices[level], candidate.decisions[level]);
      }
    }
  }
  return candidate;
}

std::optional<Candidate> MetaScheduleSpace::mutate(const Candidate& candidate, Rng& rng) const {
  const Part* part = part_of(candidate.sketch);
  CHECK(part != nullptr) << "a candidate of another space";
  const Mutator mutator = draw_row(kMutators, space_.target.is_gpu(), rng).mutator;
  std::vector<DecisionRef> drawn_again;
  const Sketch& sketch = space_[candidate.sketch];
  for (size_t i = 0; i < part->choices.size(); ++i)
    if (part->choices[i].size() > 1 && mutator_of(sketch.decisions[i].kind) == mutator)
      drawn_again.push_back(static_cast<DecisionRef>(i));
  std::vector<const Split*> splits;
  for (const Split& split : part->splits)
    if (mutator == Mutator::kTileSize && split.extent > 1) splits.push_back(&split);
  const auto places = std::ssize(drawn_again) + std::ssize(splits);
  if (places == 0) return std::nullopt;
  const int64_t place = rng.below(places);
  if (place < std::ssize(splits)) return mutate_tiles(*splits[place], candidate, rng);
  Candidate child = candidate;
  int32_t& value = child.decisions[drawn_again[place - std::ssize(splits)]];
  std::vector<int32_t> others = part->choices[drawn_again[place - std::ssize(splits)]];
  std::erase(others, value);
  value = draw_choice(others, rng);
  return child;
}

/// Moves a divisor of one tile to another (TVM's MutateTileSize).
std::optional<Candidate> MetaScheduleSpace::mutate_tiles(const Split& split,
                                                         Candidate candidate,
                                                         Rng& rng) {
  std::vector<int64_t> tiles = {split.extent};
  for (const DecisionRef level : split.levels) {
    tiles.push_back(candidate.decisions[level] / split.unit_of(level));
    tiles[0] /= tiles.back();
  }
  const auto count = std::ssize(tiles);
  while (true) {
    const int64_t from = rng.below(count);
    if (tiles[from] <= 1) continue;
    int64_t to = rng.below(count - 1);
    to += to >= from;
    std::vector<int64_t> divisors;
    for (int64_t d = 2; d <= tiles[from]; ++d) {
      const bool fits = to != count - 1 || d * tiles[to] <= split.most_innermost;
      if (tiles[from] % d == 0 && fits) divisors.push_back(d);
    }
    if (divisors.empty()) {
      if (count <= 2) return std::nullopt;
      continue;
    }
    const int64_t divisor = divisors[rng.below(std::ssize(divisors))];
    tiles[from] /= divisor;
    tiles[to] *= divisor;
    break;
  }
  tiles.back() *= split.unit;
  for (size_t l = 0; l < split.levels.size(); ++l)
    candidate.decisions[split.levels[l]] = static_cast<int32_t>(tiles[l + 1]);
  return candidate;
}

}  // namespace pruner
