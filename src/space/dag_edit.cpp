#include "space/dag_edit.h"

#include <algorithm>

namespace pruner {

static Expr map_loads(const Expr& body, const std::function<Expr(const Load&, DType)>& fn) {
  return rewrite(body, [&](const Expr& e) -> Expr {
    const Load* read = as<Load>(e);
    return read == nullptr ? Expr() : fn(*read, e->dtype);
  });
}

static void renumber(ComputeDag& dag, const std::function<StageId(StageId)>& to) {
  for (Stage& stage : dag.stages) {
    if (!stage.is_placeholder()) {
      stage.body = map_loads(stage.body, [&](const Load& read, DType dtype) {
        return to(read.tensor) == read.tensor ? Expr() : load(to(read.tensor), read.indices, dtype);
      });
    }
    for (StageId& id : stage.layout_free) id = to(id);
  }
}

void insert_stage(ComputeDag& dag, int at, Stage stage) {
  renumber(dag, [&](StageId id) { return id.value >= at ? StageId{id.value + 1} : id; });
  dag.stages.insert(dag.stages.begin() + at, std::move(stage));
}

void redirect(ComputeDag& dag, StageId old, StageId replacement) {
  for (const StageId reader : dag.consumers(old)) {
    if (reader == replacement) continue;
    dag[reader].body = map_loads(dag[reader].body, [&](const Load& read, DType dtype) {
      return read.tensor == old ? load(replacement, read.indices, dtype) : Expr();
    });
  }
}

// Reads of one place share one copy of the body.
static Expr with_inlined(const Expr& reader, StageId id, const Expr& body) {
  std::vector<std::pair<Expr, Expr>> copies;  // each load with the body in its place
  return rewrite(reader, [&](const Expr& e) -> Expr {
    const Load* read = as<Load>(e);
    if (read == nullptr || read->tensor != id) return {};
    const auto known = std::ranges::find_if(
        copies, [&](const auto& copy) { return structural_equal(copy.first, e); });
    if (known != copies.end()) return known->second;
    return copies.emplace_back(e, substitute(body, read->indices)).second;
  });
}

void inline_stage(ComputeDag& dag, StageId id) {
  const Expr body = dag[id].body;
  for (const StageId reader : dag.consumers(id)) {
    if (dag[reader].unrolled.empty()) dag[reader].unrolled = dag[id].unrolled;
    dag[reader].body = with_inlined(dag[reader].body, id, body);
  }
  dag.stages.erase(dag.stages.begin() + id.value);
  renumber(dag, [&](StageId other) { return other > id ? StageId{other.value - 1} : other; });
}

bool fits_readers(const ComputeDag& dag, StageId id) {
  constexpr double kMostNodes = 4096;
  const double size = tree_size(dag[id].body);
  return std::ranges::all_of(dag.consumers(id), [&](StageId reader) {
    return tree_size(dag[reader].body, id, size) <= kMostNodes;
  });
}

bool rewrite_stages(ComputeDag& dag, const std::function<bool(StageId)>& rewrite) {
  bool found = false;
  for (int s = 0; s < dag.size(); ++s) {
    const int before = dag.size();
    if (!rewrite(StageId{s})) continue;
    s += dag.size() - before;
    found = true;
  }
  return found;
}

std::vector<Expr> iterator_vars(const Stage& stage) {
  std::vector<Expr> vars;
  for (const auto* axes : {&stage.axes, &stage.reduce_axes}) {
    for (const Iterator& axis : *axes) {
      vars.push_back(make_var(VarId{static_cast<int32_t>(vars.size())}, axis.name));
    }
  }
  return vars;
}

Stage copy_stage(const ComputeDag& dag, StageId source, std::string name) {
  Stage copy;
  copy.name = std::move(name);
  copy.dtype = dag[source].dtype;
  copy.axes = dag[source].axes;
  copy.body = load(source, iterator_vars(copy), copy.dtype);
  copy.tag = "copy";
  return copy;
}

}  // namespace pruner
