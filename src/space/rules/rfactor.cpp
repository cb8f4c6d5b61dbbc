// Splits a reduction of rows into partial results, one a lane, and a reduction of the lanes
// (Ansor's rfactor with the factored axis innermost, so that it is vectorised):
//   X.rf[i, l] = sum_ko  A[i, ko * W + l]        X[i] = sum_l  X.rf[i, l]
// A width W that does not divide the axis is masked by the neutral element.
#include "space/dag_edit.h"
#include "space/sketch_rule.h"
#include "support/ceil_div.h"

namespace pruner {

static void factor(ComputeDag& dag, StageId id, int width) {
  Stage& stage = dag[id];
  const int spatial = static_cast<int>(stage.axes.size());
  const int reduce = static_cast<int>(stage.reduce_axes.size());
  const Iterator rows = stage.reduce_axes.back();

  Stage part = stage;
  part.name += ".rf";
  part.tag = kRowPartTag;
  part.output = false;
  part.axes.push_back({rows.name + "_i", width});
  part.reduce_axes.back() = {rows.name + "_o", ceil_div(rows.extent, width), rows.open};
  // The old variables in terms of the new ones: the lane axis comes after the spatial ones.
  const std::vector<Expr> vars = iterator_vars(part);
  std::vector<Expr> values(vars.begin(), vars.begin() + spatial);
  for (int r = 0; r < reduce; ++r) values.push_back(vars[spatial + 1 + r]);
  const Expr row = vars.back() * width + vars[spatial];
  values.back() = row;
  part.body = substitute(stage.body, values);
  if (rows.open || rows.extent % width != 0) {
    part.body =
        select(row < Expr(rows.extent), part.body, combiner_identity(stage.combiner, stage.dtype));
  }

  insert_stage(dag, id.value, std::move(part));
  Stage& fold = dag[StageId{id.value + 1}];
  fold.reduce_axes = {{rows.name + "_i", width}};
  fold.body = load(id, iterator_vars(fold), fold.dtype);
}

static void apply(ComputeDag& dag, const Target& target) {
  for (int s = 0; s < dag.size(); ++s) {
    const Stage& stage = dag[StageId{s}];
    if (!stage.is_reduction() || !is_float(stage.dtype) || !reduces_rows(dag, StageId{s})) continue;
    const int64_t rows = stage.reduce_axes.back().extent;
    const int lanes = lanes_for(rows, stage.dtype, target);
    if (lanes < 4) continue;
    // Four vectors of partial results hide the latency of the additions once rows are long.
    factor(dag, StageId{s}, rows >= 16 * lanes ? 4 * lanes : lanes);
    ++s;
  }
}

const DagRule kRfactor = {"rfactor", apply};

}  // namespace pruner
