#include "ansor/nest.h"

#include <algorithm>

#include "ansor/bounds.h"
#include "support/check.h"

namespace pruner::ansor {
namespace {

size_t at(int i) { return static_cast<size_t>(i); }

// Writes the nodes of a nest whose bounds are known, in the order in which TVM's ScheduleOps nests
// stages: a stage wraps what comes after it at its place.
class NestWriter {
 public:
  explicit NestWriter(ReplayNest& nest)
      : nest_(nest), stages_(nest.state.stages), attached_(stages_.size()) {}

  Result<Unit> run() {
    std::vector<int> roots;
    for (int s = 0; s < static_cast<int>(stages_.size()); ++s) {
      const StateStage& stage = stages_[at(s)];
      if (stage.placeholder || stage.compute_at == ComputeAt::kInlined) continue;
      if (stage.compute_at == ComputeAt::kRoot) roots.push_back(s);
      if (stage.compute_at == ComputeAt::kIterator) attached_[at(stage.at_stage)].push_back(s);
    }
    nest_.values.resize(stages_.size());
    pipeline(roots, 0, [] {});
    if (!error_.empty()) return Error(error_);
    return Unit{};
  }

 private:
  using Body = std::function<void()>;

  const Stage& body_of(int s) const { return nest_.structure->dag[StageId{s}]; }

  // Adds a node around the nodes that `held` adds.
  void node(NodeKind kind, int index, const Body& held) {
    const size_t number = nest_.nodes.size();
    nest_.nodes.push_back({kind, index, 0});
    held();
    nest_.nodes[number].end = static_cast<int>(nest_.nodes.size());
  }

  // Stages one inside the other, then `rest`.
  void pipeline(const std::vector<int>& stages, size_t from, const Body& rest) {
    if (from == stages.size()) return rest();
    node(NodeKind::kRealize, stages[from], [&] {
      produce(stages[from]);
      pipeline(stages, from + 1, rest);
    });
  }

  // A stage's loops, as TVM's MakeComputeStmt has them: those outside the first reduce loop are
  // common, inside them a nest sets the first value, and then another one updates it.
  void produce(int s) {
    const StateStage& stage = stages_[at(s)];
    std::vector<IndexId>& values = nest_.values[at(s)];
    values.assign(stage.iters.size(), IndexId{});
    for (const int leaf : stage.leaves) values[at(leaf)] = leaf_value(s, leaf);
    pass_up_values(nest_, s, values);
    const size_t first_reduced = first_reduced_leaf(stage);
    if (reduces_over_threads(stage)) return reduce_over_threads(s);
    const bool reduction = stage.num_roots > stage.num_axes;
    leaves(s, 0, first_reduced, [&] {
      if (reduction) initialise(s, first_reduced);
      leaves(s, first_reduced, stage.leaves.size(), [&] {
        guarded(bound_checks(s, values, true, {}), [&] {
          statement(s, reduction ? StatementKind::kUpdate : StatementKind::kCompute, values);
        });
      });
    });
  }

  // Loops of the leaves [from, to), with what is computed inside of each.
  void leaves(int s, size_t from, size_t to, const Body& body) {
    if (from == to) return body();
    one_leaf(s, stages_[at(s)].leaves[from], [&] { leaves(s, from + 1, to, body); });
  }

  // Pragmas stand around their loop, stages attached at it directly inside.
  void one_leaf(int s, int leaf, const Body& body) {
    const StateIterator& iter = stages_[at(s)].iters[at(leaf)];
    const int loop = nest_.loop_of[at(s)][at(leaf)];
    const Body inside = [&] { attached_at(s, leaf, body); };
    const Body looped = [&] { loop < 0 ? inside() : node(NodeKind::kLoop, loop, inside); };
    const bool marked =
        thread_rank(iter.annotation) < 0 && (iter.auto_unroll >= 0 || !iter.pragmas.empty());
    if (!marked) return looped();
    nest_.pragmas.push_back({s, leaf});
    node(NodeKind::kPragmas, static_cast<int>(nest_.pragmas.size()) - 1, looped);
  }

  void attached_at(int s, int leaf, const Body& rest) {
    std::vector<int> here;
    for (const int other : attached_[at(s)]) {
      if (stages_[at(other)].at_iter == leaf) here.push_back(other);
    }
    pipeline(here, 0, rest);
  }

  // A thread's index is 0 where its own buffer is nearer than the thread.
  IndexId leaf_value(int s, int leaf) {
    const int loop = nest_.loop_of[at(s)][at(leaf)];
    if (loop < 0) return nest_.pool.constant(0);
    const int rank = thread_rank(nest_.loops[at(loop)].annotation);
    const StorageScope scope = stages_[at(s)].scope;
    const bool own = rank >= 0 && nest_.loops[at(loop)].annotation != Annotation::kVThread &&
                     scope != StorageScope::kAuto && static_cast<int>(scope) > rank;
    return own ? nest_.pool.constant(0) : nest_.pool.variable(loop, nest_.loops[at(loop)].extent);
  }

