#include "ansor/state.h"

#include <algorithm>
#include <charconv>

#include "support/match.h"

namespace pruner::ansor {
namespace {

constexpr int64_t kMaxFactor = int64_t{1} << 31;  // limit of a split's lengths and of their product
constexpr int64_t kMaxLoop = int64_t{1} << 48;    // limit of a fused loop's iterations
// Each step nests an iterator's index deeper. These bounds refuse lists that no tuner wrote.
constexpr size_t kMaxSteps = 4096, kMaxStages = 256, kMaxLoops = 256, kMaxIterators = 2048;
constexpr std::string_view kAutoUnroll = "auto_unroll_max_step$";

// A stage at root whose loops are its axes, in their order.
StateStage fresh_stage(const std::vector<int64_t>& axes, const std::vector<int64_t>& reduce_axes) {
  StateStage stage;
  stage.num_axes = static_cast<int>(axes.size());
  for (const int64_t extent : axes) stage.iters.push_back({extent, false});
  for (const int64_t extent : reduce_axes) stage.iters.push_back({extent, true});
  stage.num_roots = static_cast<int>(stage.iters.size());
  for (int i = 0; i < stage.num_roots; ++i) stage.leaves.push_back(i);
  return stage;
}

std::vector<int64_t> extents_of(const StateStage& stage, int from, int to) {
  std::vector<int64_t> extents;
  for (int i = from; i < to; ++i) extents.push_back(stage.iters[i].extent);
  return extents;
}

Result<StorageScope> scope_of(const std::string& name) {
  if (name == "shared") return StorageScope::kShared;
  if (name == "local") return StorageScope::kLocal;
  if (name == "warp") return StorageScope::kWarp;
  if (name == "global") return StorageScope::kGlobal;
  return Error("unknown scope \"", name, "\"");
}

// Applies steps one by one.
class Applier {
 public:
  Applier(const ComputeDag& dag, std::span<const Step> steps) : steps_(steps) {
    for (const Stage& stage : dag.stages) {
      std::vector<int64_t> reduce;
      for (const Iterator& axis : stage.reduce_axes) reduce.push_back(axis.extent);
      state_.stages.push_back(fresh_stage(stage.shape(), reduce));
      state_.stages.back().placeholder = stage.is_placeholder();
    }
  }

  Result<State> run() {
    if (steps_.size() > kMaxSteps) return Error("over ", kMaxSteps, " steps");
    for (size_t i = 0; i < steps_.size(); ++i) {
      number_ = static_cast<int>(i);
      const Result<Unit> applied = match(steps_[i], [&](const auto& step) { return apply(step); });
      if (!applied.ok()) {
        return Error("step ", i, ", ", code_of(steps_[i]), ": ", applied.error().message());
      }
      if (state_.stages.size() > kMaxStages) return Error("over ", kMaxStages, " stages");
    }
    return std::move(state_);
  }

 private:
  StateStage& at(int stage) { return state_.stages[stage]; }

  // A compute stage by number.
  Result<StateStage*> compute_stage(int stage) {
    const int size = static_cast<int>(state_.stages.size());
    if (stage < 0 || stage >= size) return Error("stage ", stage, " of ", size);
    if (at(stage).placeholder) return Error("stage ", stage, " is an input");
    return &at(stage);
  }

  static Result<Unit> check_leaf(const StateStage& stage, int iter) {
    const int size = static_cast<int>(stage.leaves.size());
    if (iter < 0 || iter >= size) return Error("iterator ", iter, " of ", size);
    return Unit{};
  }

  static StateIterator& leaf(StateStage& stage, int iter) {
    return stage.iters[stage.leaves[iter]];
  }

  Result<Unit> apply(const AnnotationStep& s) {
    TRY_ASSIGN(StateStage * stage, compute_stage(s.stage));
    TRY(check_leaf(*stage, s.iter));
    StateIterator& iter = leaf(*stage, s.iter);
    if (iter.annotation != Annotation::kNone) {
      return Error("iterator ", s.iter, " has an annotation already");
    }
    iter.annotation = s.annotation;
    return Unit{};
  }

