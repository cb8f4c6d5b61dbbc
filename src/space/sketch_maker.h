// SketchMaker is the base of the sketch makers for CPUs and GPUs. It adds the decisions and tiles
// that a stage's structure asks for.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "space/sketch_rule.h"

namespace pruner {

class SketchMaker {
 public:
  SketchMaker(const ComputeDag& dag, const Target& target, const Form& form, std::string name);
  virtual ~SketchMaker() = default;

 protected:
  const ComputeDag& dag() const { return sketch_.dag; }

  /// Adds a decision; kFixed when there is nothing to choose.
  DecisionRef add(DecisionKind kind,
                  std::string name,
                  std::vector<int32_t> choices,
                  int group = -1);

  /// Tiles `axis` of the plan's stage by the levels of its structure that split `axes`.
  void add_tiles(StagePlan& plan, Axes axes, int axis, bool vector = false);
  /// ... each spatial axis longer than 1, its vector axis among them.
  void add_spatial_tiles(StagePlan& plan);
  /// ... each reduce axis longer than 1.
  void add_reduce_tiles(StagePlan& plan);
  /// Adds the choices of unrolling, buffers and epilogue that the plan's structure has.
  void add_reduction_decisions(StagePlan& plan);
  /// Lets a fetch take as much at once as a thread can copy, in place of its last decision.
  void copy_widely(StagePlan& plan);
  /// Puts the stage into the loops of its root where the structure accumulates.
  void accumulate_in_root(StagePlan& plan) const;

  /// The sketch with the plan that `plan` gives of each compute stage, producers first.
  Sketch complete(const ComputeDag& task_dag, const std::function<StagePlan(StageId)>& plan);

  /// The contraction that warps compute by matrix instructions in the stage of a plan.
  virtual std::optional<MmaContraction> mma_of(const StagePlan& plan) const;
  /// The stages of attention that one kernel computes; nullopt for other sketches.
  virtual std::optional<AttentionKernel> attention() const { return std::nullopt; }

  const Target& target_;
  Sketch sketch_;

 private:
  Factor factor(const StagePlan& plan, const Level& level, const AxisTiles& tiles, int group);
  void link_to_roots();
  void find_followers(SketchTables& tables) const;

  int next_group_ = 0;
};

}  // namespace pruner