  // A leaf fused of spatial and reduce axes counts as reduced.
  static size_t first_reduced_leaf(const StateStage& stage) {
    const std::vector<int> flags = touched(stage);
    for (size_t i = 0; i < stage.leaves.size(); ++i) {
      if (flags[at(stage.leaves[i])] & 2) return i;
    }
    return stage.leaves.size();
  }

  // Returns a mask per iterator: bit 1 if the iterator comes from a spatial axis, bit 2 if from a
  // reduce axis.
  static std::vector<int> touched(const StateStage& stage) {
    std::vector<int> flags(stage.iters.size(), 0);
    for (int i = 0; i < stage.num_roots; ++i) flags[at(i)] = i < stage.num_axes ? 1 : 2;
    for (const Relation& r : stage.relations) {
      if (r.fuse) {
        flags[at(r.parent)] |= flags[at(r.outer)] | flags[at(r.inner)];
      } else {
        flags[at(r.outer)] |= flags[at(r.parent)];
        flags[at(r.inner)] |= flags[at(r.parent)];
      }
    }
    return flags;
  }

  // The first value of a reduction, in loops of its own over the spatial part that is walked inside
  // the first reduce loop.
  void initialise(int s, size_t from) {
    const StateStage& stage = stages_[at(s)];
    const std::vector<int> flags = touched(stage);
    std::vector<IndexId> values(stage.iters.size());
    std::vector<int> loops;
    for (size_t i = 0; i < stage.leaves.size(); ++i) {
      const int leaf = stage.leaves[i];
      values[at(leaf)] = leaf_value(s, leaf);
      if (i < from || !(flags[at(leaf)] & 1)) continue;
      const int main = nest_.loop_of[at(s)][at(leaf)];
      if (main < 0) continue;
      const int loop = static_cast<int>(nest_.loops.size());
      nest_.loops.push_back(nest_.loops[at(main)]);
      nest_.loops.back().init = thread_rank(nest_.loops[at(main)].annotation) < 0;
      values[at(leaf)] = nest_.pool.variable(loop, nest_.loops[at(loop)].extent);
      loops.push_back(loop);
    }
    pass_up_values(nest_, s, values);
    const Body write = [&] {
      guarded(bound_checks(s, values, false, flags),
              [&] { statement(s, StatementKind::kInit, values); });
    };
    nested_loops(loops, 0, write);
  }

  void nested_loops(const std::vector<int>& loops, size_t from, const Body& body) {
    if (from == loops.size()) return body();
    node(NodeKind::kLoop, loops[from], [&] { nested_loops(loops, from + 1, body); });
  }

  // Each thread reduces its part into a register, then the threads reduce those.
  void reduce_over_threads(int s) {
    const StateStage& stage = stages_[at(s)];
    std::vector<int> common, own;
    bool thread_seen = false;
    for (const int leaf : stage.leaves) {
      const StateIterator& iter = stage.iters[at(leaf)];
      const bool thread = iter.reduce && thread_rank(iter.annotation) >= 0;
      if (!iter.reduce && thread_seen) error_ = "a spatial loop inside of a reduction over threads";
      thread_seen |= thread;
      (iter.reduce && !thread ? own : common).push_back(leaf);
    }
    const std::vector<IndexId>& values = nest_.values[at(s)];
    some_leaves(s, common, 0, [&] {
      node(NodeKind::kTemporary, s, [&] {
        if (!own.empty()) {
          statement(s, StatementKind::kThreadInit, values);
          some_leaves(s, own, 0, [&] {
            guarded(bound_checks(s, values, true, {}),
                    [&] { statement(s, StatementKind::kThreadUpdate, values); });
          });
        }
        statement(s, StatementKind::kAllReduce, values);
        statement(s, StatementKind::kThreadStore, values);
      });
    });
  }

  void some_leaves(int s, const std::vector<int>& list, size_t from, const Body& body) {
    if (from == list.size()) return body();
    one_leaf(s, list[from], [&] { some_leaves(s, list, from + 1, body); });
  }