  // FU: pairs from outside in, so that a, b, c become ((a, b), c). A fused iterator counts as
  // reduced if one of its parts is.
  Result<Unit> apply(const FuseStep& s) {
    TRY_ASSIGN(StateStage * stage, compute_stage(s.stage));
    if (s.iters.empty()) return Error("no iterator to fuse");
    for (size_t i = 0; i < s.iters.size(); ++i) {
      TRY(check_leaf(*stage, s.iters[i]));
      if (s.iters[i] != s.iters[0] + static_cast<int>(i)) return Error("iterators with a gap");
    }
    const auto first = stage->leaves.begin() + s.iters[0];
    int fused = *first;
    for (size_t i = 1; i < s.iters.size(); ++i) {
      const int inner = *(first + static_cast<std::ptrdiff_t>(i));
      const auto &a = stage->iters[fused], &b = stage->iters[inner];
      stage->relations.push_back({true, static_cast<int>(stage->iters.size()), fused, inner});
      const bool reduce = a.reduce || b.reduce;
      stage->iters.push_back({0, reduce});
      fused = stage->relations.back().parent;
    }
    *first = fused;
    stage->leaves.erase(first + 1, first + static_cast<std::ptrdiff_t>(s.iters.size()));
    return Unit{};
  }

  Result<Unit> apply(const PragmaStep& s) {
    TRY_ASSIGN(StateStage * stage, compute_stage(s.stage));
    TRY(check_leaf(*stage, s.iter));
    if (!s.pragma.starts_with(kAutoUnroll)) {
      leaf(*stage, s.iter).pragmas.push_back(s.pragma);
      return Unit{};
    }
    const std::string_view number = std::string_view(s.pragma).substr(kAutoUnroll.size());
    int64_t steps = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), steps);
    if (error != std::errc() || end != number.data() + number.size() || steps < 0) {
      return Error("\"", s.pragma, "\" has no number");
    }
    leaf(*stage, s.iter).auto_unroll = steps;
    return Unit{};
  }

  Result<Unit> apply(const ReorderStep& s) {
    TRY_ASSIGN(StateStage * stage, compute_stage(s.stage));
    if (s.order.size() != stage->leaves.size()) {
      return Error(s.order.size(), " iterators in the order, the stage has ", stage->leaves.size());
    }
    std::vector<int> order, seen(s.order.size(), 0);
    for (const int iter : s.order) {
      TRY(check_leaf(*stage, iter));
      if (seen[iter]++) return Error("iterator ", iter, " twice");
      order.push_back(stage->leaves[iter]);
    }
    stage->leaves = std::move(order);
    return Unit{};
  }

  // SP: TVM passes over the step's extent. Of an axis that is still whole at root it must be the
  // DAG's: another one means that the record is of another DAG.
  Result<Unit> apply(const SplitStep& s) {
    TRY_ASSIGN(StateStage * stage, compute_stage(s.stage));
    TRY(check_leaf(*stage, s.iter));
    const int axis = stage->leaves[s.iter];
    const bool whole = axis < stage->num_roots && stage->compute_at == ComputeAt::kRoot;
    const int64_t extent = leaf(*stage, s.iter).extent;
    if (whole && s.extent > 0 && s.extent != extent) {
      return Error("an extent of ", s.extent, " where the DAG has ", extent);
    }
    return split(s.stage, s.iter, s.lengths, s.inner_to_outer);
  }

  // FSP: lengths a, b, c, d of the source with n_split 3 are a, b, c * d; with 1, a * b * c * d.
  Result<Unit> apply(const FollowSplitStep& s) {
    TRY_ASSIGN(const SplitStep* source, split_step(s.source));
    const auto& lengths = source->lengths;
    if (s.n_split < 1 || s.n_split > static_cast<int>(lengths.size()) + 1) {
      return Error(s.n_split, " loops from a split of ", lengths.size());
    }
    const auto kept = static_cast<size_t>(s.n_split) - 1;
    std::vector<int64_t> followed(lengths.begin(),
                                  lengths.begin() + static_cast<std::ptrdiff_t>(kept));
    int64_t rest = 1;
    for (size_t i = kept; i < lengths.size(); ++i) rest *= lengths[i];
    followed.push_back(rest);
    return split(s.stage, s.iter, followed, true);
  }

