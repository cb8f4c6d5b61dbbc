// A block's threads fetch the boxes of the operands that a chunk of the reduction needs into shared
// memory, and each adds the chunk to the accumulators of its tile.
#include <algorithm>

#include "lower/gpu_lowering.h"
#include "space/structure.h"

namespace pruner {

// The stage without its first loops.
NestStage GpuLowering::from_loop(const NestStage& stage, size_t first) {
  NestStage rest = stage;
  rest.loops.erase(rest.loops.begin(), rest.loops.begin() + static_cast<int64_t>(first));
  return rest;
}

std::vector<int64_t> GpuLowering::held_shape(const NestStage& stage) {
  std::vector<int64_t> shape;
  std::ranges::copy_if(stage.extents, std::back_inserter(shape), [](int64_t n) { return n > 1; });
  return shape;
}

GpuLowering::Values GpuLowering::held_place(const NestStage& stage, const Values& dense) {
  Values at;
  for (size_t a = 0; a < stage.extents.size(); ++a) {
    if (stage.extents[a] > 1) at.push_back(dense[a]);
  }
  if (at.empty()) at.push_back(Expr(0));
  return at;
}

void GpuLowering::set_shared_places(const ThreadTile& tile, const Values& chunk) {
  for (const NestStage* operand : tile.fetched) {
    const Values start = region_start(nest_, operand->stage, tile.sum.stage, chunk);
    state(operand->stage).place = [start](const Values& point) {
      Values at;
      for (size_t d = 0; d < point.size(); ++d) at.push_back(point[d] - start[d]);
      return at;
    };
  }
}

Stmt GpuLowering::fetch(const NestStage& operand, const NestStage& sum, const Values& chunk) {
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
  // `index` is the fused index. Vectors divide the last dimension of the box: the lane is added to
  // the coordinate of that dimension.
  const bool vectors =
      is_gpu_vector(lanes, dtype_bytes(s.dtype), gpu_) && operand.extents.back() % lanes == 0;
  const Expr index = vectors ? first : first + var(lane);
  std::vector<std::pair<VarId, Expr>> lets;
  Values point, at;
  int64_t below = total;
  for (size_t d = 0; d < s.axes.size(); ++d) {
    below /= operand.extents[d];
    Expr coordinate = floor_div(index, Expr(below));
    if (d > 0) coordinate = floor_mod(coordinate, Expr(operand.extents[d]));
    coordinate = simple(coordinate);
    if (!as<IntImm>(coordinate)) {
      const bool last = vectors && d + 1 == s.axes.size();
      const VarId let = new_var("c", {0, operand.extents[d] - (last ? lanes : 1)});
      lets.push_back({let, coordinate});
      coordinate = var(let);
    }
    if (vectors && d + 1 == s.axes.size() && lanes > 1) coordinate = coordinate + var(lane);
    at.push_back(simple(coordinate));
    point.push_back(simple(start[d] + coordinate));
  }
  const Expr value =
      or_zero(inside(operand.stage, point, 0, point.size()), body_at(operand.stage, point));
  Stmt body = make_stmt(Store{state(operand.stage).buffer, at, value});
  const auto each_lane = [&](LoopKind kind) {
    if (lanes == 1) return;
    body = make_stmt(
        For{lane, Expr(lanes), kind, vectors ? static_cast<int>(lanes) : 1, std::move(body)});
  };
  if (vectors) each_lane(LoopKind::kVectorize);
  for (size_t i = lets.size(); i-- > 0;) body = make_stmt(Let{lets[i].first, lets[i].second, body});
  if (!vectors) each_lane(LoopKind::kUnroll);
  body = guarded(first < Expr(total), std::move(body));
  return make_stmt(For{round, Expr(rounds), LoopKind::kSerial, 1, std::move(body)});
}

Stmt GpuLowering::add_chunk(const ThreadTile& tile, const Values& chunk) {
  const NestStage& sum = tile.sum;
  const Stage& s = dag_[sum.stage];
  const size_t rank = s.axes.size(), all = rank + s.reduce_axes.size();
  set_shared_places(tile, chunk);
  Point at = tile.start;
  for (size_t r = rank; r < chunk.size(); ++r) at.values[r] = chunk[r];
  // An operand that no shared memory holds is read where it lies, and only inside of the operand.
  const bool direct = dag_.producers(sum.stage).size() > tile.fetched.size();
  NestStage loops = from_loop(sum, static_cast<size_t>(sum.chunk_loops));
  // Accumulators are in registers where their places are known in the code.
  for (NestLoop& loop : loops.loops)
    if (loop.axis < static_cast<int>(rank)) loop.kind = LoopKind::kUnroll;
  return thread_loops(loops, 0, sum.unroll_steps, at, [&](const Point& p) {
    const Values place = held_place(sum, p.dense);
    const Expr value = combine(s.combiner, load_of(tile.sums, place), body_at(sum.stage, p.values));
    return if_inside(inside(sum.stage, p.values, direct ? 0 : rank, all),
                     make_stmt(Store{tile.sums, place, value}));
  });
}

Stmt GpuLowering::chunks(const ThreadTile& tile) {
  const NestStage& sum = tile.sum;
  std::vector<const NestLoop*> loops;
  int64_t count = 1;
  for (size_t i = 0; i < static_cast<size_t>(sum.chunk_loops); ++i) {
    loops.push_back(&sum.loops[i]);
    count *= sum.loops[i].extent;
  }
  const VarId number = new_var("chunk", {0, count - 1});
  Values chunk = place_.block;
  chunk.resize(chunk.size() + dag_[sum.stage].reduce_axes.size(), Expr(0));
  const auto place = [&](const NestLoop& loop, const Expr& at) {
    chunk[static_cast<size_t>(loop.axis)] = simple(at * Expr(loop.step));
  };
  Stmt body = decode(loops, "k", var(number), 0, place, [&] {
    if (tile.fetched.empty()) return add_chunk(tile, chunk);
    std::vector<Stmt> fetches;
    for (const NestStage* operand : tile.fetched) fetches.push_back(fetch(*operand, sum, chunk));
    const Stmt barrier = make_stmt(Barrier{});
    std::vector<Stmt> steps = {block(std::move(fetches)), barrier, add_chunk(tile, chunk)};
    // The next chunk's fetches wait for the additions of this one.
    if (count > 1) steps.push_back(barrier);
    return block(std::move(steps));
  });
  For loop{number, Expr(count), LoopKind::kSerial, 1, std::move(body)};
  loop.double_buffer = sum.buffers == 2 && count > 1 && !tile.fetched.empty();
  return make_stmt(std::move(loop));
}

Stmt GpuLowering::block_tile(const NestStage& root) {
  const NestStage& sum = *attached_to(root.stage)[0];
  const Stage& s = dag_[sum.stage];
  const size_t rank = s.axes.size(), all = rank + s.reduce_axes.size();
  ThreadTile tile{sum,
                  attached_to(sum.stage),
                  add_buffer(sum, held_shape(sum), Scope::kLocal),
                  {place_.thread, Values(all, Expr(0))}};
  tile.start.values.resize(all, Expr(0));
  for (const NestStage* operand : tile.fetched) {
    state(operand->stage).buffer = add_buffer(*operand, operand->extents, Scope::kShared);
    shared_.push_back(state(operand->stage).buffer);
  }
  const NestStage own = from_loop(root, static_cast<size_t>(sum.depth));
  const Stmt clear = thread_loops(own, 0, kMostUnrolled, tile.start, [&](const Point& p) {
    return make_stmt(
        Store{tile.sums, held_place(sum, p.dense), combiner_identity(s.combiner, s.dtype)});
  });
  const Stmt add = chunks(tile);
  const Stmt write = thread_loops(own, 0, kMostUnrolled, tile.start, [&](const Point& p) {
    const Values place = held_place(sum, p.dense);
    // The root reads the contraction from the accumulator of the same place.
    state(sum.stage) = {tile.sums, [place](const Values&) { return place; }};
    const Values point(p.values.begin(), p.values.begin() + static_cast<int64_t>(rank));
    return if_inside(inside(root.stage, point, 0, rank),
                     make_stmt(Store{state(root.stage).buffer, point, body_at(root.stage, point)}));
  });
  return make_stmt(Allocate{tile.sums, block({clear, add, write})});
}

}  // namespace pruner