  // Guards of a stage: iterators that splits may run past, and axes whose region may leave the
  // tensor (`whole`). skip: iterators with the flag 2 alone are left out.
  std::vector<int> bound_checks(int s,
                                const std::vector<IndexId>& values,
                                bool whole,
                                const std::vector<int>& flags) {
    const StateStage& stage = stages_[at(s)];
    const auto skipped = [&](int i) { return !flags.empty() && flags[at(i)] == 2; };
    const std::vector<bool> open = left_open(stage);
    std::vector<int> guards;
    const auto check = [&](int i, IndexId value, int64_t bound, bool lower, bool of_axis) {
      const IndexNode& v = nest_.pool[value];
      if (lower ? v.low >= 0 : v.high < bound) return;
      nest_.guards.push_back({value, bound, lower, s, i, of_axis, !whole});
      guards.push_back(static_cast<int>(nest_.guards.size()) - 1);
    };
    const ReplayRegion& region = nest_.regions[at(s)];
    for (int i = 0; i < static_cast<int>(stage.iters.size()); ++i) {
      if (skipped(i) || !open[at(i)]) continue;
      check(i, offset(s, i, values), stage.iters[at(i)].extent, false, false);
    }
    const Stage& body = body_of(s);
    for (int i = 0; whole && i < stage.num_axes; ++i) {
      const int64_t extent = body.axes[at(i)].extent;
      if (nest_.pool.is_const(region.mins[at(i)], 0) && region.extents[at(i)] == extent) continue;
      check(i, values[at(i)], 0, true, true);
      check(i, values[at(i)], extent, false, true);
    }
    return guards;
  }

  // value - min, of the tree without the min where it stands last.
  IndexId offset(int s, int i, const std::vector<IndexId>& values) {
    if (i >= stages_[at(s)].num_axes) return values[at(i)];
    const IndexId min = nest_.regions[at(s)].mins[at(i)];
    const IndexNode& value = nest_.pool[values[at(i)]];
    if (value.op == IndexOp::kAdd && value.b == min) return value.a;
    return nest_.pool.binary(IndexOp::kSub, values[at(i)], min);
  }

  // Returns for each iterator whether a split below the iterator runs past its end.
  static std::vector<bool> left_open(const StateStage& stage) {
    std::vector<bool> open(stage.iters.size(), false);
    for (auto r = stage.relations.rbegin(); r != stage.relations.rend(); ++r) {
      const auto extent = [&](int i) { return stage.iters[at(i)].extent; };
      if (r->fuse) {
        open[at(r->outer)] = open[at(r->inner)] = open[at(r->parent)];
      } else {
        open[at(r->parent)] = open[at(r->outer)] || open[at(r->inner)] ||
                              extent(r->outer) * extent(r->inner) != extent(r->parent);
      }
    }
    return open;
  }

  void guarded(const std::vector<int>& guards, const Body& body, size_t from = 0) {
    if (from == guards.size()) return body();
    node(NodeKind::kGuard, guards[from], [&] { guarded(guards, body, from + 1); });
  }

  void statement(int s, StatementKind kind, const std::vector<IndexId>& values) {
    ReplayStatement made;
    made.kind = kind;
    made.stage = s;
    const bool in_register = kind == StatementKind::kThreadInit ||
                             kind == StatementKind::kThreadUpdate ||
                             kind == StatementKind::kAllReduce;
    if (!in_register) {
      made.store.tensor = StageId{s};
      made.store.indices.assign(values.begin(), values.begin() + stages_[at(s)].num_axes);
    }
    const bool reads = kind == StatementKind::kCompute || kind == StatementKind::kUpdate ||
                       kind == StatementKind::kThreadUpdate ||
                       (kind == StatementKind::kAllReduce && !reduces_in_loops(stages_[at(s)]));
    if (reads) {
      for (const Expr& access : nest_.structure->loads[at(s)]) {
        const Load& load = *as<Load>(access);
        made.loads.push_back(
            {load.tensor, access_indices(nest_.pool, load, nest_.structure->dag, values)});
      }
    }
    const auto roots = values.begin() + stages_[at(s)].num_roots;
    made.roots.assign(values.begin(), roots);
    nest_.statements.push_back(std::move(made));
    node(NodeKind::kStatement, static_cast<int>(nest_.statements.size()) - 1, [] {});
  }

  ReplayNest& nest_;
  const std::vector<StateStage>& stages_;
  std::vector<std::vector<int>> attached_;  // per stage: the stages computed at its loops
  std::string error_;
};

}  // namespace

Result<ReplayNest> make_nest(State state, std::shared_ptr<const Structure> structure) {
  ReplayNest nest;
  nest.structure = std::move(structure);
  nest.state = std::move(state);
  TRY(infer_bounds(nest));
  TRY(NestWriter(nest).run());
  return nest;
}

Result<ReplayNest> replay(Structures& structures, std::span<const Step> steps) {
  TRY_ASSIGN(State state, apply_steps(structures.dag(), steps));
  TRY_ASSIGN(std::shared_ptr<const Structure> structure, structures.of(state));
  return make_nest(std::move(state), std::move(structure));
}

}  // namespace pruner::ansor
