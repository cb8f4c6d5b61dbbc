#include "space/carry_over.h"

#include <algorithm>

#include "space/factors.h"
#include "space/nearest.h"
#include "support/check.h"

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

std::vector<OpenTile> open_tiles(const Sketch& sketch, const Candidate& candidate) {
  std::vector<OpenTile> open;
  const Factors factors(candidate);
  for (const StagePlan& plan : sketch.plans) {
    const Stage& stage = sketch.dag[plan.stage];
    if (plan.at.valid() || factors.value(plan.location, 0) > 0) continue;
    for (const AxisTiles& tiles : plan.tiles) {
      if (tiles.axis < 0 || tiles.ends != AxisTiles::Ends::kOverlap) continue;
      if (!iterator_of(stage, tiles.axis).open) continue;
      const int registers = plan.structure->registers();
      OpenTile tile{plan.stage, tiles.axis, factors.inside(tiles, registers)};
      if (!tiles.vector) tile.rows = tiles.decision(registers);
      for (int level = 0; level < registers; ++level) {
        if (tiles.decision(level) == kFixed || factors.at(tiles, level) == 1) continue;
        tile.decisions.push_back(tiles.decision(level));
        tile.factors.push_back(factors.at(tiles, level));
      }
      tile.whole = factors.inside(tiles, 0) >= iterator_of(stage, tiles.axis).extent;
      open.push_back(std::move(tile));
    }
  }
  return open;
}

std::optional<Candidate> carry_over(const Space& from,
                                    const Candidate& candidate,
                                    const Space& to) {
  CHECK(to.any_tiles);
  const Sketch& source = from[candidate.sketch];
  const auto target = std::ranges::find(to.sketches, source.name, &Sketch::name);
  if (target == to.sketches.end()) return std::nullopt;
  for (size_t d = 0; d < source.decisions.size(); ++d) {
    const Decision& decision = source.decisions[d];
    const bool kept = find(*target, decision.name) != nullptr;
    if (!kept && candidate.decisions[d] != neutral(decision.kind)) return std::nullopt;
  }
  Candidate carried{SketchId{static_cast<int32_t>(target - to.sketches.begin())}, {}};
  for (const Decision& decision : target->decisions) {
    const Decision* known = find(source, decision.name);
    carried.decisions.push_back(
        known == nullptr
            ? neutral(decision.kind)
            : candidate.decisions[static_cast<size_t>(known - source.decisions.data())]);
  }
  if (target->dag.size() != source.dag.size()) return std::nullopt;
  for (const OpenTile& tile : open_tiles(source, candidate)) {
    const int64_t extent = iterator_of(target->dag[tile.stage], tile.axis).extent;
    const std::vector<int64_t> iterations = even_iterations(tile, extent);
    for (size_t l = 0; l < iterations.size(); ++l) {
      const std::string& name = source.decisions[static_cast<size_t>(tile.decisions[l])].name;
      const Decision* decision = find(*target, name);
      if (decision == nullptr) return std::nullopt;
      carried.decisions[static_cast<size_t>(decision - target->decisions.data())] =
          static_cast<int32_t>(iterations[l]);
    }
  }
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
