// Drawing candidates, and what makes one legal. Legality is closed-form and checked before anything
// else is done with a candidate.
#include <algorithm>
#include <optional>
#include <ranges>

#include "space/draw_axis.h"
#include "space/factors.h"
#include "space/gpu/space.h"
#include "space/region.h"
#include "space/sketch_rule.h"
#include "support/ceil_div.h"
#include "support/check.h"
#include "target/machine_model.h"

namespace pruner {

bool tiles_fit(const AxisTiles& tiles,
               const StagePlan& plan,
               int64_t extent,
               const Candidate& candidate,
               bool any_tiles) {
  const Factors factors(candidate);
  const int64_t lanes = tiles.vector ? plan.lanes : 1;
  const int64_t unit = factors.inside(tiles, plan.structure->registers());
  const int64_t units = ceil_div(extent, unit);
  const int64_t tile = factors.inside(tiles, 0) / unit;
  if (tile > units || (!tiles.vector && tile * unit > extent)) return false;
  if (any_tiles) return true;
  const int64_t covered = ceil_div(units, tile) * tile * unit;
  const int64_t least = ceil_div(extent, lanes) * lanes;
  return static_cast<double>(covered) <= kMaxWaste * static_cast<double>(least);
}

bool registers_fit(const StagePlan& root,
                   const StagePlan& anchor,
                   const Candidate& candidate,
                   const Target& target) {
  const Factors factors(candidate);
  int64_t rows = 1, vectors = 1;
  for (const AxisTiles& tiles : root.tiles)
    (tiles.vector ? vectors : rows) *= factors.bound(root, tiles, Bind::kUnrolled);
  // Row after row of tiles: those of the other factor stay, one of this goes by.
  if (anchor.structure->has_matrix()) {
    const int64_t tiles = rows * vectors + (rows > 1 ? vectors : 1),
                  in = anchor.structure->tile_vectors;
    return in == 0 ? tiles + 1 <= kMatrixRegisters : in * tiles + 1 <= target.vector_registers;
  }
  if (anchor.window) return 2 * rows * vectors <= target.vector_registers;
  return rows * vectors + vectors + 1 <= target.vector_registers;
}

const StagePlan* anchor_of(const Sketch& sketch, const StagePlan& root) {
  const auto found = std::ranges::find_if(sketch.plans, [&](const StagePlan& other) {
    return other.accumulates() && other.root == root.stage;
  });
  return found == sketch.plans.end() ? nullptr : &*found;
}

namespace {

constexpr int64_t kMaxLocalBytes = 512 << 10;  // local buffers on a thread's stack

class LegalityCheck {
 public:
  LegalityCheck(const Space& space, const Candidate& candidate)
      : space_(space), sketch_(space[candidate.sketch]), candidate_(candidate) {}

  /// Empty when legal.
  std::string reason() {
    if (candidate_.decisions.size() != sketch_.decisions.size()) return "a decision is missing";
    for (size_t i = 0; i < sketch_.decisions.size(); ++i) {
      if (!allows(space_, sketch_.decisions[i], candidate_.decisions[i])) {
        return sketch_.decisions[i].name + " is " + std::to_string(candidate_.decisions[i]) +
               ", not one of its choices";
      }
    }
    if (space_.target.is_gpu()) return gpu_problem(sketch_, space_.target.gpu, candidate_);
    for (const StagePlan& plan : sketch_.plans) {
      const std::string problem = check(plan);
      if (!problem.empty()) return problem;
    }
    return local_bytes() <= kMaxLocalBytes ? "" : "local buffers exceed the stack";
  }

  /// The nest, made when first asked for.
  LoopNest& nest() {
    if (!nest_) nest_ = make_loop_nest(space_, candidate_);
    return *nest_;
  }

