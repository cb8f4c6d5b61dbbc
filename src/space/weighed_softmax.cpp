#include "space/weighed_softmax.h"

#include <algorithm>

#include "space/access.h"

namespace pruner {
namespace {

// Returns the stage that a reduction over one axis folds unchanged: its body is one load, whose
// last index is the reduce axis. Invalid if there is no such stage.
StageId folded(const Stage& stage, Combiner combiner) {
  const Load* read = as<Load>(stage.body);
  if (stage.combiner != combiner || stage.reduce_axes.size() != 1 || read == nullptr) return {};
  const size_t rank = stage.axes.size();
  for (size_t d = 0; d < read->indices.size(); ++d) {
    const Var* var = as<Var>(read->indices[d]);
    if (var == nullptr || var->id.value != static_cast<int32_t>(d)) return {};
  }
  return read->indices.size() == rank + 1 ? read->tensor : StageId{};
}

// Whether the stage is exp(scores - largest).
bool is_exp_of(const Stage& stage, StageId scores, StageId largest) {
  const Call* exp = as<Call>(stage.body);
  const Binary* below =
      exp != nullptr && exp->function == Intrinsic::kExp ? as<Binary>(exp->args[0]) : nullptr;
  if (below == nullptr || below->op != BinaryOp::kSub || stage.is_reduction()) return false;
  const Load *a = as<Load>(below->a), *b = as<Load>(below->b);
  return a != nullptr && b != nullptr && a->tensor == scores && b->tensor == largest;
}

// Whether each read of `exps` by the stage is of the place that its one reduce axis is at.
bool reduces_last_axis(const Stage& stage, StageId exps) {
  if (stage.combiner != Combiner::kSum || stage.reduce_axes.size() != 1) return false;
  bool last = true;
  visit(stage.body, [&](const Expr& e) {
    const Load* read = as<Load>(e);
    if (read == nullptr || read->tensor != exps) return;
    const Var* var = as<Var>(read->indices.back());
    last = last && var != nullptr && var->id.value == static_cast<int32_t>(stage.axes.size());
  });
  return last;
}

}  // namespace

std::optional<WeighedSoftmax> softmax_of(const ComputeDag& dag, StageId largest) {
  const StageId scores = folded(dag[largest], Combiner::kMax);
  if (!scores.valid() || dag[scores].is_placeholder() || dag[scores].is_reduction()) return {};
  const std::vector<StageId> readers = dag.consumers(largest);
  if (readers.size() != 1 || !is_exp_of(dag[readers[0]], scores, largest)) return {};
  const StageId exps = readers[0];
  const std::vector<StageId> of_exps = dag.consumers(exps);
  if (of_exps.size() != 2 || dag.consumers(scores).size() != 2) return {};
  if (!reads_elementwise(dag, exps, scores) || folded(dag[of_exps[0]], Combiner::kSum) != exps)
    return {};
  const StageId weighed = of_exps[1];
  if (!needs_multi_level_tiling(dag, weighed) || !reduces_last_axis(dag[weighed], exps)) return {};
  const std::vector<StageId> of_sum = dag.consumers(of_exps[0]);
  if (std::ranges::any_of(of_sum, [&](StageId id) { return id < weighed; })) return {};
  for (const StageId id : {scores, largest, exps, of_exps[0], weighed})
    if (dag[id].output) return {};
  return WeighedSoftmax{scores, largest, exps, of_exps[0], weighed};
}

}  // namespace pruner
