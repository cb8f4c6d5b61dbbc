#include "lower/gpu.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "lower/builder.h"
#include "space/plan.h"

namespace pruner {
namespace {

using Values = std::vector<Expr>;

class GpuLowering : private ProgramParts {
 public:
  GpuLowering(const Sketch& sketch, const LoopNest& nest, std::string name)
      : sketch_(sketch), dag_(sketch.dag), nest_(nest), stages_(sketch.dag.stages.size()) {
    program_.name = std::move(name);
  }

  Program run() {
    declare_buffers();
    std::vector<Stmt> kernels;
    for (const NestStage& stage : nest_.stages) {
      if (!stage.at.valid()) kernels.push_back(kernel(stage));
    }
    program_.body = kernels.size() == 1 ? kernels[0] : make_stmt(Block{std::move(kernels)});
    return std::move(program_);
  }

 private:
  /// How loads of a stage are made: of its buffer at the indices of the load, turned by `place`.
  struct StageState {
    TensorId buffer;
    std::function<Values(const Values&)> place;  // empty: as they are
  };
  using Emit = std::function<Stmt(const Values&)>;

  const NestStage& nest(StageId id) const {
    return nest_
        .stages[static_cast<size_t>(sketch_.tables->plan_of[static_cast<size_t>(id.value)])];
  }
  StageState& state(StageId id) { return stages_[static_cast<size_t>(id.value)]; }
  StageRole role(const NestStage& stage) const {
    return sketch_.plans[static_cast<size_t>(&stage - nest_.stages.data())].role;
  }
  std::vector<const NestStage*> attached_to(StageId id) const {
    std::vector<const NestStage*> found;
    for (const NestStage& stage : nest_.stages) {
      if (stage.at == id) found.push_back(&stage);
    }
    return found;
  }

  // ---- buffers and bodies

  void declare_buffers() {
    for (const StageId id : sketch_.args) {
      const Stage& s = dag_[id];
      if (!state(id).buffer.valid()) {
        state(id).buffer =
            program_.add_buffer({s.name, s.dtype, s.shape(), Scope::kArgument, 1, s.output, {}, 0});
      }
      program_.args.push_back(state(id).buffer);
    }
    for (const NestStage& stage : nest_.stages) {
      if (stage.scope != Scope::kWorkspace) continue;
      const Stage& s = dag_[stage.stage];
      Buffer buffer{
          s.name, s.dtype, s.shape(), stage.scope, 1, false, {}, program_.workspace_bytes};
      program_.workspace_bytes += (buffer.bytes() + 63) / 64 * 64;
      state(stage.stage).buffer = program_.add_buffer(std::move(buffer));
    }
  }

  TensorId add_buffer(const NestStage& stage,
                      std::vector<int64_t> shape,
                      Scope scope,
                      const std::string& suffix = "") {
    const Stage& s = dag_[stage.stage];
    if (shape.empty()) shape.push_back(1);
    return program_.add_buffer(
        {s.name + suffix, s.dtype, std::move(shape), scope, 1, false, {}, 0});
  }

  // A stage's body at `values`, its loads turned into loads of buffers.
  Expr body_at(StageId id, const Values& values) {
    const Expr substituted = substitute(dag_[id].body, values);
    const Expr loads = rewrite(substituted, [&](const Expr& e) -> Expr {
      const Load* read = as<Load>(e);
      if (read == nullptr) return Expr();
      const StageState& s = state(read->tensor);
      Values indices = s.place ? s.place(read->indices) : read->indices;
      for (Expr& index : indices) index = simple(index);
      return load(s.buffer, std::move(indices), e->dtype);
    });
    return simple(loads);
  }

  Expr load_of(TensorId buffer, const Values& at) const {
    return load(buffer, at, program_[buffer].dtype);
  }

  static Stmt block(std::vector<Stmt> statements) {
    return statements.size() == 1 ? statements[0] : make_stmt(Block{std::move(statements)});
  }
  // Nothing where the condition is known to hold.
  Stmt guarded(const Expr& condition, Stmt body) const {
    const Expr simplified = simple(condition);
    return always(simplified) ? body : make_stmt(If{simplified, std::move(body)});
  }
  bool always(const Expr& condition) const { return bounds(condition, ranges_).first >= 1; }
  static Expr both(const Expr& a, const Expr& b) { return a ? a && b : b; }

