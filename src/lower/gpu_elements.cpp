// Kernels without tiles: a thread for each element.
#include <algorithm>

#include "lower/gpu_lowering.h"
#include "support/ceil_div.h"

namespace pruner {

Stmt GpuLowering::decode_axes(const std::vector<Iterator>& axes,
                              size_t first,
                              size_t end,
                              const Expr& index,
                              Values values,
                              size_t offset,
                              const Emit& inner) {
  std::vector<std::pair<VarId, Expr>> lets;
  int64_t below = 1;
  for (size_t a = first; a < end; ++a) below *= axes[a].extent;
  for (size_t a = first; a < end; ++a) {
    below /= axes[a].extent;
    Expr value = floor_div(index, Expr(below));
    if (a > first) value = floor_mod(value, Expr(axes[a].extent));
    value = simple(value);
    if (!as<IntImm>(value)) {
      const VarId let = new_var(axes[a].name, {0, axes[a].extent - 1});
      lets.push_back({let, value});
      value = var(let);
    }
    values[offset + a] = value;
  }
  Stmt body = inner(values);
  for (size_t i = lets.size(); i-- > 0;) body = make_stmt(Let{lets[i].first, lets[i].second, body});
  return body;
}

Stmt GpuLowering::elements(const NestStage& root) {
  const Stage& s = dag_[root.stage];
  const int64_t total = s.num_elements();
  const NestLoop *more = nullptr, *neighbours = nullptr;
  for (const NestLoop& loop : root.loops) {
    if (loop.axis == kFusedSpatial && loop.kind == LoopKind::kSerial) more = &loop;
    if (loop.axis == kFusedSpatial && loop.kind == LoopKind::kVectorize) neighbours = &loop;
  }
  const int lanes = neighbours == nullptr ? 1 : static_cast<int>(neighbours->extent);
  // Neighbours lie along the last axis that has any.
  const auto last =
      static_cast<size_t>(std::max(0, last_longer(s.axes, static_cast<int>(s.axes.size()))));
  const auto element = [&](const Expr& index) {
    const Values none(s.axes.size() + s.reduce_axes.size(), Expr(0));
    const auto run = [&](const Values& at) {
      return vector(lanes, [&](const Expr& lane) {
        Values place = at;
        if (lanes > 1) place[last] = simple(place[last] + lane);
        return one_element(root, place);
      });
    };
    return guarded(index < Expr(total), decode_axes(s.axes, 0, s.axes.size(), index, none, 0, run));
  };
  const Expr first = place_.spatial;
  if (more == nullptr) return element(first);
  const VarId i = new_var("e", {0, more->extent - 1});
  return make_stmt(For{i,
                       Expr(more->extent),
                       LoopKind::kUnroll,
                       1,
                       element(simple(first + var(i) * Expr(more->step)))});
}

Stmt GpuLowering::one_element(const NestStage& root, const Values& values) {
  std::vector<Stmt> body;
  std::vector<TensorId> sums;
  const auto fold = [&](const NestStage& stage) {
    const TensorId sum = add_buffer(stage, {1}, Scope::kLocal, ".sum");
    sums.push_back(sum);
    body.push_back(serial_reduction(stage, values, sum));
    return sum;
  };
  for (const NestStage* reduction : attached_to(root.stage)) {
    const TensorId sum = fold(*reduction);
    state(reduction->stage) = {sum, [](const Values&) { return Values{Expr(0)}; }};
  }
  const size_t rank = dag_[root.stage].axes.size();
  const Values point(values.begin(), values.begin() + static_cast<int64_t>(rank));
  const bool reduces = dag_[root.stage].is_reduction();
  const Expr value = reduces ? load_of(fold(root), {Expr(0)}) : body_at(root.stage, values);
  body.push_back(make_stmt(Store{state(root.stage).buffer, point, value}));
  Stmt result = block(std::move(body));
  for (const TensorId sum : sums) result = make_stmt(Allocate{sum, result});
  return result;
}

Stmt GpuLowering::serial_reduction(const NestStage& stage, const Values& point, TensorId sum) {
  const Stage& s = dag_[stage.stage];
  const Values zero = {Expr(0)};
  Point at{point, {}};
  at.values.resize(s.axes.size() + s.reduce_axes.size(), Expr(0));
  at.dense = at.values;
  NestStage loops = stage;
  std::erase_if(loops.loops,
                [&](const NestLoop& loop) { return loop.axis < static_cast<int>(s.axes.size()); });
  const Stmt add = thread_loops(loops, 0, stage.unroll_steps, at, [&](const Point& p) {
    return make_stmt(
        Store{sum, zero, combine(s.combiner, load_of(sum, zero), body_at(stage.stage, p.values))});
  });
  return block({make_stmt(Store{sum, zero, combiner_identity(s.combiner, s.dtype)}), add});
}

}  // namespace pruner
