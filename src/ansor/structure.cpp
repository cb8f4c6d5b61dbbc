#include "ansor/structure.h"

#include <algorithm>

#include "space/dag_edit.h"

namespace pruner::ansor {
namespace {

StageId stage_id(int value) { return StageId{value}; }

// Every load of `from` in `body`, replaced.
Expr map_loads_of(const Expr& body,
                  StageId from,
                  const std::function<Expr(const Load&, DType)>& fn) {
  return rewrite(body, [&](const Expr& e) -> Expr {
    const Load* read = as<Load>(e);
    return read && read->tensor == from ? fn(*read, e->dtype) : Expr();
  });
}

// CHR: stages after the source get the next number, and so do the readers in the step.
void cache_read(ComputeDag& dag, const StageEdit& edit) {
  const StageId source = stage_id(edit.stage);
  Stage copy = copy_stage(dag, source, dag[source].name + "." + edit.scope);
  for (size_t i = 0; i < copy.axes.size(); ++i) copy.axes[i].name = "ax" + std::to_string(i);
  const StageId copied = stage_id(edit.stage + 1);
  insert_stage(dag, copied.value, std::move(copy));
  for (const int reader : edit.readers) {
    Stage& stage = dag[stage_id(reader + 1)];
    stage.body = map_loads_of(stage.body, source, [&](const Load& read, DType dtype) {
      return load(copied, read.indices, dtype);
    });
  }
}

// CHW: ".c" after the axes' names is TVM's; the copy keeps the stage's own names.
void cache_write(ComputeDag& dag, const StageEdit& edit) {
  const StageId cached = stage_id(edit.stage), original = stage_id(edit.stage + 1);
  Stage cache = dag[cached];
  cache.name += "." + edit.scope;
  cache.output = false;
  for (Iterator& axis : cache.axes) axis.name += ".c";
  insert_stage(dag, cached.value, std::move(cache));
  Stage copy = copy_stage(dag, cached, dag[original].name);
  copy.axes = dag[original].axes;
  copy.output = dag[original].output;
  copy.tag = dag[original].tag;
  dag[original] = std::move(copy);
}

// Names as TVM gives them: "k.outer", "i.j.fused".
std::vector<std::string> iterator_names(const Stage& stage, const StageEdit& edit) {
  std::vector<std::string> names(edit.iters.size());
  size_t at = 0;
  for (const auto* axes : {&stage.axes, &stage.reduce_axes}) {
    for (const Iterator& axis : *axes) names[at++] = axis.name;
  }
  for (const Relation& r : edit.relations) {
    const auto name = [&](int i) -> std::string& { return names[i]; };
    if (r.fuse) {
      name(r.parent) = name(r.outer) + "." + name(r.inner) + ".fused";
    } else {
      name(r.outer) = name(r.parent) + ".outer";
      name(r.inner) = name(r.parent) + ".inner";
    }
  }
  return names;
}

// The reduced part that is kept becomes a spatial axis of the new stage; what is reduced there is
// what the reduce axes were split and fused into.
void rfactor(ComputeDag& dag, const StageEdit& edit) {
  const StageId factored = stage_id(edit.stage);
  const Stage original = dag[factored];
  const std::vector<std::string> names = iterator_names(original, edit);
  const auto iterator = [&](int i) { return Iterator{names[i], edit.iters[i].extent}; };
  Stage rf = original;
  rf.name += ".rf";
  rf.output = false;
  rf.axes.insert(rf.axes.begin() + edit.factor_axis, iterator(edit.factor_iter));
  rf.reduce_axes.clear();
  for (const int leaf : edit.reduce_leaves) rf.reduce_axes.push_back(iterator(leaf));

  const std::vector<Expr> vars = iterator_vars(rf);
  std::vector<Expr> value(edit.iters.size());
  const auto value_of = [&](int i) -> Expr& { return value[i]; };
  const int num_axes = static_cast<int>(original.axes.size());
  for (int i = 0; i < num_axes; ++i) {
    value_of(i) = vars[i + (i >= edit.factor_axis)];
  }
  value_of(edit.factor_iter) = vars[edit.factor_axis];
  for (size_t i = 0; i < edit.reduce_leaves.size(); ++i) {
    value_of(edit.reduce_leaves[i]) = vars[static_cast<size_t>(num_axes) + 1 + i];
  }
  for (auto r = edit.relations.rbegin(); r != edit.relations.rend(); ++r) {
    const int64_t inner = edit.iters[r->inner].extent;
    if (r->fuse) {
      value_of(r->outer) = floor_div(value_of(r->parent), Expr(inner));
      value_of(r->inner) = floor_mod(value_of(r->parent), Expr(inner));
    } else {
      value_of(r->parent) = value_of(r->inner) + value_of(r->outer) * Expr(inner);
    }
  }
  value.resize(original.axes.size() + original.reduce_axes.size());
  rf.body = substitute(original.body, value);
  insert_stage(dag, factored.value, std::move(rf));

  Stage& result = dag[stage_id(edit.stage + 1)];
  result.reduce_axes = {iterator(edit.factor_iter)};
  result.reduce_axes[0].name += ".v";
  std::vector<Expr> index = iterator_vars(result);
  // iterator_vars() has the reduced iterator last; the new stage has it at factor_axis.
  std::rotate(index.begin() + edit.factor_axis, index.end() - 1, index.end());
  result.body = load(factored, index, result.dtype);
}

void apply(ComputeDag& dag, const StageEdit& edit) {
  switch (edit.kind) {
    case StageEdit::Kind::kCacheRead: return cache_read(dag, edit);
    case StageEdit::Kind::kCacheWrite: return cache_write(dag, edit);
    case StageEdit::Kind::kRfactor: return rfactor(dag, edit);
  }
}

// Inlined stages stay in the DAG but load nothing: their loads are their readers'.
void note_loads(Structure& s) {
  const size_t size = s.dag.stages.size();
  s.readers.resize(size);
  s.loads.resize(size);
  for (size_t i = 0; i < size; ++i) {
    if (s.dag.stages[i].is_placeholder() || s.inlined[i]) continue;
    visit(s.dag.stages[i].body, [&](const Expr& e) {
      const Load* read = as<Load>(e);
      if (!read) return;
      const auto same = [&](const Expr& other) { return structural_equal(e, other); };
      if (std::ranges::none_of(s.loads[i], same)) s.loads[i].push_back(e);
      auto& readers = s.readers[read->tensor.value];
      if (readers.empty() || readers.back() != static_cast<int>(i)) {
        readers.push_back(static_cast<int>(i));
      }
    });
  }
}

// Returns a key of what two states must share to share a structure.
std::vector<int64_t> key_of(const State& state) {
  std::vector<int64_t> key;
  for (const StateStage& stage : state.stages) {
    key.push_back(stage.compute_at == ComputeAt::kInlined);
  }
  for (const StageEdit& edit : state.edits) {
    key.insert(key.end(), {static_cast<int64_t>(edit.kind), edit.stage});
    key.push_back(static_cast<int64_t>(edit.scope.size()));
    key.insert(key.end(), edit.scope.begin(), edit.scope.end());
    key.push_back(static_cast<int64_t>(edit.readers.size()));
    key.insert(key.end(), edit.readers.begin(), edit.readers.end());
    if (edit.kind != StageEdit::Kind::kRfactor) continue;
    key.insert(key.end(), {edit.factor_iter, edit.factor_axis});
    for (const Relation& r : edit.relations) {
      key.insert(key.end(), {r.fuse, r.parent, r.outer, r.inner, r.factor, r.nparts});
    }
    key.insert(key.end(), edit.reduce_leaves.begin(), edit.reduce_leaves.end());
  }
  return key;
}

Result<std::shared_ptr<const Structure>> make_structure(const ComputeDag& dag, const State& state) {
  auto made = std::make_shared<Structure>();
  made->task = made->dag = dag;
  for (const StageEdit& edit : state.edits) apply(made->dag, edit);
  const int size = made->dag.size();
  made->inlined.assign(static_cast<size_t>(size), false);
  for (int i = size - 1; i >= 0; --i) {  // a consumer takes a stage that was itself inlined last
    if (state.stages[i].compute_at != ComputeAt::kInlined) continue;
    const Stage& stage = made->dag[stage_id(i)];
    if (stage.is_reduction() || stage.output) {
      return Error("stage ", stage.name, " can't be inlined: it is reduced or an output");
    }
    made->inlined[i] = true;
    for (int reader = i + 1; reader < size; ++reader) {
      Expr& body = made->dag[stage_id(reader)].body;
      if (!body) continue;
      body = map_loads_of(body, stage_id(i), [&](const Load& read, DType) {
        return substitute(stage.body, read.indices);
      });
    }
  }
  note_loads(*made);
  return std::shared_ptr<const Structure>(std::move(made));
}

}  // namespace

ComputeDag in_ansor_order(const ComputeDag& dag) {
  std::vector<int> order, place(static_cast<size_t>(dag.size()), -1);
  const std::function<void(StageId)> add = [&](StageId id) {
    int& mine = place[id.value];
    if (mine >= 0) return;
    mine = 0;  // a DAG has no way back to here
    if (dag[id].body) {
      visit(dag[id].body, [&](const Expr& e) {
        if (const Load* read = as<Load>(e)) add(read->tensor);
      });
    }
    mine = static_cast<int>(order.size());
    order.push_back(id.value);
  };
  // Post-order from the outputs; what no output needs comes last.
  for (const StageId output : dag.outputs()) add(output);
  for (int i = 0; i < dag.size(); ++i) add(stage_id(i));
  ComputeDag ordered;
  const auto moved = [&](StageId id) { return stage_id(place[id.value]); };
  for (const int old : order) {
    Stage stage = dag[stage_id(old)];
    if (stage.body) {
      stage.body = rewrite(stage.body, [&](const Expr& e) -> Expr {
        const Load* read = as<Load>(e);
        return read ? load(moved(read->tensor), read->indices, e->dtype) : Expr();
      });
    }
    for (StageId& id : stage.layout_free) id = moved(id);
    ordered.stages.push_back(std::move(stage));
  }
  return ordered;
}

Result<std::shared_ptr<const Structure>> Structures::of(const State& state) {
  const std::vector<int64_t> key = key_of(state);
  const std::lock_guard lock(mutex_);
  const auto found = made_.find(key);
  if (found != made_.end()) return found->second;
  TRY_ASSIGN(std::shared_ptr<const Structure> made, make_structure(dag_, state));
  made_[key] = made;
  return made;
}

}  // namespace pruner::ansor
