#include "lower/lower.h"

#include <algorithm>
#include <numeric>

#include "lower/gpu.h"
#include "lower/lowering.h"

namespace pruner {

Program Lowering::run() {
  declare_buffers();
  std::vector<Stmt> roots;
  for (const NestStage& stage : nest_.stages) {
    if (!stage.at.valid())
      roots.push_back(emit_stage(stage, std::vector<Expr>(stage.extents.size(), Expr(0))));
  }
  program_.body = roots.size() == 1 ? roots[0] : make_stmt(Block{std::move(roots)});
  return std::move(program_);
}

void Lowering::declare_buffers() {
  for (const StageId id : sketch_.args) {
    const Stage& stage = dag_[id];
    Buffer buffer{stage.name, stage.dtype, stage.shape(), Scope::kArgument, 1, stage.output, {}, 0};
    buffer.pack.transform = stage.transform;  // whose result is what the stage holds
    if (const PackSpec* spec = packing_of(nest_, id)) buffer.repack = *spec;
    if (state(id).buffer.valid()) continue;
    state(id).buffer = program_.add_buffer(std::move(buffer));
    all_dims(id);
  }
  for (const StageId id : sketch_.args) program_.args.push_back(state(id).buffer);
  for (const NestStage& stage : nest_.stages) {
    const Stage& s = dag_[stage.stage];
    if (s.output) {
      program_.buffers[static_cast<size_t>(state(stage.stage).buffer.value)].stream =
          stage.streaming;
      // Tiles that start earlier write their overlap twice.
      for (const NestLoop& loop : stage.loops)
        program_.rewrites = program_.rewrites || loop.clamp >= 0;
      continue;
    }
    Buffer buffer{s.name, s.dtype, {}, stage.scope, 1, false, {}, 0};
    if (stage.scope == Scope::kWorkspace) {
      buffer.shape = s.shape();
      buffer.workspace_offset = program_.workspace_bytes;
      Buffer room = buffer;
      if (const PackSpec* spec = packing_of(nest_, stage.stage)) {
        buffer.repack = *spec;
        room.shape = spec->packed_shape(buffer.shape);
      }
      program_.workspace_bytes += (room.bytes() + 63) / 64 * 64;
      all_dims(stage.stage);
    } else {
      // A region keeps the dimensions of more than one element, and that of the vectors.
      const int vector = vectorized_axis(stage);
      for (int d = 0; d < static_cast<int>(s.axes.size()); ++d) {
        if (stage.extents[d] > 1 || d == vector) state(stage.stage).dims.push_back(d);
      }
      for (const int d : state(stage.stage).dims) buffer.shape.push_back(stage.extents[d]);
      if (buffer.shape.empty()) buffer.shape.push_back(1);
      if (stage.scope == Scope::kRegister) buffer.lanes = vector_lanes(stage);
    }
    buffer.stream = stage.streaming;
    state(stage.stage).buffer = program_.add_buffer(std::move(buffer));
  }
}

void Lowering::all_dims(StageId id) {
  state(id).dims.resize(dag_[id].axes.size());
  std::iota(state(id).dims.begin(), state(id).dims.end(), 0);
}

// The spatial axis that the stage's vector loop runs along; -1: none.
int Lowering::vectorized_axis(const NestStage& stage) const {
  for (const NestLoop& loop : stage.loops) {
    if (loop.kind == LoopKind::kVectorize &&
        loop.axis < static_cast<int>(dag_[stage.stage].axes.size()))
      return loop.axis;
  }
  return -1;
}

int Lowering::vector_lanes(const NestStage& stage) const {
  for (const NestLoop& loop : stage.loops) {
    if (loop.kind == LoopKind::kVectorize && vectorized_axis(stage) >= 0)
      return static_cast<int>(loop.extent);
  }
  return 1;
}

std::vector<Expr> Lowering::buffer_indices(StageId id, const Values& point) const {
  const StageState& s = state(id);
  std::vector<Expr> indices;
  for (const int d : s.dims) {
    const Expr& at = point[static_cast<size_t>(d)];
    indices.push_back(s.base.empty() ? at : at - s.base[static_cast<size_t>(d)]);
  }
  // A region of one element is a buffer of one dimension, of a stage without axes as of others.
  if (indices.empty() && !program_[s.buffer].shape.empty()) indices.push_back(Expr(0));
  return indices;
}

Result<Program> lower(const Space& space,
                      const Candidate& candidate,
                      std::string name,
                      const AfterLowerPass& after) {
  TRY_ASSIGN(const LoopNest nest, legal_nest(space, candidate));
  const Sketch& sketch = space[candidate.sketch];
  const bool gpu = space.target.is_gpu();
  Program loops = gpu ? lower_for_gpu(sketch, nest, space.target.gpu, std::move(name))
                      : Lowering(sketch, nest, std::move(name)).run();
  return run_lower_passes(std::move(loops), gpu, after);
}

Result<std::string> print_after(std::string_view pass,
                                const Space& space,
                                const Candidate& candidate) {
  std::string text, names;
  const auto after = [&](std::string_view name, const Program& program) {
    names.append(names.empty() ? "" : ", ").append(name);
    if (name == pass) text = print(program);
  };
  TRY(lower(space, candidate, "kernel", after));
  if (text.empty()) return Error("no pass \"", pass, "\" ran; use one of ", names);
  return text;
}

}  // namespace pruner
