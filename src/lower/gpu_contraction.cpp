// A block's threads fetch the boxes of the operands that a chunk of the reduction needs into shared
// memory, and each adds the chunk to the accumulators of its tile.
#include "lower/gpu_lowering.h"

namespace pruner {

NestStage GpuLowering::from_loop(const NestStage& stage, size_t first) {
  NestStage rest = stage;
  rest.loops.erase(rest.loops.begin(), rest.loops.begin() + static_cast<int64_t>(first));
  return rest;
}

bool GpuLowering::reads_directly(const NestStage& sum,
                                 const std::vector<const NestStage*>& fetched) const {
  return dag_.producers(sum.stage).size() > fetched.size();
}

void GpuLowering::set_shared_places(const NestStage& sum,
                                    const std::vector<const NestStage*>& fetched,
                                    const Values& chunk,
                                    const Expr& buffer) {
  for (const NestStage* operand : fetched) {
    const Values start = region_start(nest_, operand->stage, sum.stage, chunk);
    state(operand->stage).place = [start, buffer](const Values& point) {
      Values at;
      if (buffer) at.push_back(buffer);
      for (size_t d = 0; d < point.size(); ++d) at.push_back(point[d] - start[d]);
      return at;
    };
  }
}

Stmt GpuLowering::fetch(const NestStage& operand,
                        const NestStage& sum,
                        const Values& chunk,
                        const Expr& buffer) {
  const Stage& s = dag_[operand.stage];
  const Values start = region_start(nest_, operand.stage, sum.stage, chunk);
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
    value = select(
        simple(condition), value, is_float(s.dtype) ? float_imm(0, s.dtype) : int_imm(0, s.dtype));
  }
  Stmt body = make_stmt(Store{state(operand.stage).buffer, at, value, false});
  if (lanes > 1) {
    body = make_stmt(
        For{lane, Expr(lanes), LoopKind::kVectorize, static_cast<int>(lanes), std::move(body)});
  }
  for (size_t i = lets.size(); i-- > 0;) body = make_stmt(Let{lets[i].first, lets[i].second, body});
  body = guarded(first < Expr(total), std::move(body));
  return make_stmt(For{round, Expr(rounds), LoopKind::kSerial, 1, std::move(body)});
}

Stmt GpuLowering::block_tile(const NestStage& root) {
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

}  // namespace pruner
