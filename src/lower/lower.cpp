// Loop nest -> loop IR. Each stage becomes its loops; what is attached inside them is emitted where
// it hangs, into a buffer of just its region; a reduction accumulates in registers over its
// innermost run of reduce loops.
#include "lower/lower.h"

#include <algorithm>
#include <numeric>

#include "lower/guards.h"
#include "tensor/affine.h"

namespace pruner {
namespace {

class Lowering {
 public:
  Lowering(const Sketch& sketch, const LoopNest& nest, std::string name)
      : sketch_(sketch), dag_(sketch.dag), nest_(nest) {
    program_.name = std::move(name);
    stages_.resize(dag_.stages.size());
  }

  Program run() {
    declare_buffers();
    std::vector<Stmt> roots;
    for (const NestStage& stage : nest_.stages) {
      if (!stage.at.valid())
        roots.push_back(emit_stage(stage, std::vector<Expr>(stage.extents.size(), Expr(0))));
    }
    program_.body = roots.size() == 1 ? roots[0] : make_stmt(Block{std::move(roots)});
    return std::move(program_);
  }

 private:
  /// What is known of a stage while it is emitted.
  struct StageState {
    TensorId buffer;
    std::vector<Expr> base;  // of the region that the buffer holds; empty: all of the stage
    std::vector<int> dims;   // dimensions of the stage that the buffer keeps
    PackSpec pack;
  };
  /// Values of a stage's iterators at the current place in its loops.
  using Values = std::vector<Expr>;

  StageState& state(StageId id) { return stages_[static_cast<size_t>(id.value)]; }
  const StageState& state(StageId id) const { return stages_[static_cast<size_t>(id.value)]; }

  VarId new_var(const std::string& name, Range range) {
    ranges_.push_back(range);
    return program_.add_var(name + std::to_string(ranges_.size() - 1));
  }
  Expr var(VarId id) const {
    return make_var(id, program_.var_names[static_cast<size_t>(id.value)]);
  }
  Expr simple(const Expr& e) const { return simplify(e, ranges_); }

  const std::string& iterator_name(const Stage& stage, int axis) const {
    const int spatial = static_cast<int>(stage.axes.size());
    return axis < spatial ? stage.axes[axis].name : stage.reduce_axes[axis - spatial].name;
  }

  // ---- Buffers

  void declare_buffers() {
    for (const PackedOperand& packed : nest_.packed) state(packed.operand).pack = packed.spec;
    for (const StageId id : sketch_.args) {
      const Stage& stage = dag_[id];
      Buffer buffer{stage.name,
                    stage.dtype,
                    stage.shape(),
                    Scope::kArgument,
                    1,
                    stage.output,
                    state(id).pack,
                    0};
      buffer.shape = buffer.pack.packed_shape(buffer.shape);
      buffer.pack.winograd = stage.winograd;  // whose result is what the stage holds
      if (state(id).buffer.valid()) continue;
      state(id).buffer = program_.add_buffer(std::move(buffer));
      all_dims(id);
    }
    for (const StageId id : sketch_.args) program_.args.push_back(state(id).buffer);
    for (const NestStage& stage : nest_.stages) {
      const Stage& s = dag_[stage.stage];
      if (s.output) {
        for (const NestLoop& loop : stage.loops)
          program_.rewrites = program_.rewrites || loop.clamp >= 0;
        continue;
      }
      Buffer buffer{s.name, s.dtype, {}, stage.scope, 1, false, {}, 0};
      if (stage.scope == Scope::kWorkspace) {
        buffer.shape = s.shape();
        buffer.workspace_offset = program_.workspace_bytes;
        program_.workspace_bytes += (buffer.bytes() + 63) / 64 * 64;
        all_dims(stage.stage);
      } else {
        const int vector = vectorized_axis(stage);
        for (int d = 0; d < static_cast<int>(s.axes.size()); ++d) {
          if (stage.extents[d] > 1 || d == vector) state(stage.stage).dims.push_back(d);
        }
        for (const int d : state(stage.stage).dims) buffer.shape.push_back(stage.extents[d]);
        if (buffer.shape.empty()) buffer.shape.push_back(1);
        if (stage.scope == Scope::kRegister) buffer.lanes = vector_lanes(stage);
      }
      state(stage.stage).buffer = program_.add_buffer(std::move(buffer));
    }
  }

