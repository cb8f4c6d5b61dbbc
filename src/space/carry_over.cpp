#include "space/carry_over.h"

#include <algorithm>

#include "space/factors.h"
#include "space/nearest.h"

namespace pruner {
namespace {

/// A decision's value that changes nothing of the loops of an axis without it.
int32_t neutral(DecisionKind kind) {
  const bool factor = kind == DecisionKind::kTile || kind == DecisionKind::kBuffers;
  return factor ? 1 : 0;
}

const Decision* find(const Sketch& sketch, const std::string& name) {
  const auto at = std::ranges::find(sketch.decisions, name, &Decision::name);
  return at == sketch.decisions.end() ? nullptr : &*at;
}

}  // namespace

std::optional<Candidate> carry_over(const Space& from, const Candidate& candidate, Space& to) {
  const Sketch& source = from[candidate.sketch];
  const auto target = std::ranges::find(to.sketches, source.name, &Sketch::name);
  if (target == to.sketches.end()) return std::nullopt;
  for (size_t d = 0; d < source.decisions.size(); ++d) {
    const Decision& decision = source.decisions[d];
    const bool kept = find(*target, decision.name) != nullptr;
    if (!kept && candidate.decisions[d] != neutral(decision.kind)) return std::nullopt;
  }
  Candidate carried{SketchId{static_cast<int32_t>(target - to.sketches.begin())}, {}};
  for (Decision& decision : target->decisions) {
    const Decision* known = find(source, decision.name);
    const int32_t value =
        known == nullptr
            ? neutral(decision.kind)
            : candidate.decisions[static_cast<size_t>(known - source.decisions.data())];
    const auto place = std::ranges::lower_bound(decision.choices, value);
    if (place == decision.choices.end() || *place != value) {
      if (decision.worth_drawing.empty()) decision.worth_drawing = decision.choices;
      decision.choices.insert(place, value);
    }
    carried.decisions.push_back(value);
  }
  to.any_waste = true;
  if (!is_legal(to, carried)) return std::nullopt;
  return carried;
}

Candidate with_tiles_within(const Space& space, Candidate candidate, const Space& least) {
  const Sketch& sketch = space[candidate.sketch];
  const auto other = std::ranges::find(least.sketches, sketch.name, &Sketch::name);
  const bool known = other != least.sketches.end() && other->dag.size() == sketch.dag.size();
  for (const StagePlan& plan : sketch.plans) {
    for (const AxisTiles& tiles : plan.tiles) {
      if (tiles.axis < 0 || !iterator_of(sketch.dag[plan.stage], tiles.axis).open) continue;
      const int64_t most =
          known ? iterator_of(other->dag[plan.stage], tiles.axis).extent : int64_t{1};
      for (int level = 0; level < kMostLevels; ++level) {
        const DecisionRef decision = tiles.decision(level);
        if (decision == kFixed) continue;
        int32_t& factor = candidate.decisions[static_cast<size_t>(decision)];
        while (factor > 1 && Factors(candidate).inside(tiles, 0) > most) factor /= 2;
      }
    }
  }
  return candidate;
}

std::optional<Candidate> nearest_like(const Space& from,
                                      const Candidate& candidate,
                                      const Space& to) {
  const Sketch& source = from[candidate.sketch];
  const auto target = std::ranges::find(to.sketches, source.name, &Sketch::name);
  if (target == to.sketches.end()) return std::nullopt;
  std::vector<double> wanted;
  for (const Decision& decision : target->decisions) {
    const Decision* known = find(source, decision.name);
    wanted.push_back(
        known == nullptr
            ? kNoWish
            : candidate.decisions[static_cast<size_t>(known - source.decisions.data())]);
  }
  return nearest_legal(to, SketchId{static_cast<int32_t>(target - to.sketches.begin())}, wanted);
}

}  // namespace pruner
