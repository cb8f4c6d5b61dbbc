#include "space/nearest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <ranges>

#include "space/draw_axis.h"
#include "space/gpu/space.h"

namespace pruner {

bool is_size(const Decision& decision) {
  return decision.kind == DecisionKind::kTile || decision.kind == DecisionKind::kChunk ||
         decision.kind == DecisionKind::kUnroll || decision.kind == DecisionKind::kThreads ||
         decision.kind == DecisionKind::kVector;
}

double choice_distance(const Decision& decision, double value, double choice) {
  if (is_size(decision) && choice > 0 && value > 0) return std::abs(std::log(choice / value));
  return std::abs(choice - value);
}

int32_t nearest_choice(const Decision& decision, double value) {
  return *std::ranges::min_element(decision.choices, {}, [&](int32_t choice) {
    return choice_distance(decision, value, choice);
  });
}

namespace {

/// The next smaller choice; false: there is none.
bool make_smaller(const Decision& decision, int32_t& value) {
  const auto at = std::ranges::find(decision.choices, value);
  if (!is_size(decision) || at == decision.choices.begin() || at == decision.choices.end())
    return false;
  value = *(at - 1);
  return true;
}

class NearestOnCpu {
 public:
  NearestOnCpu(const Space& space, SketchId id, std::span<const double> wanted)
      : space_(space), sketch_(space[id]), wanted_(wanted), candidate_{id, {}} {
    for (size_t i = 0; i < sketch_.decisions.size(); ++i) {
      const Decision& decision = sketch_.decisions[i];
      candidate_.decisions.push_back(wanted[i] < 0 ? decision.choices.front()
                                                   : nearest_choice(decision, wanted[i]));
    }
  }

  std::optional<Candidate> find() {
    fit_places();
    fit_tiles();
    if (is_legal(space_, candidate_)) return candidate_;
    Candidate smaller = candidate_;
    std::string why;
    for (const StagePlan& plan : sketch_.plans) set_place(plan, 0);
    fit_tiles();
    if (is_legal(space_, candidate_)) return candidate_;
    if (shrink_until_legal(space_, smaller, why)) return smaller;
    if (shrink_until_legal(space_, candidate_, why)) return candidate_;
    return std::nullopt;
  }

 private:
  int32_t& decision(DecisionRef ref) { return candidate_.decisions[ref]; }
  int32_t place(const StagePlan& plan) {
    return plan.location == kFixed ? 0 : decision(plan.location);
  }
  void set_place(const StagePlan& plan, int32_t to) {
    if (plan.location != kFixed) decision(plan.location) = to;
  }

  /// Moves each stage out to where its followers (SketchTables) are at its place or further inside.
  void fit_places() {
    for (const StagePlan& plan : std::views::reverse(sketch_.plans)) {
      for (const StageId follower : sketch_.tables->followers[plan.stage])
        set_place(plan, std::min(place(plan), place(sketch_.plan(follower))));
    }
  }

  /// Fits the tiles of each cluster, after the tiles of the cluster in whose loops it is computed.
  void fit_tiles() {
    for (const StagePlan& plan : std::views::reverse(sketch_.plans)) {
      if (!plan.overlapped() || plan.tiles.empty()) continue;
      fit_registers(plan);
      const std::vector<int64_t> extents = visited_extents(sketch_, plan, candidate_);
      for (const AxisTiles& tiles : plan.tiles) fit_axis(plan, tiles, extents[tiles.axis]);
    }
  }

  /// The largest register tile is made smaller until all are in registers.
  void fit_registers(const StagePlan& root) {
    std::vector<DecisionRef> registers;
    for (const AxisTiles& tiles : root.tiles) {
      const DecisionRef ref = tiles.decision(root.structure->registers());
      if (ref == kFixed) continue;
      registers.push_back(ref);
      decision(ref) = nearest_choice(sketch_.decisions[ref], std::max(wish(ref), 1.0));
    }
    const StagePlan* const anchor = anchor_of(sketch_, root);
    if (anchor == nullptr || registers.empty()) return;
    while (!registers_fit(root, *anchor, candidate_, space_.target)) {
      const DecisionRef largest =
          *std::ranges::max_element(registers, {}, [&](DecisionRef ref) { return decision(ref); });
      if (!make_smaller(sketch_.decisions[largest], decision(largest))) return;
    }
  }