  void all_dims(StageId id) {
    state(id).dims.resize(dag_[id].axes.size());
    std::iota(state(id).dims.begin(), state(id).dims.end(), 0);
  }

  // The spatial axis that the stage's vector loop runs along; -1: none.
  int vectorized_axis(const NestStage& stage) const {
    for (const NestLoop& loop : stage.loops) {
      if (loop.kind == LoopKind::kVectorize &&
          loop.axis < static_cast<int>(dag_[stage.stage].axes.size()))
        return loop.axis;
    }
    return -1;
  }
  int vector_lanes(const NestStage& stage) const {
    for (const NestLoop& loop : stage.loops) {
      if (loop.kind == LoopKind::kVectorize && vectorized_axis(stage) >= 0)
        return static_cast<int>(loop.extent);
    }
    return 1;
  }

  /// Indices into the buffer of `id` for the element at `point` of the stage.
  std::vector<Expr> buffer_indices(StageId id, const std::vector<Expr>& point) const {
    const StageState& s = state(id);
    std::vector<Expr> indices;
    if (!s.pack.order.empty()) {
      const auto block_of = [&](int dim) -> int64_t {
        for (const auto& [d, block] : s.pack.blocks) {
          if (d == dim) return block;
        }
        return 1;
      };
      for (const int d : s.pack.order) indices.push_back(floor_div(point[d], Expr(block_of(d))));
      for (const auto& [d, block] : s.pack.blocks)
        indices.push_back(floor_mod(point[d], Expr(block)));
    } else {
      for (const int d : s.dims)
        indices.push_back(s.base.empty() ? point[d] : point[d] - s.base[d]);
      if (indices.empty() && !s.base.empty()) indices.push_back(Expr(0));
    }
    for (Expr& index : indices) index = simple(index);
    return indices;
  }

  /// A stage's body at `values`, its loads turned into loads of buffers.
  Expr body_at(StageId id, const Values& values) const {
    const Expr& body = dag_[id].body;
    const Expr substituted = substitute(guards_hold_ ? without_guards(body) : body, values);
    const Expr loads = rewrite(substituted, [&](const Expr& e) -> Expr {
      const Load* read = as<Load>(e);
      return read == nullptr ? Expr()
                             : load(state(read->tensor).buffer,
                                    buffer_indices(read->tensor, read->indices),
                                    e->dtype);
    });
    return simple(loads);
  }

  // ---- Stages and loops

  Stmt emit_stage(const NestStage& nest, std::vector<Expr> base) {
    const Stage& stage = dag_[nest.stage];
    Values values = base;
    values.resize(stage.axes.size() + stage.reduce_axes.size(), Expr(0));
    if (nest.scope == Scope::kLocal || nest.scope == Scope::kRegister)
      state(nest.stage).base = base;
    region_base_[nest.stage.value] = std::move(base);
    return emit_loops(nest, 0, values);
  }

  // The loops from `i` on, with what is attached before them.
  Stmt emit_loops(const NestStage& nest, int i, const Values& values) {
    std::vector<Stmt> statements;
    std::vector<TensorId> allocations;
    for (const NestStage& child : nest_.stages) {
      if (child.at != nest.stage || child.depth != i) continue;
      statements.push_back(emit_stage(child, region_start(child.stage, nest.stage, values)));
      allocations.push_back(state(child.stage).buffer);
    }
    statements.push_back(emit_rest(nest, i, values));
    Stmt result = statements.size() == 1 ? statements[0] : make_stmt(Block{std::move(statements)});
    for (const TensorId buffer : allocations) result = make_stmt(Allocate{buffer, result});
    return result;
  }