  // ---- kernels

  // `count` iterations of one index, which `loops` divide in row-major order.
  Stmt decode(const std::vector<const NestLoop*>& loops,
              const std::string& name,
              const Expr& index,
              size_t first,
              const std::function<void(const NestLoop&, const Expr&)>& place,
              const std::function<Stmt()>& inner) {
    if (first == loops.size()) return inner();
    int64_t inside = 1;
    for (size_t i = first + 1; i < loops.size(); ++i) inside *= loops[i]->extent;
    const NestLoop& loop = *loops[first];
    const VarId position = new_var(name, {0, loop.extent - 1});
    const Expr value = simple(floor_mod(floor_div(index, Expr(inside)), Expr(loop.extent)));
    place(loop, var(position));
    return make_stmt(Let{position, value, decode(loops, name, index, first + 1, place, inner)});
  }

  // Where the thread at hand works: starts by axis, of the block and of the thread; the fused
  // loops' indices by -axis.
  struct Place {
    Values block, thread;                                   // by axis of the root
    Expr spatial = Expr(0), rows = Expr(0), row = Expr(0);  // fused; `row` counts in the block
    Expr lane = Expr(0);                                    // thread of the row
    int64_t block_rows = 1, lanes = 1;
    int64_t threads = 1;
    Expr thread_index;
  };

  Stmt kernel(const NestStage& root) {
    std::vector<const NestLoop*> blocks, threads;
    int64_t grid = 1;
    place_ = {};
    place_.block.assign(dag_[root.stage].axes.size(), Expr(0));
    place_.thread = place_.block;
    for (const NestLoop& loop : root.loops) {
      if (loop.kind == LoopKind::kBlock) grid *= loop.extent;
      if (loop.kind == LoopKind::kBlock) blocks.push_back(&loop);
      if (loop.kind == LoopKind::kThread) place_.threads *= loop.extent;
      if (loop.kind == LoopKind::kThread) threads.push_back(&loop);
    }
    const VarId b = new_var("block", {0, grid - 1}), t = new_var("thread", {0, place_.threads - 1});
    place_.thread_index = var(t);
    shared_.clear();
    Stmt body = decode(
        blocks,
        "b",
        var(b),
        0,
        [&](auto& l, auto& at) { move(l, at); },
        [&] {
          return decode(
              threads,
              "t",
              var(t),
              0,
              [&](auto& l, auto& at) { move(l, at); },
              [&] {
                switch (role(root)) {
                  case StageRole::kBlockTile: return block_tile(root);
                  case StageRole::kRows: return rows(root);
                  default: return elements(root);
                }
              });
        });
    // Lets of blocks stand inside the thread loop, where they do no harm.
    body = make_stmt(For{t, Expr(place_.threads), LoopKind::kThread, 1, std::move(body)});
    for (const TensorId buffer : shared_) body = make_stmt(Allocate{buffer, body});
    return make_stmt(For{b, Expr(grid), LoopKind::kBlock, 1, std::move(body)});
  }

  void move(const NestLoop& loop, const Expr& at) {
    const Expr advance = at * Expr(loop.step);
    if (loop.axis == kFusedSpatial) {
      place_.spatial = simple(place_.spatial + advance);
      if (loop.kind == LoopKind::kThread) place_.lane = at, place_.lanes = loop.extent;
    } else if (loop.axis == kFusedRows) {
      place_.rows = simple(place_.rows + advance);
      if (loop.kind == LoopKind::kThread) place_.row = at, place_.block_rows = loop.extent;
    } else {
      Expr& thread = place_.thread[static_cast<size_t>(loop.axis)];
      thread = simple(thread + advance);
      if (loop.kind == LoopKind::kThread) return;
      Expr& start = place_.block[static_cast<size_t>(loop.axis)];
      start = simple(start + advance);
    }
  }