  double wish(DecisionRef ref) const {
    return ref == kFixed || wanted_[ref] < 0 ? 1 : wanted_[ref];
  }
  std::vector<int32_t> choices(DecisionRef ref) const {
    return ref == kFixed ? std::vector<int32_t>{1} : sketch_.decisions[ref].choices;
  }

  /// Chooses the tiles that fit the axis with the least sum of |ln(held / wanted)| over the levels.
  /// The register tile becomes no larger than its present size.
  void fit_axis(const StagePlan& plan, const AxisTiles& tiles, int64_t extent) {
    const int innermost = plan.structure->registers();
    const DecisionRef registers = tiles.decision(innermost);
    Fit fit{plan, tiles, extent, registers == kFixed ? 1 : decision(registers), {}, {}};
    fit.best.fill(1);
    try_level(fit, innermost, 1, 1, 0);
    for (int l = innermost; l > 0; --l) set(tiles.decision(l), fit.best[l]);
  }

  struct Fit {
    const StagePlan& plan;
    const AxisTiles& tiles;
    int64_t extent;
    int32_t most;  // largest register tile
    std::array<int32_t, kMostLevels> tried, best;
    double nearest = std::numeric_limits<double>::infinity();
  };

  /// Tries the factors of a level and of those around it, which hold `held` and are to hold
  /// `wished` inside; the distance of those inside is known.
  void try_level(Fit& fit, int level, double held, double wished, double inside) {
    if (level == 0) {
      if (inside >= fit.nearest || !tiles_fit(fit.tiles, fit.plan, fit.extent, candidate_)) return;
      fit.nearest = inside;
      fit.best = fit.tried;
      return;
    }
    const bool registers = level == fit.plan.structure->registers();
    const DecisionRef ref = fit.tiles.decision(level);
    const double wish_here = registers ? std::max(wish(ref), 1e-3) : wished * wish(ref);
    for (const int32_t choice : choices(ref)) {
      if (registers && choice > fit.most) break;
      fit.tried[level] = choice;
      set(ref, choice);
      const double now = held * choice;
      const double apart = fit.plan.structure->levels[level].axes == Axes::kSpace
                               ? std::abs(std::log(now / wish_here))
                               : 0;
      try_level(fit, level - 1, now, wish_here, inside + apart);
    }
  }
  void set(DecisionRef ref, int32_t value) {
    if (ref != kFixed) decision(ref) = value;
  }

  const Space& space_;
  const Sketch& sketch_;
  const std::span<const double> wanted_;
  Candidate candidate_;
};

}  // namespace

bool shrink_until_legal(const Space& space, Candidate& candidate, std::string& why) {
  const std::vector<Decision>& decisions = space[candidate.sketch].decisions;
  for (bool smaller = true; smaller;) {
    if (is_legal(space, candidate, &why)) return true;
    smaller = false;
    int done = -1;  // the axis whose tiles were made smaller
    for (size_t i = 0; i < decisions.size(); ++i) {
      if (decisions[i].group >= 0 && decisions[i].group == done) continue;
      if (!make_smaller(decisions[i], candidate.decisions[i])) continue;
      smaller = true;
      done = decisions[i].group;
      if (is_legal(space, candidate, &why)) return true;
    }
  }
  return false;
}

std::optional<Candidate> nearest_legal(const Space& space,
                                       SketchId sketch,
                                       std::span<const double> wanted) {
  if (!space.target.is_gpu()) return NearestOnCpu(space, sketch, wanted).find();
  Candidate candidate = nearest_on_gpu(space[sketch], sketch, space.target.gpu, wanted);
  std::string why;
  if (shrink_until_legal(space, candidate, why)) return candidate;
  return std::nullopt;
}

}  // namespace pruner