  Stmt emit_rest(const NestStage& nest, int i, const Values& values) {
    const Stage& stage = dag_[nest.stage];
    if (i == 0 && nest.parallel_loops > 0) return emit_parallel(nest, values);
    if (stage.is_reduction()) {
      const ReduceRun run = innermost_run(nest);
      if (i == run.begin) return emit_accumulation(nest, run, values);
      if (i == run.first) {  // an outer chunk loop: the buffer starts from the neutral element
        return make_stmt(
            Block{{emit_fill(nest), emit_loop(nest, i, values, [&](const Values& inner) {
                     return emit_loops(nest, i + 1, inner);
                   })}});
      }
    }
    if (i == static_cast<int>(nest.loops.size())) {
      return make_stmt(Store{state(nest.stage).buffer,
                             buffer_indices(nest.stage, spatial(nest, values)),
                             body_at(nest.stage, values),
                             nest.streaming});
    }
    return emit_loop(
        nest, i, values, [&](const Values& inner) { return emit_loops(nest, i + 1, inner); });
  }

  std::vector<Expr> spatial(const NestStage& nest, const Values& values) const {
    return {values.begin(), values.begin() + static_cast<int64_t>(dag_[nest.stage].axes.size())};
  }

  /// values[axis] advanced by iteration `index` of the loop.
  template <typename Fn>
  Stmt advance(const NestStage& nest,
               const NestLoop& loop,
               const Expr& index,
               Values values,
               const Fn& inner) {
    Expr& value = values[static_cast<size_t>(loop.axis)];
    if (loop.clamp < 0) {
      value = simple(value + index * Expr(loop.step));
      return inner(values);
    }
    // In units that step and clamp share, so that the tile's alignment can be seen.
    const int64_t unit = std::gcd(loop.step, loop.clamp);
    const VarId start =
        new_var(iterator_name(dag_[nest.stage], loop.axis) + "_tile", {0, loop.clamp / unit});
    value = simple(value + var(start) * Expr(unit));
    const Expr tile = min(index * Expr(loop.step / unit), Expr(loop.clamp / unit));
    return make_stmt(Let{start, simple(tile), inner(values)});
  }

  template <typename Fn>
  Stmt emit_loop(const NestStage& nest, int i, const Values& values, const Fn& inner) {
    const NestLoop& loop = nest.loops[static_cast<size_t>(i)];
    if (loop.kind == LoopKind::kUnroll && loop.ragged) {
      const auto guarded = [&](const Values& at) {
        const Expr& value = at[static_cast<size_t>(loop.axis)];
        const int64_t end = dag_[nest.stage].axes[static_cast<size_t>(loop.axis)].extent;
        return make_stmt(If{simple(value < Expr(end)), inner(at)});
      };
      return emit_one_loop(nest, loop, loop.kind, Expr(loop.extent), values, guarded);
    }
    return emit_one_loop(nest, loop, loop.kind, loop_extent(nest, loop, values), values, inner);
  }

  template <typename Fn>
  Stmt emit_one_loop(const NestStage& nest,
                     const NestLoop& loop,
                     LoopKind kind,
                     const Expr& extent,
                     const Values& values,
                     const Fn& inner) {
    const VarId index = new_var(iterator_name(dag_[nest.stage], loop.axis), {0, loop.extent - 1});
    Stmt body = advance(nest, loop, var(index), values, inner);
    const int lanes = kind == LoopKind::kVectorize ? static_cast<int>(loop.extent) : 1;
    return make_stmt(For{index, extent, kind, lanes, std::move(body)});
  }

  /// Iterations of a loop at this place: fewer than its extent where the axis or the region ends.
  Expr loop_extent(const NestStage& nest, const NestLoop& loop, const Values& values) const {
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
      if (!loop.ragged) return Expr(loop.extent);
      return simple(min(Expr(loop.extent), iterations_to(Expr(end))));
    }
    if (loop.kind == LoopKind::kUnroll) return Expr(loop.extent);
    const size_t axis = static_cast<size_t>(loop.axis);
    const Expr region_end = region_base_.at(nest.stage.value)[axis] + Expr(nest.extents[axis]);
    const Expr end = min(Expr(stage.axes[axis].extent), region_end);
    return simple(min(Expr(loop.extent), iterations_to(end)));
  }

