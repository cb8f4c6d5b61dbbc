// Drawing candidates, and what makes one legal. Legality is closed-form and checked before anything
// else is done with a candidate.
#include <algorithm>
#include <optional>
#include <ranges>

#include "space/draw_axis.h"
#include "space/gpu/space.h"
#include "space/sketch_rule.h"
#include "support/check.h"

namespace pruner {

static int64_t value(const Candidate& candidate, DecisionRef ref) {
  return ref == kFixed ? 1 : candidate.decisions[static_cast<size_t>(ref)];
}

bool tiles_fit(const AxisPlan& axis,
               const StagePlan& plan,
               int64_t extent,
               const Candidate& candidate) {
  const int64_t lanes = axis.vector ? plan.lanes : 1;
  const int64_t unit = value(candidate, axis.registers) * lanes;
  const int64_t units = (extent + unit - 1) / unit;
  const int64_t tile = value(candidate, axis.middle) * value(candidate, axis.inner);
  if (tile > units || (!axis.vector && tile * unit > extent)) return false;
  const int64_t covered = (units + tile - 1) / tile * tile * unit;
  const int64_t least = (extent + lanes - 1) / lanes * lanes;
  return static_cast<double>(covered) <= kMaxWaste * static_cast<double>(least);
}

bool registers_fit(const StagePlan& root,
                   const StagePlan& anchor,
                   const Candidate& candidate,
                   const Target& target) {
  int64_t rows = 1, vectors = 1;
  for (const AxisPlan& axis : root.axes)
    (axis.vector ? vectors : rows) *= value(candidate, axis.registers);
  if (anchor.window) return 2 * rows * vectors <= target.vector_registers;
  return rows * vectors + vectors + 1 <= target.vector_registers;
}

namespace {

constexpr int64_t kMaxLocalBytes = 512 << 10;  // of a thread's stack

class LegalityCheck {
 public:
  LegalityCheck(const Space& space, const Candidate& candidate)
      : space_(space), sketch_(space[candidate.sketch]), candidate_(candidate) {}

