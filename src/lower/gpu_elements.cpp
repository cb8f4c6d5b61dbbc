// Kernels without tiles: a thread for each element, or some for each row.
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
  const NestLoop* more = nullptr;
  for (const NestLoop& loop : root.loops) {
    if (loop.axis == kFusedSpatial && loop.kind == LoopKind::kSerial) more = &loop;
  }
  const Expr first = place_.spatial;
  const auto element = [&](const Expr& index) {
    const Values none(s.axes.size() + s.reduce_axes.size(), Expr(0));
    return guarded(index < Expr(total),
                   decode_axes(
                       s.axes,
                       0,
                       s.axes.size(),
                       index,
                       none,
                       0,
                       [&](const Values& values) { return one_element(root, values); }));
  };
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

Stmt GpuLowering::rows(const NestStage& root) {
  const Stage& s = dag_[root.stage];
  const size_t row_axes = static_cast<size_t>(root.row_axes);
  int64_t count = 1, rest = 1;
  for (size_t a = 0; a < s.axes.size(); ++a) (a < row_axes ? count : rest) *= s.axes[a].extent;
  // Threads beyond the last row do that row again: all come by every barrier.
  const Expr row = simple(min(place_.rows, Expr(count - 1)));
  const Values none(s.axes.size(), Expr(0));
  return decode_axes(s.axes, 0, row_axes, row, none, 0, [&](const Values& at) {
    std::vector<Stmt> body;
    for (const NestStage* reduction : attached_to(root.stage))
      body.push_back(row_reduction(*reduction, at));
    const int64_t rounds = ceil_div(rest, place_.lanes);
    const VarId round = new_var("j", {0, rounds - 1});
    const Expr index = simple(var(round) * Expr(place_.lanes) + place_.lane);
    Stmt write = decode_axes(s.axes, row_axes, s.axes.size(), index, at, 0, [&](const Values& p) {
      return make_stmt(Store{state(root.stage).buffer, p, body_at(root.stage, p)});
    });
    write = guarded(place_.rows < Expr(count), guarded(index < Expr(rest), std::move(write)));
    body.push_back(make_stmt(For{round, Expr(rounds), LoopKind::kSerial, 1, std::move(write)}));
    return block(std::move(body));
  });
}

Stmt GpuLowering::row_reduction(const NestStage& stage, const Values& row) {
  const Stage& s = dag_[stage.stage];
  const int64_t terms = s.reduce_size(), rounds = ceil_div(terms, place_.lanes);
  const TensorId sum = add_buffer(stage, {1}, Scope::kLocal, ".sum");
  const TensorId parts = add_buffer(stage, {place_.block_rows, place_.lanes}, Scope::kShared);
  shared_.push_back(parts);
  const Values zero = {Expr(0)};
  const VarId round = new_var("r", {0, rounds - 1});
  const Expr index = simple(var(round) * Expr(place_.lanes) + place_.lane);
  Values start(row.begin(), row.begin() + stage.row_axes);
  start.resize(s.axes.size() + s.reduce_axes.size(), Expr(0));
  Stmt add = decode_axes(
      s.reduce_axes, 0, s.reduce_axes.size(), index, start, s.axes.size(), [&](const Values& at) {
        return make_stmt(
            Store{sum, zero, combine(s.combiner, load_of(sum, zero), body_at(stage.stage, at))});
      });
  add = make_stmt(
      For{round, Expr(rounds), LoopKind::kSerial, 1, guarded(index < Expr(terms), std::move(add))});
  const auto part = [&](const Expr& lane) { return Values{place_.row, lane}; };
  const Stmt barrier = make_stmt(Barrier{});
  std::vector<Stmt> body = {make_stmt(Store{sum, zero, combiner_identity(s.combiner, s.dtype)}),
                            add,
                            make_stmt(Store{parts, part(place_.lane), load_of(sum, zero)}),
                            barrier};
  // The lower half of a row's threads folds in what the upper half left; the result ends in part 0.
  for (int64_t half = place_.lanes / 2; half >= 1; half /= 2) {
    const Expr folded = combine(s.combiner,
                                load_of(parts, part(place_.lane)),
                                load_of(parts, part(simple(place_.lane + Expr(half)))));
    body.push_back(make_stmt(
        If{place_.lane < Expr(half), make_stmt(Store{parts, part(place_.lane), folded})}));
    body.push_back(barrier);
  }
  const Expr own_row = place_.row;
  state(stage.stage) = {parts, [own_row](const Values&) { return Values{own_row, Expr(0)}; }};
  return make_stmt(Allocate{sum, block(std::move(body))});
}

}  // namespace pruner
