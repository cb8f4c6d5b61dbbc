// A CPU's record: Ansor's SSRSRS tiles become ours, level for level. Its innermost tile is our
// register tile, the two around it our inner and middle tile, its inner reduction our chunk; what
// it runs in parallel is outside of all of them.
#include <algorithm>
#include <array>
#include <set>

#include "ansor/wanted_point.h"
#include "space/draw_axis.h"
#include "support/ceil_div.h"

namespace pruner::ansor {

namespace {

constexpr size_t kSpatialLevels = 4;  // number of spatial levels in SSRSRS

// The iterators of a stage whose loops are, fused or not, its parallel loop.
std::set<int> parallel_parts(const StateStage& stage) {
  std::set<int> parts;
  for (const int leaf : stage.leaves) {
    if (annotation_of(stage, leaf) == Annotation::kParallel) parts.insert(leaf);
  }
  for (auto r = stage.relations.rbegin(); r != stage.relations.rend(); ++r) {
    if (r->fuse && parts.contains(r->parent)) parts.insert({r->outer, r->inner});
  }
  return parts;
}

class CpuPointReader : public PointReader {
 public:
  using PointReader::PointReader;

  WantedPoint read() {
    if (!match_.same_stages) differs("other stages");
    for (const StagePlan& plan : sketch_.plans) {
      if (plan.overlapped()) read_root(plan);
      if (plan.accumulates()) read_anchor(plan);
      if (plan.location != kFixed) read_place(plan);
    }
    return std::move(wanted_);
  }

 private:
  /// The stage whose loops are the tiles of a root, and the one whose outer loops are around them.
  struct TiledStages {
    const StateStage *tiled, *around;
  };
  TiledStages tiled_stages(const StagePlan& root) const {
    const int own = number(root.stage);
    const StagePlan* const anchor = anchor_of(sketch_, root);
    const int contraction = anchor == nullptr ? -1 : number(anchor->stage);
    if (own < 0 && contraction < 0) return {nullptr, nullptr};
    const StateStage& written = stage(own < 0 ? contraction : own);
    if (contraction < 0) return {&written, &written};
    const StateStage& computed = stage(contraction);
    const bool inside = computed.compute_at == ComputeAt::kIterator && computed.at_stage == own;
    return {&computed, inside ? &written : &computed};
  }

  void read_root(const StagePlan& plan) {
    const auto [tiled, around] = tiled_stages(plan);
    if (tiled == nullptr) return differs("a stage that the record has not");
    const std::set<int> parallel = parallel_parts(*around);
    const int in_registers = plan.structure->registers();
    for (const AxisTiles& tiles : plan.tiles) {
      double registers = 1, inner = 1, middle = 1;  // elements that each level holds
      for (const int i : iterators(tiles.axis)) {
        if (i >= tiled->num_axes || i >= around->num_axes) return differs("other axes");
        const std::array<int64_t, 3> held = held_by_levels(*tiled, *around, parallel, i);
        registers *= static_cast<double>(held[0]);
        inner *= static_cast<double>(held[1]);
        middle *= static_cast<double>(held[2]);
      }
      const double unit = tiles.vector ? plan.lanes : 1;
      const bool anchored = anchor_of(sketch_, plan) != nullptr;
      if (!anchored) registers = inner = unit;  // one vector, one element
      if (tiles.decision(in_registers) != kFixed || tiles.vector)
        want(tiles.decision(in_registers), registers / unit, "a register tile of");
      want(tiles.decision(spatial_level(plan, 2)), inner / registers, "an inner tile of");
      want(tiles.decision(spatial_level(plan, 1)),
           std::max(middle / inner, 1.0),
           "a middle tile of");
    }
    want(plan.parallel_order, 0, "an order", 0);
    want(plan.order, 0, "an order", 0);
  }

  /// The n-th of the levels that split the spatial axes.
  static int spatial_level(const StagePlan& plan, int n) {
    int level = 0;
    for (; n > 0; --n) {
      do ++level;
      while (plan.structure->levels[level].axes != Axes::kSpace);
    }
    return level;
  }