  // ---- tiles of a contraction

  // Loops [first, end) of a stage around what `inner` makes of the global values and the dense
  // ones, which count within the thread's tile. The innermost are unrolled while they are no more
  // than `unroll` iterations in all.
  struct Point {
    Values values, dense;
  };
  Stmt thread_loops(const NestStage& stage,
                    size_t first,
                    int64_t unroll,
                    const Point& at,
                    const std::function<Stmt(const Point&)>& inner) {
    if (first == stage.loops.size()) return inner(at);
    const NestLoop& loop = stage.loops[first];
    int64_t dense_step = 1, copies = loop.extent;
    for (size_t i = first + 1; i < stage.loops.size(); ++i) {
      copies *= stage.loops[i].extent;
      if (stage.loops[i].axis == loop.axis) dense_step *= stage.loops[i].extent;
    }
    const VarId index = new_var(iterator_name(dag_[stage.stage], loop.axis), {0, loop.extent - 1});
    Point next = at;
    const size_t axis = static_cast<size_t>(loop.axis);
    next.values[axis] = simple(next.values[axis] + var(index) * Expr(loop.step));
    next.dense[axis] = simple(next.dense[axis] + var(index) * Expr(dense_step));
    const bool unrolled = loop.kind == LoopKind::kUnroll || copies <= unroll;
    const LoopKind kind = unrolled ? LoopKind::kUnroll : LoopKind::kSerial;
    return make_stmt(For{
        index, Expr(loop.extent), kind, 1, thread_loops(stage, first + 1, unroll, next, inner)});
  }

  // The condition that a point lies in its stage, over the axes that tiles may leave.
  Expr inside(StageId id, const Values& values, size_t first, size_t end) const {
    const Stage& s = dag_[id];
    Expr condition;
    for (size_t a = first; a < end; ++a) {
      const size_t spatial = s.axes.size();
      const int64_t extent = a < spatial ? s.axes[a].extent : s.reduce_axes[a - spatial].extent;
      const Expr within = simple(values[a] < Expr(extent));
      if (!always(within)) condition = both(condition, within);
    }
    return condition;
  }
  Stmt if_inside(const Expr& condition, Stmt body) const {
    return condition ? make_stmt(If{simple(condition), std::move(body)}) : body;
  }