  /// Empty when legal.
  std::string reason() {
    if (candidate_.decisions.size() != sketch_.decisions.size()) return "a decision is missing";
    for (size_t i = 0; i < sketch_.decisions.size(); ++i) {
      const std::vector<int32_t>& choices = sketch_.decisions[i].choices;
      if (!std::binary_search(choices.begin(), choices.end(), candidate_.decisions[i])) {
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
    const bool inside = plan.inside.valid() && location(plan) > 0;
    std::vector<int64_t> extents;
    if (!plan.axes.empty()) extents = visited_extents(sketch_, plan, candidate_);
    for (const AxisPlan& axis : plan.axes) {
      if (!tiles_fit(axis, plan, extents[static_cast<size_t>(axis.axis)], candidate_)) {
        return "the tiles of " + stage.name + "." + stage.axes[axis.axis].name + " do not fit it";
      }
    }
    if (plan.role == StageRole::kAnchor) {
      const StagePlan& root = sketch_.plans[sketch_.tables->plan_of[plan.root.value]];
      if (!registers_fit(root, plan, candidate_, space_.target))
        return "the register tile exceeds the registers";
    }
    if (inside && !starts_at_blocks(plan)) return "tiles of " + stage.name + " part a packed block";
    if (plan.role == StageRole::kAttached || inside) {
      // What it feeds must be computed at the same place or further inside.
      for (const StageId reader : sketch_.tables->consumers[plan.stage.value]) {
        const StagePlan& other = sketch_.plans[sketch_.tables->plan_of[reader.value]];
        if (other.role == StageRole::kAttached && location(plan) > location(other)) {
          return stage.name + " is computed inside its reader";
        }
        if (other.role == StageRole::kRowPart &&
            location(plan) > location(sketch_.plans[sketch_.tables->plan_of[other.root.value]])) {
          return stage.name + " is computed inside its reader";
        }
      }
    }
    return "";
  }

  // A cluster that reads packed blocks starts each visit at one.
  bool starts_at_blocks(const StagePlan& plan) {
    if (plan.overlaps) return true;
    const auto along = std::ranges::find_if(plan.axes, &AxisPlan::vector);
    if (along == plan.axes.end()) return true;
    const int64_t block = value(candidate_, along->registers) * plan.lanes;
    const auto dim = static_cast<size_t>(along->axis);
    const NestStage& visited = nest().of(plan.stage);
    if (visited.extents[dim] >= sketch_.dag[plan.stage].axes[dim].extent) return true;
    const NestStage& outer = nest().of(plan.inside);
    for (const StageId reader : sketch_.tables->consumers[plan.stage.value]) {
      const StagePlan& other = sketch_.plans[sketch_.tables->plan_of[reader.value]];
      if (reader != plan.inside && other.role != StageRole::kAnchor) return false;
      for (const Access& access : sketch_.tables->accesses[reader.value]) {
        if (access.producer != plan.stage) continue;
        const std::optional<Affine>& index = access.indices[dim];
        if (!index || index->constant % block != 0) return false;
        for (int i = 0; i < visited.depth; ++i) {
          const NestLoop& loop = outer.loops[static_cast<size_t>(i)];
          const int64_t moved = index->coefficient(VarId{loop.axis});
          if (moved * loop.step % block != 0) return false;
          if (loop.clamp >= 0 && moved * loop.clamp % block != 0) return false;
        }
      }
    }
    return true;
  }

  int64_t location(const StagePlan& plan) const {
    return plan.location == kFixed ? 0 : candidate_.decisions[static_cast<size_t>(plan.location)];
  }

  int64_t local_bytes() {
    bool any_local = false;
    for (const StagePlan& plan : sketch_.plans) {
      any_local = any_local || plan.cache_tile || (plan.location != kFixed && location(plan) > 0);
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
  return from[static_cast<size_t>(rng.below(static_cast<int64_t>(from.size())))];
}

}  // namespace

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
               const AxisPlan& axis,
               int64_t extent,
               Candidate& candidate,
               Rng& rng) {
  const auto draw = [&](DecisionRef ref) {
    if (ref != kFixed)
      candidate.decisions[static_cast<size_t>(ref)] = pick(sketch.decisions[ref].choices, rng);
  };
  for (int attempt = 0; attempt < 64; ++attempt) {
    draw(axis.registers);
    draw(axis.inner);
    draw(axis.middle);
    if (tiles_fit(axis, plan, extent, candidate)) return;
  }
  for (const DecisionRef ref : {axis.registers, axis.inner, axis.middle}) {
    if (ref != kFixed)
      candidate.decisions[static_cast<size_t>(ref)] = sketch.decisions[ref].choices.front();
  }
}

static Candidate draw_cpu(const Sketch& sketch, SketchId id, const Target& target, Rng& rng) {
  Candidate candidate{id, {}};
  for (const Decision& decision : sketch.decisions)
    candidate.decisions.push_back(pick(decision.choices, rng));
  // A cluster's tiles divide what those of the one that it is inside of leave it.
  for (const StagePlan& plan : std::views::reverse(sketch.plans)) {
    if (plan.axes.empty()) continue;
    const std::vector<int64_t> extents = visited_extents(sketch, plan, candidate);
    const auto anchor = std::ranges::find_if(sketch.plans, [&](const StagePlan& other) {
      return other.role == StageRole::kAnchor && other.root == plan.stage;
    });
    for (int tries = 0; tries < 32; ++tries) {
      for (const AxisPlan& axis : plan.axes) {
        draw_axis(sketch, plan, axis, extents[static_cast<size_t>(axis.axis)], candidate, rng);
      }
      const bool anchored = anchor != sketch.plans.end();
      if (!anchored || registers_fit(plan, *anchor, candidate, target)) break;
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