  // FFSP: one length, that of all sources' lengths at `level` multiplied: the threads of a block in
  // a cooperative fetch.
  Result<Unit> apply(const FollowFusedSplitStep& s) {
    int64_t length = 1;
    for (const int number : s.sources) {
      TRY_ASSIGN(const SplitStep* source, split_step(number));
      if (s.level < 0 || s.level >= static_cast<int>(source->lengths.size())) {
        return Error("level ", s.level, " of a split of ", source->lengths.size());
      }
      length *= source->lengths[s.level];
      if (length > kMaxFactor) return Error("factors too large");
    }
    return split(s.stage, s.iter, {length}, s.factor);
  }

  Result<const SplitStep*> split_step(int number) const {
    const bool before = number >= 0 && number < number_;
    const auto* step = before ? std::get_if<SplitStep>(&steps_[number]) : nullptr;
    if (!step) return Error("step ", number, " is no earlier split");
    return step;
  }

  // n lengths make n splits in two. With inner_to_outer each takes an inner part off what is left,
  // the last length first; else an outer part, the first length first.
  Result<Unit> split(int id, int iter, const std::vector<int64_t>& lengths, bool inner_to_outer) {
    TRY_ASSIGN(StateStage * stage, compute_stage(id));
    TRY(check_leaf(*stage, iter));
    if (lengths.empty()) return Error("no lengths");
    if (stage->leaves.size() + lengths.size() > kMaxLoops ||
        stage->iters.size() + 2 * lengths.size() > kMaxIterators) {
      return Error("a stage of over ", kMaxLoops, " loops");
    }
    int64_t product = 1;
    for (const int64_t length : lengths) {
      if (length < 1) return Error("a factor of ", length);
      if (length > kMaxFactor || (product *= length) > kMaxFactor)
        return Error("factors too large");
    }
    const auto place = stage->leaves.begin() + iter;
    int parent = *place;
    std::vector<int> made;  // outer to inner, but for what is left
    // Splits `parent`; gives the part of length `factor`, and `parent` becomes the other.
    const auto part = [&](int64_t factor) {
      const int outer = static_cast<int>(stage->iters.size());
      stage->relations.push_back({false, parent, outer, outer + 1, factor, !inner_to_outer});
      const bool reduce = stage->iters[parent].reduce;
      stage->iters.insert(stage->iters.end(), 2, StateIterator{0, reduce});
      parent = inner_to_outer ? outer : outer + 1;
      return inner_to_outer ? outer + 1 : outer;
    };
    if (inner_to_outer) {
      for (auto it = lengths.rbegin(); it != lengths.rend(); ++it) made.push_back(part(*it));
      made.push_back(parent);
      std::ranges::reverse(made);
    } else {
      for (const int64_t length : lengths) made.push_back(part(length));
      made.push_back(parent);
    }
    *place = made[0];
    stage->leaves.insert(place + 1, made.begin() + 1, made.end());
    return Unit{};
  }

  Result<Unit> apply(const StorageAlignStep& s) {
    TRY_ASSIGN(StateStage * stage, compute_stage(s.stage));
    TRY(check_leaf(*stage, s.iter));
    stage->align_iter = stage->leaves[s.iter];
    stage->align_factor = s.factor;
    stage->align_offset = s.offset;
    return Unit{};
  }