  Stmt block_tile(const NestStage& root) {
    const NestStage& sum = *attached_to(root.stage)[0];
    const Stage& s = dag_[sum.stage];
    const std::vector<const NestStage*> fetched = attached_to(sum.stage);
    const size_t rank = s.axes.size(), reduces = s.reduce_axes.size();

    std::vector<int> dims;  // of the accumulators
    std::vector<int64_t> shape;
    for (size_t a = 0; a < rank; ++a) {
      if (sum.extents[a] <= 1) continue;
      dims.push_back(static_cast<int>(a));
      shape.push_back(sum.extents[a]);
    }
    const TensorId sums = add_buffer(sum, shape, Scope::kLocal);
    const auto own = [dims](const Values& dense) {
      Values at;
      for (const int d : dims) at.push_back(dense[static_cast<size_t>(d)]);
      if (at.empty()) at.push_back(Expr(0));
      return at;
    };

    const size_t depth = static_cast<size_t>(sum.chunk_loops);
    std::vector<const NestLoop*> chunks;
    int64_t count = 1;
    for (size_t i = 0; i < depth; ++i) {
      chunks.push_back(&sum.loops[i]);
      count *= sum.loops[i].extent;
    }
    const int buffers = sum.double_buffer && count > 1 ? 2 : 1;
    for (const NestStage* operand : fetched) {
      std::vector<int64_t> box = operand->extents;
      if (buffers == 2) box.insert(box.begin(), 2);
      state(operand->stage).buffer = add_buffer(*operand, box, Scope::kShared);
      shared_.push_back(state(operand->stage).buffer);
    }

    Point start{place_.thread, Values(rank + reduces, Expr(0))};
    start.values.resize(rank + reduces, Expr(0));
    const NestStage tile = from_loop(root, static_cast<size_t>(sum.depth));

    const Stmt clear = thread_loops(tile, 0, kMostUnrolled, start, [&](const Point& at) {
      return make_stmt(Store{sums, own(at.dense), combiner_identity(s.combiner, s.dtype), false});
    });
    // What one chunk adds; `chunk` numbers it.
    const auto add_chunk = [&](const Values& chunk, const Expr& buffer) {
      set_shared_places(sum, fetched, chunk, buffers == 2 ? buffer : Expr());
      Point at = start;
      for (size_t r = rank; r < chunk.size(); ++r) at.values[r] = chunk[r];
      const bool direct = reads_directly(sum, fetched);
      return thread_loops(from_loop(sum, depth), 0, sum.unroll_steps, at, [&](const Point& p) {
        Expr condition = inside(sum.stage, p.values, direct ? 0 : rank, rank + reduces);
        const Expr value =
            combine(s.combiner, load_of(sums, own(p.dense)), body_at(sum.stage, p.values));
        return if_inside(condition, make_stmt(Store{sums, own(p.dense), value, false}));
      });
    };
    const auto fetch_chunk = [&](const Values& chunk, const Expr& buffer) {
      std::vector<Stmt> fetches;
      for (const NestStage* operand : fetched)
        fetches.push_back(fetch(*operand, sum, chunk, buffers == 2 ? buffer : Expr()));
      return block(std::move(fetches));
    };
    const auto at_chunk = [&](const Expr& number, const std::function<Stmt(const Values&)>& inner) {
      Values chunk(rank + reduces, Expr(0));
      for (size_t a = 0; a < rank; ++a) chunk[a] = place_.block[a];
      const auto place = [&](const NestLoop& loop, const Expr& at) {
        chunk[static_cast<size_t>(loop.axis)] = simple(at * Expr(loop.step));
      };
      return decode(chunks, "k", number, 0, place, [&] { return inner(chunk); });
    };

    std::vector<Stmt> body = {clear};
    const VarId number = new_var("chunk", {0, count - 1});
    const Stmt barrier = make_stmt(Barrier{});
    Stmt loop;
    if (buffers == 2) {
      body.push_back(at_chunk(Expr(0), [&](const Values& c) { return fetch_chunk(c, Expr(0)); }));
      const VarId next = new_var("next", {0, count - 1});
      Stmt ahead = at_chunk(var(next), [&](const Values& c) {
        return fetch_chunk(c, simple(floor_mod(var(next), Expr(2))));
      });
      ahead = make_stmt(Let{next, var(number) + Expr(1), ahead});
      ahead = make_stmt(If{var(number) < Expr(count - 1), ahead});
      Stmt add = at_chunk(var(number), [&](const Values& c) {
        return add_chunk(c, simple(floor_mod(var(number), Expr(2))));
      });
      loop = block({barrier, ahead, add});
    } else {
      loop = at_chunk(var(number), [&](const Values& c) {
        if (fetched.empty()) return add_chunk(c, Expr());
        std::vector<Stmt> steps = {fetch_chunk(c, Expr()), barrier, add_chunk(c, Expr())};
        if (count > 1) steps.push_back(barrier);
        return block(std::move(steps));
      });
    }
    body.push_back(make_stmt(For{number, Expr(count), LoopKind::kSerial, 1, std::move(loop)}));
    body.push_back(thread_loops(tile, 0, kMostUnrolled, start, [&](const Point& p) {
      const Values sums_at = own(p.dense);
      state(sum.stage) = {sums, [sums_at](const Values&) { return sums_at; }};
      Values point(p.values.begin(), p.values.begin() + static_cast<int64_t>(rank));
      return if_inside(
          inside(root.stage, point, 0, rank),
          make_stmt(Store{state(root.stage).buffer, point, body_at(root.stage, point), false}));
    }));
    return make_stmt(Allocate{sums, block(std::move(body))});
  }

  static NestStage from_loop(const NestStage& stage, size_t first) {
    NestStage rest = stage;
    rest.loops.erase(rest.loops.begin(), rest.loops.begin() + static_cast<int64_t>(first));
    return rest;
  }

