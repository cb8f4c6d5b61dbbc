#include "lower/builder.h"

#include "space/read_box.h"
#include "support/mend.h"

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
  return region_of(nest, id, at, values).start;
}

ProgramParts::Region ProgramParts::region_of(const LoopNest& nest,
                                             StageId id,
                                             StageId at,
                                             const std::vector<Expr>& values) const {
  const ComputeDag& dag = *nest.dag;
  const size_t rank = dag[id].axes.size();
  std::vector<bool> moved(rank, false);
  if (!dag[id].unrolled.empty()) return {tile_start(dag, id, at, values), moved};
  // A box of single points: where the readers' iterators have their lowest values, it starts.
  ReadBox box(dag[id], true);
  std::vector<Region> lowest;  // values of each reader's iterators
  for (const StageId reader : nest.tables->consumers[id]) {
    Region low = reader == at ? Region{values, {}} : region_of(nest, reader, at, values);
    low.start.resize(dag[reader].axes.size() + dag[reader].reduce_axes.size(), Expr(0));
    low.moved.resize(low.start.size(), false);
    const std::vector<int64_t> points(low.start.size(), 1);
    for (const Access& access : nest.tables->accesses[reader])
      if (access.producer == id) box.add(access, points, static_cast<int>(lowest.size()));
    lowest.push_back(std::move(low));
  }
  std::vector<Expr> start(rank, Expr(0));
  for (size_t d = 0; d < rank; ++d) {
    const int64_t last = dag[id].axes[d].extent - nest.of(id).extents[d];
    // `last` is below 0 where the tile is padded past the axis; such a region holds the whole axis.
    const bool whole = is_in(Mend::kPaddedTileStart) ? last <= 0 : last == 0;
    moved[d] = box[d].leaves;
    if (box[d].index == nullptr || box[d].whole) continue;
    Expr low(box[d].low);
    for (const auto& [iterator, coefficient] : box[d].index->terms) {
      const Region& reader = lowest[static_cast<size_t>(box[d].reader)];
      const auto axis = static_cast<size_t>(iterator.value);
      low = low + reader.start[axis] * Expr(coefficient);
      // A reader that was moved may begin later than its region in the loops of `at`, which is
      // longer than in the reader's own loops.
      moved[d] = moved[d] || reader.moved[axis];
    }
    if (moved[d] && whole) continue;
    start[d] = simple(moved[d] && last > 0 ? max(min(low, Expr(last)), Expr(0)) : low);
  }
  return {std::move(start), std::move(moved)};
}

}  // namespace pruner