 private:
  std::string check(const StagePlan& plan) {
    const Stage& stage = sketch_.dag[plan.stage];
    const bool inside = plan.overlapped() && location(plan) > 0;
    if (plan.overlapped()) {
      const std::vector<int64_t> extents =
          inside ? visited_extents(nest(), plan.stage) : stage.shape();
      for (const AxisTiles& tiles : plan.tiles) {
        const auto axis = static_cast<size_t>(tiles.axis);
        if (!tiles_fit(tiles, plan, extents[axis], candidate_, space_.any_tiles))
          return "the tiles of " + stage.name + "." + stage.axes[axis].name + " do not fit it";
        if (inside && !ends_with_axis(plan, tiles, extents[axis]))
          return "a visit ends inside a tile of " + stage.name + "." + stage.axes[axis].name;
      }
    }
    if (plan.accumulates() &&
        !registers_fit(sketch_.plan(plan.root), plan, candidate_, space_.target))
      return "the register tile exceeds the registers";
    if (inside && !starts_at_blocks(plan)) return "tiles of " + stage.name + " part a packed block";
    for (const StageId follower : sketch_.tables->followers[plan.stage]) {
      if (location(plan) > location(sketch_.plan(follower)))
        return stage.name + " is computed inside its reader";
    }
    return "";
  }

  // A masked vector of the reader may reach beyond the axis; the visit is then cut to whole tiles.
  bool ends_with_axis(const StagePlan& plan, const AxisTiles& tiles, int64_t visited) {
    const Factors factors(candidate_);
    const int64_t block = factors.inside(tiles, plan.structure->registers());
    if (tiles.vector || block == 1) return true;
    const auto axis = static_cast<size_t>(tiles.axis);
    const int64_t extent = sketch_.dag[plan.stage].axes[axis].extent;
    if (touched_extents(nest(), plan.stage, plan.at, 0)[axis] <= extent) return true;
    return extent % block == 0 && visited % factors.inside(tiles, 0) == 0 &&
           starts_at(plan, axis, block);
  }

  // A cluster that reads packed blocks starts each visit at one.
  bool starts_at_blocks(const StagePlan& plan) {
    if (plan.overlaps) return true;
    const auto along = std::ranges::find_if(plan.tiles, &AxisTiles::vector);
    if (along == plan.tiles.end()) return true;
    const int64_t block = Factors(candidate_).inside(*along, plan.structure->registers());
    return starts_at(plan, static_cast<size_t>(along->axis), block);
  }

  // Each visit of a cluster starts at a multiple of `block` along axis `dim`.
  bool starts_at(const StagePlan& plan, size_t dim, int64_t block) {
    const NestStage& visited = nest().of(plan.stage);  // its extents are of whole tiles
    if (visited_extents(nest(), plan.stage)[dim] >= sketch_.dag[plan.stage].axes[dim].extent)
      return true;
    const NestStage& outer = nest().of(plan.at);
    for (const StageId reader : sketch_.tables->consumers[plan.stage]) {
      if (reader != plan.at && !sketch_.plan(reader).accumulates()) return false;
      for (const Access& access : sketch_.tables->accesses[reader]) {
        if (access.producer != plan.stage) continue;
        const std::optional<Affine>& index = access.indices[dim];
        if (!index || index->constant % block != 0) return false;
        for (int i = 0; i < visited.depth; ++i) {
          const NestLoop& loop = outer.loops[i];
          const int64_t moved = index->coefficient(VarId{loop.axis});
          if (moved * loop.step % block != 0) return false;
          if (loop.clamp >= 0 && moved * loop.unit % block != 0) return false;
        }
      }
    }
    return true;
  }

  int64_t location(const StagePlan& plan) const {
    return Factors(candidate_).value(plan.location, 0);
  }

  int64_t local_bytes() {
    bool any_local = false;
    for (const StagePlan& plan : sketch_.plans) {
      const bool tile = plan.accumulates() && plan.memory == Scope::kLocal;
      any_local = any_local || tile || location(plan) > 0;
    }
    if (!any_local) return 0;
    int64_t bytes = 0;
    for (const NestStage& stage : nest().stages) {
      if (stage.scope != Scope::kLocal) continue;
      int64_t elements = 1;
      for (const int64_t extent : stage.extents) elements *= extent;
      bytes += elements * dtype_bytes(sketch_.dag[stage.stage].dtype);
    }
    return bytes;
  }