  // Whether a contraction loads what no shared memory holds.
  bool reads_directly(const NestStage& sum, const std::vector<const NestStage*>& fetched) const {
    return dag_.producers(sum.stage).size() > fetched.size();
  }

  void set_shared_places(const NestStage& sum,
                         const std::vector<const NestStage*>& fetched,
                         const Values& chunk,
                         const Expr& buffer) {
    for (const NestStage* operand : fetched) {
      const Values start = region_start(sketch_, operand->stage, sum.stage, chunk);
      state(operand->stage).place = [start, buffer](const Values& point) {
        Values at;
        if (buffer) at.push_back(buffer);
        for (size_t d = 0; d < point.size(); ++d) at.push_back(point[d] - start[d]);
        return at;
      };
    }
  }

  // The threads of the block fetch the box of an operand that a chunk needs; what lies beyond the
  // operand is 0.
  Stmt fetch(const NestStage& operand,
             const NestStage& sum,
             const Values& chunk,
             const Expr& buffer) {
    const Stage& s = dag_[operand.stage];
    const Values start = region_start(sketch_, operand.stage, sum.stage, chunk);
    int64_t total = 1;
    for (const int64_t extent : operand.extents) total *= extent;
    int64_t rounds = 1, lanes = 1;
    for (const NestLoop& loop : operand.loops) {
      if (loop.kind == LoopKind::kSerial) rounds = loop.extent;
      if (loop.kind == LoopKind::kVectorize) lanes = loop.extent;
    }
    const VarId round = new_var("f", {0, rounds - 1}), lane = new_var("lane", {0, lanes - 1});
    const Expr first =
        simple((var(round) * Expr(place_.threads) + place_.thread_index) * Expr(lanes));
    // Of the fused index, but for the lane: vectors divide the last dimension of the box.
    std::vector<std::pair<VarId, Expr>> lets;
    Values point, at;
    if (buffer) at.push_back(buffer);
    int64_t below = total;
    for (size_t d = 0; d < s.axes.size(); ++d) {
      below /= operand.extents[d];
      Expr coordinate = floor_div(first, Expr(below));
      if (d > 0) coordinate = floor_mod(coordinate, Expr(operand.extents[d]));
      coordinate = simple(coordinate);
      if (!as<IntImm>(coordinate)) {
        const bool last = d + 1 == s.axes.size();
        const VarId let =
            new_var("c", {0, last ? operand.extents[d] - lanes : operand.extents[d] - 1});
        lets.push_back({let, coordinate});
        coordinate = var(let);
      }
      if (d + 1 == s.axes.size() && lanes > 1) coordinate = coordinate + var(lane);
      at.push_back(simple(coordinate));
      point.push_back(simple(start[d] + coordinate));
    }
    const Expr condition = inside(operand.stage, point, 0, point.size());
    Expr value = body_at(operand.stage, point);
    if (condition) {
      value = select(simple(condition),
                     value,
                     is_float(s.dtype) ? float_imm(0, s.dtype) : int_imm(0, s.dtype));
    }
    Stmt body = make_stmt(Store{state(operand.stage).buffer, at, value, false});
    if (lanes > 1) {
      body = make_stmt(
          For{lane, Expr(lanes), LoopKind::kVectorize, static_cast<int>(lanes), std::move(body)});
    }
    for (size_t i = lets.size(); i-- > 0;)
      body = make_stmt(Let{lets[i].first, lets[i].second, body});
    body = guarded(first < Expr(total), std::move(body));
    return make_stmt(For{round, Expr(rounds), LoopKind::kSerial, 1, std::move(body)});
  }

  // ---- elements

  // Values of axes [first, end) of a stage, of which `index` numbers the points in row-major order.
  Stmt decode_axes(const std::vector<Iterator>& axes,
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
    for (size_t i = lets.size(); i-- > 0;)
      body = make_stmt(Let{lets[i].first, lets[i].second, body});
    return body;
  }

