// Reads from the loops of a replayed record what they want of the decisions of one of our sketches.
// A GPU's record wants SSSRRSRS tiles, threads, fetches. A CPU's record wants SSRSRS tiles,
// parallel loops, places where stages are computed. What the sketch has no word for is listed.
#pragma once

#include <string>
#include <vector>

#include "ansor/state.h"
#include "space/nearest.h"

namespace pruner::ansor {

/// The stages and axes of a record that stand for those of a sketch.
struct PointMatch {
  SketchId sketch;
  std::vector<int> stages;   // stage of the state for each plan; -1: none
  bool same_stages = false;  // whether each computed stage of the state has a plan
  /// `axes` lists the state's iterators for each iterator of a contraction of the sketch, outermost
  /// first. If `axes` is empty, each iterator stands for itself.
  std::vector<std::vector<int>> axes = {};
};

struct WantedPoint {
  std::vector<double> values;        // one per decision, or kNoWish (nearest.h)
  std::vector<std::string> reasons;  // why no candidate of the sketch is the record's program
  int structural = 0;                // number of reasons that are other loops, not another number
};

WantedPoint wanted_on_gpu(const Space& space, const PointMatch& match, const State& state);
WantedPoint wanted_on_cpu(const Space& space, const PointMatch& match, const State& state);

// Helpers that both functions use.

/// SplitPart is a part that splits left of an iterator. Parts are listed outermost first; the first
/// part is the rest, and its factor is 0.
struct SplitPart {
  int iter;
  int64_t factor;
};
/// The parts of an axis that was split once or again from inside; others are no tiles of ours.
std::vector<SplitPart> parts_of(const StateStage& stage, int axis);
inline Annotation annotation_of(const StateStage& stage, int iter) {
  return stage.iters[iter].annotation;
}
/// Steps of the largest auto-unroll pragma; 0: there is none.
int64_t unroll_of(const StateStage& stage);

/// Looks up what a match says, and collects wishes.
class PointReader {
 public:
  PointReader(const Space& space, const PointMatch& match, const State& state)
      : match_(match),
        sketch_(space[match.sketch]),
        state_(state),
        wanted_{std::vector<double>(sketch_.decisions.size(), kNoWish), {}, 0} {}

 protected:
  size_t plan_index(StageId id) const { return static_cast<size_t>(sketch_.tables->plan_of[id]); }
  const StagePlan& plan_of(StageId id) const { return sketch_.plans[plan_index(id)]; }
  /// Returns the number of the state's stage; -1 if the state has no such stage.
  int number(StageId id) const { return match_.stages[plan_index(id)]; }
  const StateStage& stage(int number) const { return state_.stages[number]; }

  /// The state's iterators for one of a contraction, or of what reads it element by element.
  std::vector<int> iterators(int axis) const {
    return match_.axes.empty() ? std::vector<int>{axis} : match_.axes[axis];
  }
  /// The factors of an iterator's parts, of several multiplied; that of the outermost is 0. Empty:
  /// their parts are of different number.
  std::vector<int64_t> factors(const StateStage& stage, int axis) const;

  /// Other loops than the sketch's.
  void differs(std::string reason) {
    wanted_.reasons.push_back(std::move(reason));
    ++wanted_.structural;
  }
  /// Wants a value; `fixed`: what it is where there is no decision.
  void want(DecisionRef ref, double value, const std::string& what, double fixed = 1);

  const PointMatch& match_;
  const Sketch& sketch_;
  const State& state_;
  WantedPoint wanted_;
};

}  // namespace pruner::ansor
