// Small changes of candidates, one row a mutation, and the mix of two. What comes out is legal.
#include <algorithm>

#include "space/draw_axis.h"

namespace pruner {

namespace {

struct TiledAxis {
  const StagePlan* plan;
  const AxisPlan* axis;
};

std::vector<TiledAxis> tiled_axes(const Sketch& sketch) {
  std::vector<TiledAxis> axes;
  for (const StagePlan& plan : sketch.plans) {
    for (const AxisPlan& axis : plan.axes) {
      if (axis.middle != kFixed || axis.inner != kFixed || axis.registers != kFixed)
        axes.push_back({&plan, &axis});
    }
  }
  return axes;
}

// Redraws all tiles of one axis.
bool redraw_axis(const Sketch& sketch, Candidate& candidate, Rng& rng) {
  const std::vector<TiledAxis> axes = tiled_axes(sketch);
  if (axes.empty()) return false;
  const TiledAxis& drawn = axes[static_cast<size_t>(rng.below(static_cast<int64_t>(axes.size())))];
  draw_axis(sketch, *drawn.plan, *drawn.axis, candidate, rng);
  return true;
}

// The choice nearest to `wanted`.
int32_t nearest(const std::vector<int32_t>& choices, double wanted) {
  return *std::min_element(choices.begin(), choices.end(), [&](int32_t a, int32_t b) {
    return std::abs(a - wanted) < std::abs(b - wanted);
  });
}

// Moves a factor from one level of an axis to another (Ansor's tile-size mutation).
bool move_factor(const Sketch& sketch, Candidate& candidate, Rng& rng) {
  const std::vector<TiledAxis> axes = tiled_axes(sketch);
  if (axes.empty()) return false;
  const AxisPlan& axis =
      *axes[static_cast<size_t>(rng.below(static_cast<int64_t>(axes.size())))].axis;
  std::vector<DecisionRef> levels;
  for (const DecisionRef ref : {axis.registers, axis.inner, axis.middle}) {
    if (ref != kFixed) levels.push_back(ref);
  }
  if (levels.size() < 2) return false;
  const size_t from = static_cast<size_t>(rng.below(static_cast<int64_t>(levels.size())));
  const size_t to =
      (from + 1 + static_cast<size_t>(rng.below(static_cast<int64_t>(levels.size()) - 1))) %
      levels.size();
  int32_t& source = candidate.decisions[static_cast<size_t>(levels[from])];
  int32_t& target = candidate.decisions[static_cast<size_t>(levels[to])];
  const std::vector<int32_t>& choices = sketch.decisions[levels[from]].choices;
  const int32_t drawn =
      choices[static_cast<size_t>(rng.below(static_cast<int64_t>(choices.size())))];
  target =
      nearest(sketch.decisions[levels[to]].choices, static_cast<double>(target) * source / drawn);
  source = drawn;
  return true;
}

// Steps one decision to a neighbouring choice.
bool step_one(const Sketch& sketch, Candidate& candidate, Rng& rng) {
  if (sketch.decisions.empty()) return false;
  const size_t i = static_cast<size_t>(rng.below(static_cast<int64_t>(sketch.decisions.size())));
  const std::vector<int32_t>& choices = sketch.decisions[i].choices;
  auto at =
      std::lower_bound(choices.begin(), choices.end(), candidate.decisions[i]) - choices.begin();
  at += rng.below(2) == 0 ? -1 : 1;
  if (at < 0 || at >= static_cast<int64_t>(choices.size())) return false;
  candidate.decisions[i] = choices[static_cast<size_t>(at)];
  return true;
}

// Redraws one decision that is no tile: order, location, chunk, unroll.
bool redraw_other(const Sketch& sketch, Candidate& candidate, Rng& rng) {
  std::vector<size_t> others;
  for (size_t i = 0; i < sketch.decisions.size(); ++i) {
    if (sketch.decisions[i].kind != DecisionKind::kTile) others.push_back(i);
  }
  if (others.empty()) return false;
  const size_t i = others[static_cast<size_t>(rng.below(static_cast<int64_t>(others.size())))];
  const std::vector<int32_t>& choices = sketch.decisions[i].choices;
  candidate.decisions[i] =
      choices[static_cast<size_t>(rng.below(static_cast<int64_t>(choices.size())))];
  return true;
}

struct Mutation {
  const char* name;
  double weight;
  bool (*apply)(const Sketch& sketch, Candidate& candidate, Rng& rng);
};
constexpr Mutation kMutations[] = {
    {"move-factor", 0.3, move_factor},
    {"redraw-axis", 0.25, redraw_axis},
    {"step", 0.3, step_one},
    {"redraw-other", 0.15, redraw_other},
};

}  // namespace

std::optional<Candidate> mutate(const Space& space, const Candidate& candidate, Rng& rng) {
  std::vector<double> weights;
  for (const Mutation& mutation : kMutations) weights.push_back(mutation.weight);
  Candidate child = candidate;
  const Mutation& drawn = kMutations[rng.weighted(weights)];
  if (!drawn.apply(space[candidate.sketch], child, rng) || child == candidate) return std::nullopt;
  if (!is_legal(space, child)) return std::nullopt;
  return child;
}

std::optional<Candidate> cross_over(const Space& space,
                                    const Candidate& a,
                                    const Candidate& b,
                                    Rng& rng) {
  if (a.sketch != b.sketch) return std::nullopt;
  const Sketch& sketch = space[a.sketch];
  Candidate child = a;
  std::vector<int> side;  // of each tile group
  for (size_t i = 0; i < sketch.decisions.size(); ++i) {
    const int group = sketch.decisions[i].group;
    bool from_b = rng.below(2) == 1;
    if (group >= 0) {
      if (static_cast<size_t>(group) >= side.size())
        side.resize(static_cast<size_t>(group) + 1, -1);
      if (side[group] < 0) side[group] = from_b;
      from_b = side[group] == 1;
    }
    if (from_b) child.decisions[i] = b.decisions[i];
  }
  if (child == a || child == b || !is_legal(space, child)) return std::nullopt;
  return child;
}

}  // namespace pruner
