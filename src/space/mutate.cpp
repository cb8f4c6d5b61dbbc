// Small changes of candidates, one row a mutation, and the mix of two. What comes out is legal.
#include <algorithm>

#include "space/draw_axis.h"

namespace pruner {

namespace {

struct DrawnAxis {
  const StagePlan* plan;
  const AxisTiles* tiles;
};

// The axes whose tiles overlap, and are drawn together.
std::vector<DrawnAxis> drawn_axes(const Sketch& sketch) {
  std::vector<DrawnAxis> axes;
  for (const StagePlan& plan : sketch.plans) {
    for (const AxisTiles& tiles : plan.tiles) {
      const auto decided = [](const Factor& factor) { return factor.decision != kFixed; };
      if (tiles.ends == AxisTiles::Ends::kOverlap && std::ranges::any_of(tiles.factors, decided))
        axes.push_back({&plan, &tiles});
    }
  }
  return axes;
}

// The decisions of one tiled axis, drawn; empty: there is none.
std::vector<size_t> draw_group(const Sketch& sketch, Rng& rng) {
  int groups = 0;
  for (const Decision& decision : sketch.decisions) groups = std::max(groups, decision.group + 1);
  std::vector<size_t> members;
  if (groups == 0) return members;
  const int drawn = static_cast<int>(rng.below(groups));
  for (size_t i = 0; i < sketch.decisions.size(); ++i) {
    if (sketch.decisions[i].group == drawn) members.push_back(i);
  }
  return members;
}

int32_t draw_choice(const Decision& decision, Rng& rng) {
  return decision.drawn()[rng.below(static_cast<int64_t>(decision.drawn().size()))];
}

// Redraws all tiles of one axis.
bool redraw_axis(const Space& space, Candidate& candidate, Rng& rng) {
  const Sketch& sketch = space[candidate.sketch];
  const std::vector<DrawnAxis> axes = drawn_axes(sketch);
  if (!axes.empty()) {
    const DrawnAxis& drawn = axes[rng.below(static_cast<int64_t>(axes.size()))];
    const int64_t extent = visited_extents(sketch, *drawn.plan, candidate)[drawn.tiles->axis];
    draw_axis(sketch, *drawn.plan, *drawn.tiles, extent, candidate, rng);
    return true;
  }
  constexpr int kAttempts = 16;
  const std::vector<size_t> group = draw_group(sketch, rng);
  for (int attempt = 0; attempt < kAttempts && !group.empty(); ++attempt) {
    for (const size_t i : group) candidate.decisions[i] = draw_choice(sketch.decisions[i], rng);
    if (is_legal(space, candidate)) return true;
  }
  return false;
}

// The choice nearest to `wanted`.
int32_t nearest(const std::vector<int32_t>& choices, double wanted) {
  return *std::min_element(choices.begin(), choices.end(), [&](int32_t a, int32_t b) {
    return std::abs(a - wanted) < std::abs(b - wanted);
  });
}

// Moves a factor from one level of an axis to another (Ansor's tile-size mutation).
bool move_factor(const Space& space, Candidate& candidate, Rng& rng) {
  const Sketch& sketch = space[candidate.sketch];
  const std::vector<size_t> levels = draw_group(sketch, rng);
  if (levels.size() < 2) return false;
  const size_t from = static_cast<size_t>(rng.below(static_cast<int64_t>(levels.size())));
  const size_t to =
      (from + 1 + static_cast<size_t>(rng.below(static_cast<int64_t>(levels.size()) - 1))) %
      levels.size();
  int32_t& source = candidate.decisions[levels[from]];
  int32_t& target = candidate.decisions[levels[to]];
  const int32_t drawn = draw_choice(sketch.decisions[levels[from]], rng);
  target =
      nearest(sketch.decisions[levels[to]].choices, static_cast<double>(target) * source / drawn);
  source = drawn;
  return true;
}

// Steps one decision to a neighbouring choice.
bool step_one(const Space& space, Candidate& candidate, Rng& rng) {
  const Sketch& sketch = space[candidate.sketch];
  if (sketch.decisions.empty()) return false;
  const size_t i = static_cast<size_t>(rng.below(static_cast<int64_t>(sketch.decisions.size())));
  const std::vector<int32_t>& choices = sketch.decisions[i].drawn();
  auto at =
      std::lower_bound(choices.begin(), choices.end(), candidate.decisions[i]) - choices.begin();
  at += rng.below(2) == 0 ? -1 : 1;
  if (at < 0 || at >= static_cast<int64_t>(choices.size())) return false;
  candidate.decisions[i] = choices[at];
  return true;
}

// Redraws one decision that is no tile: order, location, chunk, unroll.
bool redraw_other(const Space& space, Candidate& candidate, Rng& rng) {
  const Sketch& sketch = space[candidate.sketch];
  std::vector<size_t> others;
  for (size_t i = 0; i < sketch.decisions.size(); ++i) {
    if (sketch.decisions[i].kind != DecisionKind::kTile) others.push_back(i);
  }
  if (others.empty()) return false;
  const size_t i = others[rng.below(static_cast<int64_t>(others.size()))];
  candidate.decisions[i] = draw_choice(sketch.decisions[i], rng);
  return true;
}

struct Mutation {
  const char* name;
  double weight;
  bool (*apply)(const Space& space, Candidate& candidate, Rng& rng);
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
  if (!drawn.apply(space, child, rng) || child == candidate) return std::nullopt;
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
  std::vector<int> side;  // one per tile group: 0 from a, 1 from b, -1 not drawn
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