  const Space& space_;
  const Sketch& sketch_;
  const Candidate& candidate_;
  std::optional<LoopNest> nest_;
};

template <typename T>
const T& pick(const std::vector<T>& from, Rng& rng) {
  return from[rng.below(static_cast<int64_t>(from.size()))];
}

}  // namespace

bool allows(const Space& space, const Decision& decision, int32_t value) {
  if (space.any_tiles && decision.kind == DecisionKind::kTile) return value >= 1;
  return std::ranges::binary_search(decision.choices, value);
}

bool is_legal(const Space& space, const Candidate& candidate, std::string* why) {
  const std::string reason = LegalityCheck(space, candidate).reason();
  if (why != nullptr) *why = reason;
  return reason.empty();
}

Result<LoopNest> legal_nest(const Space& space, const Candidate& candidate) {
  if (!candidate.sketch.valid() || candidate.sketch.value >= std::ssize(space.sketches))
    return Error("not a legal candidate: there is no sketch ", candidate.sketch.value);
  LegalityCheck check(space, candidate);
  const std::string reason = check.reason();
  if (!reason.empty()) return Error("not a legal candidate: ", reason);
  return std::move(check.nest());
}

void draw_axis(const Sketch& sketch,
               const StagePlan& plan,
               const AxisTiles& tiles,
               int64_t extent,
               Candidate& candidate,
               Rng& rng) {
  const auto for_decisions = [&](const auto& fn) {  // innermost level first
    for (const Factor& factor : std::views::reverse(tiles.factors)) {
      if (factor.decision != kFixed)
        candidate.decisions[factor.decision] = fn(sketch.decisions[factor.decision].choices);
    }
  };
  for (int attempt = 0; attempt < 64; ++attempt) {
    for_decisions([&](const std::vector<int32_t>& choices) { return pick(choices, rng); });
    if (tiles_fit(tiles, plan, extent, candidate)) return;
  }
  for_decisions([](const std::vector<int32_t>& choices) { return choices.front(); });
}

static Candidate draw_cpu(const Sketch& sketch, SketchId id, const Target& target, Rng& rng) {
  Candidate candidate{id, {}};
  for (const Decision& decision : sketch.decisions)
    candidate.decisions.push_back(pick(decision.drawn(), rng));
  // A cluster's tiles divide what those of the one that it is inside of leave it.
  for (const StagePlan& plan : std::views::reverse(sketch.plans)) {
    if (!plan.overlapped() || plan.tiles.empty()) continue;
    const std::vector<int64_t> extents = visited_extents(sketch, plan, candidate);
    const StagePlan* const anchor = anchor_of(sketch, plan);
    for (int tries = 0; tries < 32; ++tries) {
      for (const AxisTiles& tiles : plan.tiles)
        draw_axis(sketch, plan, tiles, extents[tiles.axis], candidate, rng);
      if (anchor == nullptr || registers_fit(plan, *anchor, candidate, target)) break;
    }
  }
  return candidate;
}

Candidate draw(const Space& space, Rng& rng) {
  const SketchId id = pick(space.drawn, rng);
  return space.target.is_gpu() ? draw_gpu(space[id], id, space.target.gpu, rng)
                               : draw_cpu(space[id], id, space.target, rng);
}

Candidate sample(const Space& space, Rng& rng) {
  Candidate candidate;
  for (int attempt = 0; attempt < 1000; ++attempt) {
    candidate = draw(space, rng);
    if (is_legal(space, candidate)) return candidate;
  }
  // The smallest tiles, everything at root: always legal.
  const Sketch& sketch = space[candidate.sketch];
  for (size_t i = 0; i < sketch.decisions.size(); ++i)
    candidate.decisions[i] = sketch.decisions[i].choices.front();
  return candidate;
}

}  // namespace pruner