  Stmt elements(const NestStage& root) {
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

  Stmt one_element(const NestStage& root, const Values& values) {
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
    body.push_back(make_stmt(Store{state(root.stage).buffer, point, value, false}));
    Stmt result = block(std::move(body));
    for (const TensorId sum : sums) result = make_stmt(Allocate{sum, result});
    return result;
  }

  Stmt serial_reduction(const NestStage& stage, const Values& point, TensorId sum) {
    const Stage& s = dag_[stage.stage];
    const Values zero = {Expr(0)};
    Point at{point, {}};
    at.values.resize(s.axes.size() + s.reduce_axes.size(), Expr(0));
    at.dense = at.values;
    NestStage loops = stage;
    std::erase_if(loops.loops, [&](const NestLoop& loop) {
      return loop.axis < static_cast<int>(s.axes.size());
    });
    const Stmt add = thread_loops(loops, 0, stage.unroll_steps, at, [&](const Point& p) {
      return make_stmt(
          Store{sum,
                zero,
                combine(s.combiner, load_of(sum, zero), body_at(stage.stage, p.values)),
                false});
    });
    return block({make_stmt(Store{sum, zero, combiner_identity(s.combiner, s.dtype), false}), add});
  }

  // ---- rows

  Stmt rows(const NestStage& root) {
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
      const int64_t rounds = (rest + place_.lanes - 1) / place_.lanes;
      const VarId round = new_var("j", {0, rounds - 1});
      const Expr index = simple(var(round) * Expr(place_.lanes) + place_.lane);
      Stmt write = decode_axes(s.axes, row_axes, s.axes.size(), index, at, 0, [&](const Values& p) {
        return make_stmt(Store{state(root.stage).buffer, p, body_at(root.stage, p), false});
      });
      write = guarded(place_.rows < Expr(count), guarded(index < Expr(rest), std::move(write)));
      body.push_back(make_stmt(For{round, Expr(rounds), LoopKind::kSerial, 1, std::move(write)}));
      return block(std::move(body));
    });
  }

  // Each thread of the row folds its share of the terms; then halves of the threads fold the
  // others' results.
  Stmt row_reduction(const NestStage& stage, const Values& row) {
    const Stage& s = dag_[stage.stage];
    const int64_t terms = s.reduce_size(), rounds = (terms + place_.lanes - 1) / place_.lanes;
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
          return make_stmt(Store{
              sum, zero, combine(s.combiner, load_of(sum, zero), body_at(stage.stage, at)), false});
        });
    add = make_stmt(For{
        round, Expr(rounds), LoopKind::kSerial, 1, guarded(index < Expr(terms), std::move(add))});
    const auto part = [&](const Expr& lane) { return Values{place_.row, lane}; };
    const Stmt barrier = make_stmt(Barrier{});
    std::vector<Stmt> body = {
        make_stmt(Store{sum, zero, combiner_identity(s.combiner, s.dtype), false}),
        add,
        make_stmt(Store{parts, part(place_.lane), load_of(sum, zero), false}),
        barrier};
    for (int64_t half = place_.lanes / 2; half >= 1; half /= 2) {
      const Expr folded = combine(s.combiner,
                                  load_of(parts, part(place_.lane)),
                                  load_of(parts, part(simple(place_.lane + Expr(half)))));
      body.push_back(make_stmt(
          If{place_.lane < Expr(half), make_stmt(Store{parts, part(place_.lane), folded, false})}));
      body.push_back(barrier);
    }
    const Expr own_row = place_.row;
    state(stage.stage) = {parts, [own_row](const Values&) { return Values{own_row, Expr(0)}; }};
    return make_stmt(Allocate{sum, block(std::move(body))});
  }

  // Loops that set and write accumulators are unrolled up to so many iterations.
  static constexpr int64_t kMostUnrolled = 256;

  const Sketch& sketch_;
  const ComputeDag& dag_;
  const LoopNest& nest_;
  std::vector<StageState> stages_;
  Place place_;
  std::vector<TensorId> shared_;  // of the kernel at hand
};

}  // namespace

Program lower_for_gpu(const Sketch& sketch, const LoopNest& nest, std::string name) {
  return GpuLowering(sketch, nest, std::move(name)).run();
}

}  // namespace pruner
