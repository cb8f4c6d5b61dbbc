#include "lower/gpu.h"

#include <algorithm>

#include "lower/gpu_lowering.h"
#include "space/structure.h"

namespace pruner {

Program GpuLowering::run() {
  declare_buffers();
  std::vector<Stmt> kernels;
  for (const NestStage& stage : nest_.stages) {
    if (!stage.at.valid()) kernels.push_back(kernel(stage));
  }
  program_.body = kernels.size() == 1 ? kernels[0] : make_stmt(Block{std::move(kernels)});
  return std::move(program_);
}

void GpuLowering::declare_buffers() {
  for (const StageId id : sketch_.args) {
    const Stage& s = dag_[id];
    if (!state(id).buffer.valid()) {
      Buffer buffer{s.name, s.dtype, s.shape(), Scope::kArgument, 1, s.output, {}, 0};
      buffer.constant = s.constant;
      buffer.pack.transform = s.transform;  // whose result is what the stage holds
      state(id).buffer = program_.add_buffer(std::move(buffer));
    }
    program_.args.push_back(state(id).buffer);
  }
  for (const NestStage& stage : nest_.stages) {
    if (stage.scope != Scope::kWorkspace) continue;
    const Stage& s = dag_[stage.stage];
    Buffer buffer{s.name, s.dtype, s.shape(), stage.scope, 1, false, {}, program_.workspace_bytes};
    program_.workspace_bytes += (buffer.bytes() + 63) / 64 * 64;  // offsets are aligned to 64
    state(stage.stage).buffer = program_.add_buffer(std::move(buffer));
  }
}

TensorId GpuLowering::add_buffer(const NestStage& stage,
                                 std::vector<int64_t> shape,
                                 Scope scope,
                                 const std::string& suffix) {
  const Stage& s = dag_[stage.stage];
  if (shape.empty()) shape.push_back(1);
  return program_.add_buffer({s.name + suffix, s.dtype, std::move(shape), scope, 1, false, {}, 0});
}

TensorId GpuLowering::hold(const NestStage& stage, std::vector<int64_t> held, const char* suffix) {
  registers_.push_back(add_buffer(stage, std::move(held), Scope::kRegister, suffix));
  return registers_.back();
}

Stmt GpuLowering::with_registers(Stmt body) const {
  for (const TensorId id : registers_) body = make_stmt(Allocate{id, std::move(body)});
  return body;
}

std::vector<const NestStage*> GpuLowering::attached_to(StageId id) const {
  std::vector<const NestStage*> found;
  for (const NestStage& stage : nest_.stages) {
    if (stage.at == id) found.push_back(&stage);
  }
  return found;
}

std::vector<const NestStage*> GpuLowering::attached_to(const NestStage& root,
                                                       bool contractions) const {
  std::vector<const NestStage*> found = attached_to(root.stage);
  std::erase_if(found, [&](const NestStage* stage) {
    return nest_.tables->mmas[stage->stage].has_value() != contractions;
  });
  return found;
}

Stmt GpuLowering::decode(const std::vector<const NestLoop*>& loops,
                         const std::string& name,
                         const Expr& index,
                         size_t first,
                         const std::function<void(const NestLoop&, const Expr&)>& place,
                         const std::function<Stmt()>& inner) {
  if (first == loops.size()) return inner();
  // Iterations of the loops after this one: the place of its digit in `index`.
  int64_t inside = 1;
  for (size_t i = first + 1; i < loops.size(); ++i) inside *= loops[i]->extent;
  const NestLoop& loop = *loops[first];
  const VarId position = new_var(name, {0, loop.extent - 1});
  const Expr value = simple(floor_mod(floor_div(index, Expr(inside)), Expr(loop.extent)));
  place(loop, var(position));
  return make_stmt(Let{position, value, decode(loops, name, index, first + 1, place, inner)});
}

// Makes the kernel of a root. Its threads write a row together, whose sums they share, or a tile
// together, or each thread writes elements by itself.
Stmt GpuLowering::kernel(const NestStage& root) {
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
  // Warps are numbered by themselves.
  if (root.structure->has_fragments()) threads.clear();
  const VarId b = new_var("block", {0, grid - 1}), t = new_var("thread", {0, place_.threads - 1});
  place_.thread_index = var(t);
  shared_.clear();
  registers_.clear();
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
            [&] { return thread_body(root); });
      });
  // Lets of blocks stand inside the thread loop, where they do no harm.
  body = make_stmt(For{t, Expr(place_.threads), LoopKind::kThread, 1, std::move(body)});
  for (const TensorId buffer : shared_) body = make_stmt(Allocate{buffer, body});
  return make_stmt(For{b, Expr(grid), LoopKind::kBlock, 1, std::move(body)});
}

// A kernel that other launches of a network come before waits for these, unless its work on
// constants comes first.
Stmt GpuLowering::thread_body(const NestStage& root) {
  if (is_attention(*root.structure)) return after_others(attention(root));
  if (root.structure->has_fragments()) return warp_tile(root);
  if (root.structure->fetches()) return after_others(block_tile(root));
  if (root.structure == &kThreadTransform) return after_others(transform(root));
  return after_others(root.structure == &kBlockRows ? rows(root) : elements(root));
}

Stmt GpuLowering::after_others(Stmt body) const {
  if (!begins_early()) return body;
  return block({make_stmt(GridWait{}), std::move(body)});
}

// Loops of threads move the thread alone, those of blocks the block, too.
void GpuLowering::move(const NestLoop& loop, const Expr& at) {
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

Expr GpuLowering::inside(StageId id, const Values& values, size_t first, size_t end) const {
  const Stage& s = dag_[id];
  // Stays empty where the bounds show that the point lies inside.
  Expr condition;
  for (size_t a = first; a < end; ++a) {
    const size_t spatial = s.axes.size();
    const int64_t extent = a < spatial ? s.axes[a].extent : s.reduce_axes[a - spatial].extent;
    const Expr within = simple(values[a] < Expr(extent));
    if (!always(within)) condition = both(condition, within);
  }
  return condition;
}

Stmt GpuLowering::thread_loops(const NestStage& stage,
                               size_t first,
                               int64_t unroll,
                               const Point& at,
                               const std::function<Stmt(const Point&)>& inner) {
  if (first == stage.loops.size()) return inner(at);
  const NestLoop& loop = stage.loops[first];
  // Values step as the nest says, over other threads' elements where these lie between; dense
  // places count the thread's own elements only.
  int64_t dense_step = 1;
  for (size_t i = first + 1; i < stage.loops.size(); ++i) {
    if (stage.loops[i].axis == loop.axis) dense_step *= stage.loops[i].extent;
  }
  const VarId index = new_var(iterator_name(dag_[stage.stage], loop.axis), {0, loop.extent - 1});
  Point next = at;
  const size_t axis = static_cast<size_t>(loop.axis);
  next.values[axis] = simple(next.values[axis] + var(index) * Expr(loop.step));
  next.dense[axis] = simple(next.dense[axis] + var(index) * Expr(dense_step));
  For made{index, Expr(loop.extent), loop.kind, 1, nullptr};
  if (loop.kind == LoopKind::kSerial) made.unroll = unroll;
  made.body = thread_loops(stage, first + 1, unroll, next, inner);
  return make_stmt(std::move(made));
}

Program lower_for_gpu(const Sketch& sketch,
                      const LoopNest& nest,
                      const Gpu& gpu,
                      std::string name) {
  return GpuLowering(sketch, nest, gpu, std::move(name)).run();
}

}  // namespace pruner
