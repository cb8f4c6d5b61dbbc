// Reductions: accumulators in registers.
#include <algorithm>

#include "lower/lowering.h"

namespace pruner {

Lowering::ReduceRun Lowering::innermost_run(const NestStage& nest) const {
  const int spatial_axes = static_cast<int>(dag_[nest.stage].axes.size());
  const int n = static_cast<int>(nest.loops.size());
  const auto reduces = [&](int i) {
    return nest.loops[static_cast<size_t>(i)].axis >= spatial_axes;
  };
  int end = n;  // steps and terms of an instruction are the register tile's
  const auto of_instruction = [&](int i) {
    const LoopKind kind = nest.loops[static_cast<size_t>(i)].kind;
    return kind == LoopKind::kDot || kind == LoopKind::kMatrix;
  };
  while (end > 0 && of_instruction(end - 1)) --end;
  while (end > 0 && !reduces(end - 1)) --end;
  int first = 0;
  while (first < end && !reduces(first)) ++first;
  // Every reduce axis, or each chunk of them, has one step: the run is empty, before the register
  // tile.
  int at = n;
  while (at > nest.parallel_loops &&
         nest.loops[static_cast<size_t>(at) - 1].kind != LoopKind::kSerial)
    --at;
  if (end == 0) return {at, at, at};
  if (at > end) return {first, at, at};
  int begin = end;
  while (begin > 0 && reduces(begin - 1)) --begin;
  return {first, begin, end};
}

// The loops after a run (the register tile) around a statement made at their values. `masked`
// false: all lanes compute, because all they touch is registers. The steps and terms of an
// instruction are loops of what `adds` alone.
Stmt Lowering::emit_tile(const NestStage& nest,
                         int i,
                         bool masked,
                         const Values& values,
                         const Emit& statement,
                         bool adds) {
  if (i == static_cast<int>(nest.loops.size())) return statement(values);
  const NestLoop& loop = nest.loops[static_cast<size_t>(i)];
  const bool reduces = loop.axis >= static_cast<int>(dag_[nest.stage].axes.size());
  if (reduces && !adds) return statement(values);
  const Expr extent = masked ? loop_extent(nest, i, values) : Expr(loop.extent);
  return emit_one_loop(nest, loop, {{}, extent, loop.kind}, values, [&](const Values& inner) {
    return emit_tile(nest, i + 1, masked, inner, statement, adds);
  });
}

Stmt Lowering::emit_accumulation(const NestStage& nest,
                                 const ReduceRun& run,
                                 const Values& values) {
  const Stage& stage = dag_[nest.stage];
  const Expr identity = combiner_identity(stage.combiner, stage.dtype);
  // Set the accumulators (from the buffer, where earlier chunks are in it), add, write them back. A
  // stage in registers that is summed at once needs none: its own buffer serves.
  const bool chunked = run.first < run.begin;
  const bool in_place = nest.scope == Scope::kRegister && !chunked;
  const Tile tile =
      in_place ? Tile{state(nest.stage).buffer, {}, {}} : make_accumulators(nest, run, values);
  const auto place = [&](const Values& at) {
    return simple(in_place ? buffer_indices(nest.stage, at) : tile_indices(tile, at));
  };
  // The memory that complete tiles go to has room for all of them.
  const bool whole = nest.structure->has_matrix();
  std::vector<Stmt> statements;
  statements.push_back(emit_tile(nest, run.end, chunked && !whole, values, [&](const Values& at) {
    return make_stmt(
        Store{tile.buffer, place(at), chunked ? simple(load_of(nest.stage, at)) : identity});
  }));
  statements.push_back(emit_run(nest, run, run.begin, values, [&](const Values& at) {
    const auto add = [&](const Values& point) {
      const std::vector<Expr> accumulator = place(point);
      return make_stmt(Store{tile.buffer,
                             accumulator,
                             combine(stage.combiner,
                                     load(tile.buffer, accumulator, stage.dtype),
                                     body_at(nest.stage, point))});
    };
    return emit_tile(nest, run.end, true, at, add, true);
  }));
  if (in_place) return make_stmt(Block{std::move(statements)});
  statements.push_back(emit_tile(nest, run.end, !whole, values, [&](const Values& at) {
    return store_of(nest.stage, at, load(tile.buffer, place(at), stage.dtype));
  }));
  return make_stmt(Allocate{tile.buffer, make_stmt(Block{std::move(statements)})});
}

Lowering::Tile Lowering::make_accumulators(const NestStage& nest,
                                           const ReduceRun& run,
                                           const Values& values) {
  const Stage& stage = dag_[nest.stage];
  Tile tile;
  Buffer buffer{stage.name + ".acc", stage.dtype, {}, Scope::kRegister, 1, false, {}, 0};
  for (int a = 0; a < static_cast<int>(stage.axes.size()); ++a) {
    // Elements from the register tile's first to its last along the axis.
    int64_t span = 0;
    for (int i = run.end; i < static_cast<int>(nest.loops.size()); ++i) {
      const NestLoop& loop = nest.loops[static_cast<size_t>(i)];
      if (loop.axis == a) span += (loop.extent - 1) * loop.step + (span == 0 ? 1 : 0);
      if (loop.axis != a) continue;
      if (loop.kind == LoopKind::kVectorize) buffer.lanes = static_cast<int>(loop.extent);
      if (loop.kind == LoopKind::kMatrix) buffer.rows = static_cast<int>(loop.extent);
    }
    if (span == 0) continue;
    tile.axes.push_back(a);
    tile.base.push_back(values[static_cast<size_t>(a)]);
    buffer.shape.push_back(span);
  }
  if (buffer.shape.empty()) buffer.shape.push_back(1);
  tile.buffer = program_.add_buffer(std::move(buffer));
  return tile;
}

std::vector<Expr> Lowering::tile_indices(const Tile& tile, const Values& at) const {
  std::vector<Expr> indices;
  for (size_t k = 0; k < tile.axes.size(); ++k)
    indices.push_back(simple(at[static_cast<size_t>(tile.axes[k])] - tile.base[k]));
  if (indices.empty()) indices.push_back(Expr(0));
  return indices;
}

Stmt Lowering::emit_run(
    const NestStage& nest, const ReduceRun& run, int i, const Values& values, const Emit& inner) {
  if (i == run.end) return inner(values);
  const NestLoop& loop = nest.loops[static_cast<size_t>(i)];
  For made{{}, loop_extent(nest, i, values), loop.kind};
  if (loop.kind == LoopKind::kSerial) made.unroll = nest.unroll_steps;
  made.open = iterator_of(dag_[nest.stage], loop.axis).open;
  if (i + 1 == run.end) made.prefetch_bytes = nest.prefetch_bytes;
  return emit_one_loop(nest, loop, std::move(made), values, [&](const Values& at) {
    return emit_run(nest, run, i + 1, at, inner);
  });
}

Stmt Lowering::emit_fill(const NestStage& nest) {
  const Stage& stage = dag_[nest.stage];
  const Buffer& buffer = program_[state(nest.stage).buffer];
  const std::vector<int64_t> shape = buffer.shape;
  const int lanes = vector_lanes(nest);
  const std::function<Stmt(size_t, std::vector<Expr>)> loops = [&](size_t d,
                                                                   std::vector<Expr> at) -> Stmt {
    if (d == shape.size()) {
      return make_stmt(
          Store{state(nest.stage).buffer, at, combiner_identity(stage.combiner, stage.dtype)});
    }
    const bool last = d + 1 == shape.size() && lanes > 1;
    const VarId index = new_var("fill", {0, last ? shape[d] / lanes - 1 : shape[d] - 1});
    if (!last) {
      at.push_back(var(index));
      return make_stmt(For{index, Expr(shape[d]), LoopKind::kSerial, 1, loops(d + 1, at)});
    }
    const VarId lane = new_var("lane", {0, lanes - 1});
    at.push_back(simple(var(index) * Expr(lanes) + var(lane)));
    Stmt vector = make_stmt(For{lane, Expr(lanes), LoopKind::kVectorize, lanes, loops(d + 1, at)});
    return make_stmt(For{index, Expr(shape[d] / lanes), LoopKind::kSerial, 1, std::move(vector)});
  };
  return loops(0, {});
}

}  // namespace pruner