  // CA: the target is kept as an iterator, not as a place, so that a later RE does not move it.
  Result<Unit> apply(const ComputeAtStep& s) {
    TRY_ASSIGN(StateStage * stage, compute_stage(s.stage));
    TRY_ASSIGN(StateStage * target, compute_stage(s.target_stage));
    TRY(check_leaf(*target, s.target_iter));
    if (s.target_stage <= s.stage) return Error("stage ", s.target_stage, " does not come later");
    stage->compute_at = ComputeAt::kIterator;
    stage->at_stage = s.target_stage;
    stage->at_iter = target->leaves[s.target_iter];
    return Unit{};
  }

  Result<Unit> apply(const ComputeInlineStep& s) {
    TRY_ASSIGN(StateStage * stage, compute_stage(s.stage));
    if (stage->num_roots != stage->num_axes) return Error("a reduction can't be inlined");
    stage->compute_at = ComputeAt::kInlined;
    return Unit{};
  }

  Result<Unit> apply(const ComputeRootStep& s) {
    TRY_ASSIGN(StateStage * stage, compute_stage(s.stage));
    stage->compute_at = ComputeAt::kRoot;
    return Unit{};
  }

  // CHR: the copy stands after its source, at stage + 1. Who reads it is the DAG's matter
  // (structure.cpp).
  Result<Unit> apply(const CacheReadStep& s) {
    const int size = static_cast<int>(state_.stages.size());
    if (s.stage < 0 || s.stage >= size) return Error("stage ", s.stage, " of ", size);
    for (const int reader : s.readers) {
      TRY(compute_stage(reader));
      if (reader <= s.stage) return Error("reader ", reader, " does not come later");
    }
    TRY_ASSIGN(const StorageScope scope, scope_of(s.scope));
    StateStage copy = fresh_stage(extents_of(at(s.stage), 0, at(s.stage).num_axes), {});
    copy.scope = scope;
    copy.scope_name = s.scope;
    state_.edits.push_back({StageEdit::Kind::kCacheRead, s.stage, s.scope, s.readers});
    insert(s.stage + 1, std::move(copy));
    return Unit{};
  }

  // CHW: the cache takes the stage's number, its computation and its reduce axes; the stage moves
  // to stage + 1 and becomes a copy of it.
  Result<Unit> apply(const CacheWriteStep& s) {
    TRY_ASSIGN(StateStage * stage, compute_stage(s.stage));
    if (!stage->relations.empty()) return Error("the stage has been split or fused before");
    TRY_ASSIGN(const StorageScope scope, scope_of(s.scope));
    const std::vector<int64_t> axes = extents_of(*stage, 0, stage->num_axes);
    StateStage cache = fresh_stage(axes, extents_of(*stage, stage->num_axes, stage->num_roots));
    cache.scope = scope;
    cache.scope_name = s.scope;
    *stage = fresh_stage(axes, {});
    state_.edits.push_back({StageEdit::Kind::kCacheWrite, s.stage, s.scope, {}});
    insert(s.stage, std::move(cache));
    return Unit{};
  }

  // RF: the new stage takes the stage's number. Its spatial axes have the factored iterator at
  // factor_axis and it reduces what else was reduced; the stage, at stage + 1, reduces that axis.
  Result<Unit> apply(const RfactorStep& s) {
    TRY_ASSIGN(StateStage * stage, compute_stage(s.stage));
    TRY(check_leaf(*stage, s.iter));
    StageEdit edit{StageEdit::Kind::kRfactor, s.stage, "", {}};
    edit.relations = stage->relations;
    edit.factor_iter = stage->leaves[s.iter];
    edit.factor_axis = s.factor_iter < 0 ? stage->num_axes + 1 + s.factor_iter : s.factor_iter;
    if (!leaf(*stage, s.iter).reduce) return Error("iterator ", s.iter, " is not reduced");
    if (edit.factor_axis < 0 || edit.factor_axis > stage->num_axes) {
      return Error("axis ", s.factor_iter, " of ", stage->num_axes + 1);
    }
    TRY(infer_reduce_extents(*stage));
    edit.iters = stage->iters;
    std::vector<int64_t> axes = extents_of(*stage, 0, stage->num_axes), reduced;
    const std::vector<int64_t> kept_axes = axes;
    const int64_t factored = leaf(*stage, s.iter).extent;
    axes.insert(axes.begin() + edit.factor_axis, factored);
    for (const int iter : stage->leaves) {
      const StateIterator& it = stage->iters[iter];
      if (!it.reduce || iter == edit.factor_iter) continue;
      edit.reduce_leaves.push_back(iter);
      reduced.push_back(it.extent);
    }
    const ComputeAt where = stage->compute_at;
    *stage = fresh_stage(kept_axes, {factored});
    stage->compute_at = where;
    state_.edits.push_back(std::move(edit));
    insert(s.stage, fresh_stage(axes, reduced));
    return Unit{};
  }