  Stmt emit_parallel(const NestStage& nest, Values values) {
    int64_t total = 1;
    for (int i = 0; i < nest.parallel_loops; ++i)
      total *= nest.loops[static_cast<size_t>(i)].extent;
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

  /// Where the region of `id` starts that the loops of `at`, at `values`, read.
  std::vector<Expr> region_start(StageId id, StageId at, const Values& values) const {
    if (!dag_[id].unrolled.empty()) return tile_start(id, at, values);
    const size_t rank = dag_[id].axes.size();
    std::vector<std::optional<Affine>> lowest(rank);
    std::vector<Expr> start(rank, Expr(0));
    std::vector<bool> whole(rank, false);
    for (const StageId reader : sketch_.tables->consumers[static_cast<size_t>(id.value)]) {
      Values low = reader == at ? values : region_start(reader, at, values);
      low.resize(dag_[reader].axes.size() + dag_[reader].reduce_axes.size(), Expr(0));
      for (const Access& access : sketch_.tables->accesses[static_cast<size_t>(reader.value)]) {
        if (access.producer != id) continue;
        for (size_t d = 0; d < rank; ++d) {
          const std::optional<Affine>& index = access.indices[d];
          if (access.whole[d] || (lowest[d] && lowest[d]->terms != index->terms)) whole[d] = true;
          if (whole[d] || (lowest[d] && lowest[d]->constant <= index->constant)) continue;
          lowest[d] = index;
          start[d] = Expr(index->constant);
          for (const auto& [iterator, coefficient] : index->terms)
            start[d] = start[d] + low[static_cast<size_t>(iterator.value)] * Expr(coefficient);
        }
      }
    }
    for (size_t d = 0; d < rank; ++d) start[d] = whole[d] ? Expr(0) : simple(start[d]);
    return start;
  }

  // A part of a transform: what its reader's tile at `values` needs, all of its own unrolled axes.
  std::vector<Expr> tile_start(StageId id, StageId reader, const Values& values) const {
    std::vector<Expr> start;
    visit(dag_[reader].body, [&](const Expr& e) {
      const Load* read = as<Load>(e);
      if (read == nullptr || read->tensor != id || !start.empty()) return;
      for (const Expr& index : read->indices) start.push_back(simple(substitute(index, values)));
    });
    for (const auto& [axis, tile] : dag_[id].unrolled) {
      Expr& at = start[static_cast<size_t>(axis)];
      if (dag_[id].axes[static_cast<size_t>(axis)].extent == tile) at = Expr(0);
    }
    return start;
  }

  // ---- Reductions

  /// The last unbroken run of reduce loops: [begin, end); `first` is the first reduce loop of all.
  struct ReduceRun {
    int first, begin, end;
  };
  ReduceRun innermost_run(const NestStage& nest) const {
    const int spatial_axes = static_cast<int>(dag_[nest.stage].axes.size());
    const int n = static_cast<int>(nest.loops.size());
    const auto reduces = [&](int i) {
      return nest.loops[static_cast<size_t>(i)].axis >= spatial_axes;
    };
    int end = n;
    while (end > 0 && !reduces(end - 1)) --end;
    if (end ==
        0) {  // every reduce axis has one element: the run is empty, before the register tile
      int at = n;
      while (at > 0 && nest.loops[static_cast<size_t>(at) - 1].kind != LoopKind::kSerial &&
             at > nest.parallel_loops)
        --at;
      return {at, at, at};
    }
    int begin = end;
    while (begin > 0 && reduces(begin - 1)) --begin;
    int first = 0;
    while (!reduces(first)) ++first;
    return {first, begin, end};
  }

  // The loops after a run (the register tile) around a statement made at their values. `masked`
  // false: inactive lanes may compute, because all they touch is padded.
  template <typename Fn>
  Stmt emit_tile(
      const NestStage& nest, int i, bool masked, const Values& values, const Fn& statement) {
    if (i == static_cast<int>(nest.loops.size())) return statement(values);
    const NestLoop& loop = nest.loops[static_cast<size_t>(i)];
    const Expr extent = masked ? loop_extent(nest, loop, values) : Expr(loop.extent);
    return emit_one_loop(nest, loop, loop.kind, extent, values, [&](const Values& inner) {
      return emit_tile(nest, i + 1, masked, inner, statement);
    });
  }

  Stmt emit_accumulation(const NestStage& nest, const ReduceRun& run, const Values& values) {
    const Stage& stage = dag_[nest.stage];
    const Expr identity = combiner_identity(stage.combiner, stage.dtype);
    const bool chunked = run.first < run.begin;
    const bool in_place = nest.scope == Scope::kRegister && !chunked;
    const Tile tile =
        in_place ? Tile{state(nest.stage).buffer, {}, {}} : make_accumulators(nest, run, values);
    const auto place = [&](const Values& at) {
      return in_place ? buffer_indices(nest.stage, spatial(nest, at)) : tile_indices(tile, at);
    };
    const auto element = [&](const Values& at) {
      return load(
          state(nest.stage).buffer, buffer_indices(nest.stage, spatial(nest, at)), stage.dtype);
    };
    std::vector<Stmt> statements;
    statements.push_back(emit_tile(nest, run.end, chunked, values, [&](const Values& at) {
      return make_stmt(Store{tile.buffer, place(at), chunked ? element(at) : identity});
    }));
    statements.push_back(emit_guarded(nest, run.begin, values, [&] {
      return emit_run(nest, run, run.begin, values, [&](const Values& at) {
        const Stmt tile_step = emit_tile(nest, run.end, needs_mask(nest), at, [&](const Values& point) {
          const std::vector<Expr> accumulator = place(point);
          return make_stmt(Store{tile.buffer,
                                 accumulator,
                                 combine(stage.combiner,
                                         load(tile.buffer, accumulator, stage.dtype),
                                         body_at(nest.stage, point))});
        });
        return nest.prefetch_bytes == 0 ? tile_step : with_prefetches(nest, at, tile_step);
      });
    }));
    if (in_place) return make_stmt(Block{std::move(statements)});
    statements.push_back(emit_tile(nest, run.end, true, values, [&](const Values& at) {
      return make_stmt(Store{state(nest.stage).buffer,
                             buffer_indices(nest.stage, spatial(nest, at)),
                             load(tile.buffer, place(at), stage.dtype)});
    }));
    return make_stmt(Allocate{tile.buffer, make_stmt(Block{std::move(statements)})});
  }

  /// `step` after prefetches of the lines of packed operands that a later step will read.
  Stmt with_prefetches(const NestStage& nest, const Values& values, const Stmt& step) {
    constexpr int64_t kLineBytes = 64;
    std::vector<Stmt> statements;
    visit(dag_[nest.stage].body, [&](const Expr& e) {
      const Load* read = as<Load>(e);
      if (read == nullptr || state(read->tensor).pack.blocks.empty()) return;
      std::vector<Expr> point;
      for (const Expr& index : read->indices) point.push_back(substitute(index, values));
      const std::vector<Expr> place = buffer_indices(read->tensor, point);
      const int64_t element = dtype_bytes(e->dtype);
      const int64_t bytes = state(read->tensor).pack.blocks[0].second * element;
      for (int64_t line = 0; line < bytes; line += kLineBytes) {
        std::vector<Expr> ahead = place;
        ahead.back() = simple(ahead.back() + Expr((nest.prefetch_bytes + line) / element));
        statements.push_back(make_stmt(Prefetch{state(read->tensor).buffer, std::move(ahead)}));
      }
    });
    statements.push_back(step);
    return make_stmt(Block{std::move(statements)});
  }

  /// The code that `emit` makes for the loops from `first` on: without guards for the tiles in which
  /// they all hold, and with them for the others.
  template <typename Fn>
  Stmt emit_guarded(const NestStage& nest, int first, const Values& values, const Fn& emit) {
    std::vector<int64_t> spans(values.size(), 0);
    for (size_t i = static_cast<size_t>(first); i < nest.loops.size(); ++i)
      spans[static_cast<size_t>(nest.loops[i].axis)] += (nest.loops[i].extent - 1) * nest.loops[i].step;
    const Expr hold = guards_hold(dag_[nest.stage].body, values, spans);
    if (!hold) return emit();
    const Expr condition = simple(hold);
    guards_hold_ = true;
    Stmt inside = emit();
    guards_hold_ = false;
    if (as_int(condition) != nullptr && *as_int(condition) != 0) return inside;
    Stmt border = emit();
    return make_stmt(Block{{make_stmt(If{condition, std::move(inside)}),
                            make_stmt(If{call(Intrinsic::kNot, {condition}), std::move(border)})}});
  }

  /// Registers that hold a tile of a reduction while it runs.
  struct Tile {
    TensorId buffer;
    std::vector<int> axes;
    std::vector<Expr> base;
  };
  Tile make_accumulators(const NestStage& nest, const ReduceRun& run, const Values& values) {
    const Stage& stage = dag_[nest.stage];
    Tile tile;
    Buffer buffer{stage.name + ".acc", stage.dtype, {}, Scope::kRegister, 1, false, {}, 0};
    for (int a = 0; a < static_cast<int>(stage.axes.size()); ++a) {
      int64_t span = 0;
      for (int i = run.end; i < static_cast<int>(nest.loops.size()); ++i) {
        const NestLoop& loop = nest.loops[static_cast<size_t>(i)];
        if (loop.axis == a) span += (loop.extent - 1) * loop.step + (span == 0 ? 1 : 0);
        if (loop.axis == a && loop.kind == LoopKind::kVectorize)
          buffer.lanes = static_cast<int>(loop.extent);
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
  std::vector<Expr> tile_indices(const Tile& tile, const Values& at) const {
    std::vector<Expr> indices;
    for (size_t k = 0; k < tile.axes.size(); ++k)
      indices.push_back(simple(at[static_cast<size_t>(tile.axes[k])] - tile.base[k]));
    if (indices.empty()) indices.push_back(Expr(0));
    return indices;
  }

  /// The run's loops, unrolled from the innermost out as far as the nest's budget of statements
  /// goes.
  template <typename Fn>
  Stmt emit_run(
      const NestStage& nest, const ReduceRun& run, int i, const Values& values, const Fn& inner) {
    if (i == run.end) return inner(values);
    const NestLoop& loop = nest.loops[static_cast<size_t>(i)];
    const auto next = [&](const Values& at) { return emit_run(nest, run, i + 1, at, inner); };
    const int64_t copies = copies_inside(nest, run, i);
    const Expr extent = loop_extent(nest, loop, values);
    if (loop.kind != LoopKind::kSerial || copies == 0)
      return emit_one_loop(nest, loop, loop.kind, extent, values, next);
    if (!loop.ragged && copies * loop.extent <= nest.unroll_steps) {
      return emit_one_loop(nest, loop, LoopKind::kUnroll, extent, values, next);
    }
    const int64_t factor = unroll_factor(loop.extent, nest.unroll_steps / copies);
    if (factor < 2) return emit_one_loop(nest, loop, LoopKind::kSerial, extent, values, next);
    // k = outer * factor + inner, then what is left.
    const auto part = [&](int64_t count, int64_t step, LoopKind kind) {
      return NestLoop{loop.axis, count, loop.step * step, kind, -1, false};
    };
    const auto unrolled = [&](const Values& at) {
      return emit_one_loop(
          nest, part(factor, 1, LoopKind::kUnroll), LoopKind::kUnroll, Expr(factor), at, next);
    };
    const Expr trips = simple(floor_div(extent, Expr(factor)));
    std::vector<Stmt> statements;
    statements.push_back(
        emit_one_loop(nest,
                      part(std::max<int64_t>(loop.extent / factor, 1), factor, LoopKind::kSerial),
                      LoopKind::kSerial,
                      trips,
                      values,
                      unrolled));
    const Expr rest = simple(extent - trips * Expr(factor));
    const int64_t* constant_rest = as_int(rest);
    if (constant_rest == nullptr || *constant_rest > 0) {
      Values after = values;
      after[static_cast<size_t>(loop.axis)] =
          simple(after[static_cast<size_t>(loop.axis)] + trips * Expr(factor * loop.step));
      statements.push_back(emit_one_loop(
          nest, part(factor - 1, 1, LoopKind::kSerial), LoopKind::kSerial, rest, after, next));
    }
    return statements.size() == 1 ? statements[0] : make_stmt(Block{std::move(statements)});
  }

  // Statements in one iteration of loop i when everything inside it is unrolled; 0 when it is not.
  int64_t copies_inside(const NestStage& nest, const ReduceRun& run, int i) const {
    int64_t copies = 1;
    for (size_t k = static_cast<size_t>(run.end); k < nest.loops.size(); ++k) {
      if (nest.loops[k].kind == LoopKind::kUnroll) copies *= nest.loops[k].extent;
    }
    for (int k = run.end - 1; k > i; --k) {
      const NestLoop& loop = nest.loops[static_cast<size_t>(k)];
      if (loop.kind != LoopKind::kSerial) continue;
      copies *= loop.extent;
      if (loop.ragged || copies > nest.unroll_steps) return 0;
    }
    return copies;
  }

  // The largest factor up to `limit`; one that divides the extent when that costs at most half.
  // What is left over runs one by one, so there are to be several trips before it.
  static int64_t unroll_factor(int64_t extent, int64_t limit) {
    constexpr int64_t kLeastTrips = 3;
    const int64_t most = std::min(extent, limit);
    for (int64_t f = most; f > most / 2; --f) {
      if (extent % f == 0) return f;
    }
    return std::min(most, extent / kLeastTrips);
  }

  // Loads along the vector loop of anything that ends with its tensor: arguments that are not
  // packed, and whole stages. Buffers of regions hold all lanes.
  bool needs_mask(const NestStage& nest) const {
    const int vector = vectorized_axis(nest);
    if (vector < 0) return true;
    for (const Access& access : sketch_.tables->accesses[static_cast<size_t>(nest.stage.value)]) {
      const StageState& s = state(access.producer);
      const bool padded = !s.pack.order.empty() || !s.base.empty();
      if (padded) continue;
      for (const std::optional<Affine>& index : access.indices) {
        if (!index || index->coefficient(VarId{vector}) != 0) return true;
      }
    }
    // A guard in the body may hold loads that the table could not place.
    return has_select(dag_[nest.stage].body);
  }

  /// Sets the stage's buffer to the neutral element.
  Stmt emit_fill(const NestStage& nest) {
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
      Stmt vector =
          make_stmt(For{lane, Expr(lanes), LoopKind::kVectorize, lanes, loops(d + 1, at)});
      return make_stmt(For{index, Expr(shape[d] / lanes), LoopKind::kSerial, 1, std::move(vector)});
    };
    return loops(0, {});
  }

  const Sketch& sketch_;
  const ComputeDag& dag_;
  const LoopNest& nest_;
  Program program_;
  std::vector<Range> ranges_;
  std::vector<StageState> stages_;
  std::map<int32_t, std::vector<Expr>> region_base_;
  bool guards_hold_ = false;  // in the tile at hand
};

}  // namespace

Result<Program> lower(const Space& space, const Candidate& candidate, std::string name) {
  std::string why;
  if (!is_legal(space, candidate, &why)) return Error("not a legal candidate: ", why);
  const LoopNest nest = make_loop_nest(space, candidate);
  Program program = Lowering(space[candidate.sketch], nest, std::move(name)).run();
#ifndef NDEBUG
  TRY(verify(program));
#endif
  return program;
}

}  // namespace pruner
