// Stages and their loops, from the outermost in.
#include <algorithm>
#include <numeric>

#include "lower/lowering.h"
#include "space/plan.h"

namespace pruner {

Stmt Lowering::emit_stage(const NestStage& nest, std::vector<Expr> base) {
  const Stage& stage = dag_[nest.stage];
  Values values = base;
  values.resize(stage.axes.size() + stage.reduce_axes.size(), Expr(0));
  if (nest.scope == Scope::kLocal || nest.scope == Scope::kRegister) state(nest.stage).base = base;
  region_base_[nest.stage.value] = std::move(base);
  return emit_loops(nest, 0, values);
}

// Emits the loops from `i` on, with the stages that are attached before the loops.
Stmt Lowering::emit_loops(const NestStage& nest, int i, const Values& values) {
  std::vector<Stmt> statements;
  std::vector<TensorId> allocations;
  std::vector<std::pair<VarId, Expr>> starts;  // starts of boxes that were moved, each named once
  for (const NestStage& child : nest_.stages) {
    if (child.at != nest.stage || child.depth != i || in_part_) continue;
    std::vector<Expr> start = region_start(nest_, child.stage, nest.stage, values);
    for (size_t d = 0; d < start.size(); ++d) {
      if (as<Binary>(start[d]) == nullptr || as<Binary>(start[d])->op != BinaryOp::kMax) continue;
      const int64_t last = dag_[child.stage].axes[d].extent - child.extents[d];
      starts.emplace_back(new_var(dag_[child.stage].axes[d].name + "_start", {0, last}), start[d]);
      start[d] = var(starts.back().first);
    }
    statements.push_back(emit_stage(child, std::move(start)));
    if (child.scope != Scope::kWorkspace) allocations.push_back(state(child.stage).buffer);
  }
  statements.push_back(emit_rest(nest, i, values));
  Stmt result = statements.size() == 1 ? statements[0] : make_stmt(Block{std::move(statements)});
  for (const TensorId buffer : allocations) result = make_stmt(Allocate{buffer, result});
  for (const auto& [start, value] : starts) result = make_stmt(Let{start, value, result});
  return result;
}

Stmt Lowering::emit_rest(const NestStage& nest, int i, const Values& values) {
  const Stage& stage = dag_[nest.stage];
  if (i == 0 && nest.parallel_loops > 0) return emit_parallel(nest, values);
  if (stage.is_reduction()) {
    const ReduceRun run = innermost_run(nest);
    if (i == run.begin) return emit_accumulation(nest, run, values);
    if (i == run.first) {  // an outer chunk loop: the buffer starts from the neutral element
      return make_stmt(Block{{emit_fill(nest), emit_loop(nest, i, values, [&](const Values& inner) {
                                return emit_loops(nest, i + 1, inner);
                              })}});
    }
  }
  if (i == static_cast<int>(nest.loops.size())) {
    const DType dtype = dag_[nest.stage].dtype;
    return store_of(nest.stage,
                    values,
                    in_part_ ? float_imm(nest_.tables->constant_parts[nest.stage]->value, dtype)
                             : body_at(nest.stage, values));
  }
  return emit_loop(
      nest, i, values, [&](const Values& inner) { return emit_loops(nest, i + 1, inner); });
}

Stmt Lowering::advance(const NestStage& nest,
                       const NestLoop& loop,
                       const Expr& index,
                       Values values,
                       const Emit& inner) {
  Expr& value = values[static_cast<size_t>(loop.axis)];
  if (loop.clamp < 0) {
    value = simple(value + index * Expr(loop.step));
    return inner(values);
  }
  // In units that step and clamp share, so that the tile's alignment can be seen.
  const int64_t unit = loop.unit;
  const VarId start =
      new_var(iterator_name(dag_[nest.stage], loop.axis) + "_tile", {0, loop.clamp / unit});
  value = simple(value + var(start) * Expr(unit));
  const Expr tile = min(index * Expr(loop.step / unit), Expr(loop.clamp / unit));
  // An open axis has the bound also where it ends with a tile by chance.
  const bool open = iterator_of(dag_[nest.stage], loop.axis).open;
  return make_stmt(Let{start, open ? tile : simple(tile), inner(values)});
}

Stmt Lowering::emit_loop(const NestStage& nest, int i, const Values& values, const Emit& inner) {
  const NestLoop& loop = nest.loops[static_cast<size_t>(i)];
  // An unrolled loop has a constant extent, so what leaves the axis is guarded.
  if (loop.kind == LoopKind::kUnroll && loop.ragged) {
    const auto guarded = [&](const Values& at) {
      const Expr& value = at[static_cast<size_t>(loop.axis)];
      const int64_t end = dag_[nest.stage].axes[static_cast<size_t>(loop.axis)].extent;
      return make_stmt(If{simple(value < Expr(end)), inner(at)});
    };
    return emit_one_loop(nest, loop, {{}, Expr(loop.extent), loop.kind}, values, guarded);
  }
  if (!in_part_ && !dag_[nest.stage].is_reduction()) {
    if (const Expr before = iterations_before_part(nest, i, values))
      return emit_split_loop(nest, i, values, before);
  }
  For made{{}, loop_extent(nest, i, values), loop.kind};
  // Tiles go from memory on by rows, a few of them in one pass of the loop.
  constexpr int kRowsInPass = 4;
  const bool last = i + 2 == static_cast<int>(nest.loops.size());
  if (last && loop.kind == LoopKind::kSerial && nest.structure->has_matrix())
    made.unroll = kRowsInPass;
  return emit_one_loop(nest, loop, std::move(made), values, inner);
}

Stmt Lowering::emit_one_loop(const NestStage& nest,
                             const NestLoop& loop,
                             For made,
                             const Values& values,
                             const Emit& inner) {
  made.var = new_var(iterator_name(dag_[nest.stage], loop.axis), {0, loop.extent - 1});
  if (made.kind == LoopKind::kVectorize) made.lanes = static_cast<int>(loop.extent);
  made.body = advance(nest, loop, var(made.var), values, inner);
  return make_stmt(std::move(made));
}

Stmt Lowering::emit_split_loop(const NestStage& nest,
                               int i,
                               const Values& values,
                               const Expr& before) {
  const NestLoop& loop = nest.loops[static_cast<size_t>(i)];
  const std::string& name = iterator_name(dag_[nest.stage], loop.axis);
  const auto inner = [&](const Values& at) { return emit_loops(nest, i + 1, at); };
  const Expr extent = loop_extent(nest, i, values);
  const VarId end = new_var(name + "_end", {0, loop.extent});
  Stmt computed = emit_one_loop(nest, loop, {{}, var(end), loop.kind}, values, inner);
  const Range all = {0, loop.extent - 1};
  const VarId step = new_var(name, all), index = new_var(name, all);
  in_part_ = true;
  Stmt known = advance(nest, loop, var(index), values, inner);
  in_part_ = false;
  known = make_stmt(Let{index, var(end) + var(step), std::move(known)});
  known = make_stmt(For{step, simple(extent - var(end)), loop.kind, 1, std::move(known)});
  return make_stmt(Let{
      end, simple(min(before, extent)), make_stmt(Block{{std::move(computed), std::move(known)}})});
}

Expr Lowering::iterations_before_part(const NestStage& nest, int i, const Values& values) const {
  const NestLoop& loop = nest.loops[static_cast<size_t>(i)];
  const std::optional<ConstantPart>& part = nest_.tables->constant_parts[nest.stage];
  if (!part || loop.kind != LoopKind::kSerial || loop.clamp >= 0) return {};
  const int64_t coefficient = part->beyond.coefficient(VarId{loop.axis});
  if (coefficient <= 0) return {};
  // The least of the form in what the first iteration covers; it grows with each further one.
  Expr least(part->beyond.constant);
  for (const auto& [iterator, factor] : part->beyond.terms) {
    Expr at = values[static_cast<size_t>(iterator.value)];
    for (size_t k = static_cast<size_t>(i) + 1; factor < 0 && k < nest.loops.size(); ++k)
      if (const NestLoop& inner = nest.loops[k]; inner.axis == iterator.value)
        at = at + Expr((inner.extent - 1) * inner.step);
    least = least + at * Expr(factor);
  }
  // Single terms of a reduction are unrolled by some, which are to be all of them.
  constexpr int64_t kMostUnrolled = 16;
  const bool unrolled = dag_[nest.stage].is_reduction() && coefficient * loop.step == 1;
  const int64_t round = unrolled ? std::gcd(loop.extent, kMostUnrolled) : 1;
  const Expr rounds = floor_div(Expr(0) - least, Expr(coefficient * loop.step * round)) + Expr(1);
  const Expr before = simple(Expr(round) * max(Expr(0), min(Expr(loop.extent / round), rounds)));
  const int64_t* known = as_int(before);
  return known != nullptr && *known == loop.extent ? Expr() : before;
}

Expr Lowering::loop_extent(const NestStage& nest, int i, const Values& values) const {
  const NestLoop& loop = nest.loops[static_cast<size_t>(i)];
  const Stage& stage = dag_[nest.stage];
  const int spatial_axes = static_cast<int>(stage.axes.size());
  if (loop.clamp >= 0) return Expr(loop.extent);
  const Expr& start = values[static_cast<size_t>(loop.axis)];
  const auto iterations_to = [&](const Expr& end) {
    const Expr left = end - start;
    return loop.step == 1 ? left : floor_div(left + Expr(loop.step - 1), Expr(loop.step));
  };
  if (loop.axis >= spatial_axes) {
    const int64_t end = stage.reduce_axes[static_cast<size_t>(loop.axis - spatial_axes)].extent;
    const Expr before = iterations_before_part(nest, i, values);
    if (!loop.ragged) return before ? before : Expr(loop.extent);
    const Expr left = min(Expr(loop.extent), iterations_to(Expr(end)));
    return simple(before ? min(before, left) : left);
  }
  if (loop.kind == LoopKind::kUnroll || loop.kind == LoopKind::kMatrix) return Expr(loop.extent);
  const size_t axis = static_cast<size_t>(loop.axis);
  const Expr region_end = region_base_.at(nest.stage.value)[axis] + Expr(nest.extents[axis]);
  const Expr end = min(Expr(stage.axes[axis].extent), region_end);
  return simple(min(Expr(loop.extent), iterations_to(end)));
}

Stmt Lowering::emit_parallel(const NestStage& nest, Values values) {
  int64_t total = 1;
  for (int i = 0; i < nest.parallel_loops; ++i) total *= nest.loops[static_cast<size_t>(i)].extent;
  // One loop over all tiles; its index is taken apart in row-major order, the last loop fastest.
  const VarId index = new_var("task", {0, total - 1});
  int64_t inner = total;
  std::vector<std::pair<VarId, Expr>> lets;
  const std::function<Stmt(int, const Values&)> decode = [&](int i, const Values& at) -> Stmt {
    if (i == nest.parallel_loops) return emit_loops(nest, i, at);
    const NestLoop& loop = nest.loops[static_cast<size_t>(i)];
    inner /= loop.extent;
    const Expr coordinate =
        simple(floor_mod(floor_div(var(index), Expr(inner)), Expr(loop.extent)));
    const VarId position =
        new_var(iterator_name(dag_[nest.stage], loop.axis), {0, loop.extent - 1});
    return make_stmt(
        Let{position, coordinate, advance(nest, loop, var(position), at, [&](const Values& next) {
              return decode(i + 1, next);
            })});
  };
  Stmt body = decode(0, values);
  return make_stmt(For{index, Expr(total), LoopKind::kParallel, 1, std::move(body)});
}

}  // namespace pruner