  /// How many elements of an axis a register tile, an inner and a middle tile hold.
  static std::array<int64_t, 3> held_by_levels(const StateStage& tiled,
                                               const StateStage& around,
                                               const std::set<int>& parallel,
                                               int axis) {
    const std::vector<SplitPart> parts = parts_of(tiled, axis), outer = parts_of(around, axis);
    int64_t split = 1;
    for (const SplitPart& part : parts) split *= std::max<int64_t>(part.factor, 1);
    const int64_t whole = tiled.iters[axis].extent;
    const auto extent = [&](size_t level) {
      return level > 0 ? parts[level].factor : ceil_div(whole, split);
    };
    const auto in_parallel = [&](size_t level) {
      const bool parted = level + 1 < outer.size() || outer.size() == 1;
      return level < outer.size() && parted && parallel.contains(outer[level].iter);
    };
    const bool tiles = parts.size() == kSpatialLevels;
    const bool vector = annotation_of(tiled, parts.back().iter) == Annotation::kVectorize;
    const int64_t registers = tiles || vector ? extent(parts.size() - 1) : 1;
    const int64_t inner = tiles ? registers * extent(2) : registers;
    int64_t middle = tiles ? inner : 1;
    for (size_t level = 0; level < (tiles ? 2 : parts.size()); ++level) {
      if (!in_parallel(level)) middle *= extent(level);
    }
    return {registers, inner, std::max(middle, inner)};
  }

  void read_anchor(const StagePlan& plan) {
    if (number(plan.stage) < 0) return;
    const StateStage& contraction = stage(number(plan.stage));
    const Stage& own = sketch_.dag[plan.stage];
    for (size_t r = 0; r < own.reduce_axes.size(); ++r) {
      const int axis = static_cast<int>(own.axes.size() + r);
      int64_t chunk = 1;
      for (const int i : iterators(axis)) {
        if (i >= contraction.num_roots) return differs("other reductions");
        const std::vector<SplitPart> parts = parts_of(contraction, i);
        int64_t within = parts.size() == 1 ? contraction.iters[i].extent : 1;
        for (size_t p = 1; p < parts.size(); ++p) within *= parts[p].factor;
        chunk *= within;
      }
      const DecisionRef decided = chunk_of(plan, axis);
      if (decided != kFixed) {
        want(decided, static_cast<double>(chunk), "a chunk of");
      } else if (chunk < own.reduce_axes[r].extent) {
        differs("a reduction in chunks");
      }
    }
    const int root = number(plan.root);
    const int64_t unroll = std::max(unroll_of(contraction), root < 0 ? 0 : unroll_of(stage(root)));
    want(plan.unroll, static_cast<double>(unroll), "unrolling", 0);
  }

  /// The decision of the elements of a reduce axis in a chunk.
  static DecisionRef chunk_of(const StagePlan& plan, int axis) {
    for (const AxisTiles& tiles : plan.tiles) {
      for (const Factor& factor : tiles.factors)
        if (tiles.axis == axis && factor.decision != kFixed) return factor.decision;
    }
    return kFixed;
  }

  void read_place(const StagePlan& plan) {
    const int own = number(plan.stage);
    if (own < 0) return;
    const StateStage& placed = stage(own);
    Location at = Location::kRoot;
    if (placed.compute_at == ComputeAt::kInlined) at = Location::kAfterMiddle;
    if (placed.compute_at == ComputeAt::kIterator) {
      const bool in_parallel = parallel_parts(stage(placed.at_stage)).contains(placed.at_iter);
      at = in_parallel ? Location::kAfterParallel : Location::kAfterMiddle;
    }
    want(plan.location, static_cast<double>(at), "a place", 0);
  }
};

}  // namespace

WantedPoint wanted_on_cpu(const Space& space, const PointMatch& match, const State& state) {
  return CpuPointReader(space, match, state).read();
}

}  // namespace pruner::ansor