  // Extents of what the reduce axes became; an rfactor needs them at once.
  static Result<Unit> infer_reduce_extents(StateStage& stage) {
    for (const Relation& r : stage.relations) {
      StateIterator &parent = stage.iters[r.parent], &outer = stage.iters[r.outer],
                    &inner = stage.iters[r.inner];
      if (!parent.reduce) return Error("the stage's spatial loops have been changed before");
      if (r.fuse) {
        if (!outer.reduce || !inner.reduce) return Error("a spatial loop is fused with a reduced");
        if (inner.extent > kMaxLoop / outer.extent) return Error("a loop of over 2^48 iterations");
        parent.extent = outer.extent * inner.extent;
      } else {
        const int64_t rest = parent.extent / r.factor;
        if (parent.extent % r.factor != 0) return Error("a split that leaves a rest");
        outer.extent = r.nparts ? r.factor : rest;
        inner.extent = r.nparts ? rest : r.factor;
      }
    }
    return Unit{};
  }

  // Numbers of stages from `at` on grow by one.
  // Stages that are computed at one of these follow it.
  void insert(int at, StateStage stage) {
    for (StateStage& other : state_.stages) {
      if (other.at_stage >= at) ++other.at_stage;
    }
    state_.stages.insert(state_.stages.begin() + at, std::move(stage));
  }

  std::span<const Step> steps_;
  State state_;
  int number_ = 0;
};

// An attach point that was split or fused later moves to what holds it now.
Result<Unit> settle_attach_points(State& state) {
  for (StateStage& stage : state.stages) {
    if (stage.compute_at != ComputeAt::kIterator) continue;
    const StateStage& target = state.stages[stage.at_stage];
    if (target.compute_at == ComputeAt::kInlined) return Error("computed at an inlined stage");
    for (const Relation& r : target.relations) {
      if (r.fuse && stage.at_iter == r.inner) stage.at_iter = r.parent;
      if (!r.fuse && stage.at_iter == r.parent) stage.at_iter = r.inner;
    }
    if (std::ranges::find(target.leaves, stage.at_iter) == target.leaves.end()) {
      return Error("computed at a loop that was fused into another");
    }
  }
  return Unit{};
}

}  // namespace

int thread_rank(Annotation annotation) {
  switch (annotation) {
    case Annotation::kBlockX:
    case Annotation::kBlockY:
    case Annotation::kBlockZ: return 0;
    case Annotation::kVThread:
    case Annotation::kThreadX:
    case Annotation::kThreadY:
    case Annotation::kThreadZ: return 1;
    default: return -1;
  }
}

bool reduces_over_threads(const StateStage& stage) {
  return std::ranges::any_of(stage.leaves, [&](int leaf) {
    const StateIterator& iter = stage.iters[leaf];
    return iter.reduce && thread_rank(iter.annotation) >= 0;
  });
}

bool reduces_in_loops(const StateStage& stage) {
  return std::ranges::any_of(stage.leaves, [&](int leaf) {
    const StateIterator& iter = stage.iters[leaf];
    return iter.reduce && thread_rank(iter.annotation) < 0;
  });
}

Result<State> apply_steps(const ComputeDag& dag, std::span<const Step> steps) {
  TRY_ASSIGN(State state, Applier(dag, steps).run());
  TRY(settle_attach_points(state));
  return state;
}

}  // namespace pruner::ansor
