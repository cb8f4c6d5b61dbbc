#include "lower/builder.h"

#include <optional>

namespace pruner {

Expr ProgramParts::body_at(const Stage& stage,
                           const std::vector<Expr>& values,
                           const std::function<Expr(const Load& read, DType dtype)>& place) const {
  return simple(rewrite(stage.body, [&](const Expr& e) {
    const Var* var = as<Var>(e);
    if (var != nullptr) return values[static_cast<size_t>(var->id.value)];
    const Load* read = as<Load>(e);
    return read == nullptr ? Expr() : place(*read, e->dtype);
  }));
}

// A part of a transform: what its reader's tile at `values` needs, all of its own unrolled axes.
std::vector<Expr> ProgramParts::tile_start(const ComputeDag& dag,
                                           StageId id,
                                           StageId reader,
                                           const std::vector<Expr>& values) const {
  std::vector<Expr> start;
  visit(dag[reader].body, [&](const Expr& e) {
    const Load* read = as<Load>(e);
    if (read == nullptr || read->tensor != id || !start.empty()) return;
    for (const Expr& index : read->indices) start.push_back(simple(substitute(index, values)));
  });
  for (const auto& [axis, tile] : dag[id].unrolled) {
    Expr& at = start[static_cast<size_t>(axis)];
    if (dag[id].axes[static_cast<size_t>(axis)].extent == tile) at = Expr(0);
  }
  return start;
}

std::vector<Expr> ProgramParts::region_start(const LoopNest& nest,
                                             StageId id,
                                             StageId at,
                                             const std::vector<Expr>& values) const {
  const ComputeDag& dag = *nest.dag;
  if (!dag[id].unrolled.empty()) return tile_start(dag, id, at, values);
  const size_t rank = dag[id].axes.size();
  std::vector<std::optional<Affine>> lowest(rank);
  std::vector<Expr> start(rank, Expr(0));
  std::vector<bool> whole(rank, false), leaves(rank, false);
  for (const StageId reader : nest.tables->consumers[id]) {
    std::vector<Expr> low = reader == at ? values : region_start(nest, reader, at, values);
    low.resize(dag[reader].axes.size() + dag[reader].reduce_axes.size(), Expr(0));
    for (const Access& access : nest.tables->accesses[reader]) {
      if (access.producer != id) continue;
      for (size_t d = 0; d < rank; ++d) {
        const std::optional<Affine>& index = access.indices[d];
        const bool boxed = !access.whole[d] || access.leaves[d];
        if (!boxed || (lowest[d] && lowest[d]->terms != index->terms)) whole[d] = true;
        leaves[d] = leaves[d] || access.leaves[d];
        if (whole[d] || (lowest[d] && lowest[d]->constant <= index->constant)) continue;
        lowest[d] = index;
        start[d] = Expr(index->constant);
        for (const auto& [iterator, coefficient] : index->terms)
          start[d] = start[d] + low[static_cast<size_t>(iterator.value)] * Expr(coefficient);
      }
    }
  }
  for (size_t d = 0; d < rank; ++d) {
    const int64_t last = dag[id].axes[d].extent - nest.of(id).extents[d];
    if (leaves[d] && last > 0) start[d] = max(min(start[d], Expr(last)), Expr(0));
    start[d] = whole[d] || (leaves[d] && last == 0) ? Expr(0) : simple(start[d]);
  }
  return start;
}

}  // namespace pruner
