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
  const StagePlan& plan_of(StageId id) const {
    return sketch_
        .plans[static_cast<size_t>(sketch_.tables->plan_of[static_cast<size_t>(id.value)])];
  }
  int32_t& decision(DecisionRef ref) { return candidate_.decisions[static_cast<size_t>(ref)]; }
  int32_t place(const StagePlan& plan) {
    return plan.location == kFixed ? 0 : decision(plan.location);
  }
  void set_place(const StagePlan& plan, int32_t to) {
    if (plan.location != kFixed) decision(plan.location) = to;
  }

  /// What a stage feeds is computed where it is or further inside.
  void fit_places() {
    for (const StagePlan& plan : std::views::reverse(sketch_.plans)) {
      for (const StageId reader :
           sketch_.tables->consumers[static_cast<size_t>(plan.stage.value)]) {
        const StagePlan* other = &plan_of(reader);
        if (other->role == StageRole::kRowPart) other = &plan_of(other->root);
        if (other->role == StageRole::kAttached)
          set_place(plan, std::min(place(plan), place(*other)));
      }
    }
  }

  /// Of each cluster, after the one whose tiles it is computed in.
  void fit_tiles() {
    for (const StagePlan& plan : std::views::reverse(sketch_.plans)) {
      if (plan.axes.empty()) continue;
      fit_registers(plan);
      const std::vector<int64_t> extents = visited_extents(sketch_, plan, candidate_);
      for (const AxisPlan& axis : plan.axes)
        fit_axis(plan, axis, extents[static_cast<size_t>(axis.axis)]);
    }
  }

  /// The largest register tile is made smaller until all are in registers.
  void fit_registers(const StagePlan& root) {
    for (const AxisPlan& axis : root.axes) {
      if (axis.registers != kFixed)
        decision(axis.registers) =
            nearest_choice(sketch_.decisions[static_cast<size_t>(axis.registers)],
                           std::max(wish(axis.registers), 1.0));
    }
    const auto anchor = std::ranges::find_if(sketch_.plans, [&](const StagePlan& other) {
      return other.role == StageRole::kAnchor && other.root == root.stage;
    });
    if (anchor == sketch_.plans.end()) return;
    while (!registers_fit(root, *anchor, candidate_, space_.target)) {
      DecisionRef largest = kFixed;
      for (const AxisPlan& axis : root.axes) {
        if (axis.registers == kFixed) continue;
        if (largest == kFixed || decision(axis.registers) > decision(largest))
          largest = axis.registers;
      }
      if (largest == kFixed ||
          !make_smaller(sketch_.decisions[static_cast<size_t>(largest)], decision(largest)))
        return;
    }
  }

  double wish(DecisionRef ref) const {
    return ref == kFixed || wanted_[static_cast<size_t>(ref)] < 0
               ? 1
               : wanted_[static_cast<size_t>(ref)];
  }
  std::vector<int32_t> choices(DecisionRef ref) const {
    return ref == kFixed ? std::vector<int32_t>{1}
                         : sketch_.decisions[static_cast<size_t>(ref)].choices;
  }

  /// The three tiles that fit the axis with the least |ln| of what each level holds to what is
  /// wanted of it.
  void fit_axis(const StagePlan& plan, const AxisPlan& axis, int64_t extent) {
    const double in_registers = std::max(wish(axis.registers), 1e-3);
    const double in_inner = in_registers * wish(axis.inner);
    const double in_middle = in_inner * wish(axis.middle);
    const int32_t most = axis.registers == kFixed ? 1 : decision(axis.registers);
    const auto apart = [](double a, double b) { return std::abs(std::log(a / b)); };
    const auto set = [&](DecisionRef ref, int32_t value) {
      if (ref != kFixed) decision(ref) = value;
    };
    double nearest = std::numeric_limits<double>::infinity();
    std::array<int32_t, 3> best = {1, 1, 1};
    for (const int32_t r : choices(axis.registers)) {
      if (r > most) break;
      for (const int32_t i : choices(axis.inner)) {
        for (const int32_t m : choices(axis.middle)) {
          const double held = static_cast<double>(r) * i;
          const double distance =
              apart(r, in_registers) + apart(held, in_inner) + apart(held * m, in_middle);
          if (distance >= nearest) continue;
          set(axis.registers, r);
          set(axis.inner, i);
          set(axis.middle, m);
          if (!tiles_fit(axis, plan, extent, candidate_)) continue;
          nearest = distance;
          best = {r, i, m};
        }
      }
    }
    set(axis.registers, best[0]);
    set(axis.inner, best[1]);
    set(axis.middle, best[2]);
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
