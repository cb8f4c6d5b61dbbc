// Loop nest -> loop IR. Each stage becomes its loops; a stage attached inside these loops is
// emitted where it hangs, into a buffer of just its region. A reduction accumulates in registers
// over its innermost run of reduce loops.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lower/builder.h"
#include "lower/lower.h"

namespace pruner {

class Lowering : private ProgramParts {
 public:
  Lowering(const Sketch& sketch, const LoopNest& nest, std::string name)
      : sketch_(sketch), dag_(sketch.dag), nest_(nest) {
    program_.name = std::move(name);
    stages_.resize(dag_.stages.size());
  }
  Program run();

 private:
  /// `StageState` holds the facts about a stage while the stage is emitted.
  struct StageState {
    TensorId buffer;
    std::vector<Expr> base;  // start of the region that the buffer holds; empty: all of the stage
    std::vector<int> dims;   // dimensions of the stage that the buffer keeps
  };
  /// Values of a stage's iterators at the current place in its loops.
  using Values = std::vector<Expr>;
  /// Makes the statement inside a loop, at the values there.
  using Emit = std::function<Stmt(const Values&)>;

  StageState& state(StageId id) { return stages_[static_cast<size_t>(id.value)]; }
  const StageState& state(StageId id) const { return stages_[static_cast<size_t>(id.value)]; }

  // ---- lower.cpp: buffers and bodies

  void declare_buffers();
  void all_dims(StageId id);
  int vectorized_axis(const NestStage& stage) const;
  int vector_lanes(const NestStage& stage) const;
  /// Indices into the buffer of `id` for the element at `point` of the stage.
  std::vector<Expr> buffer_indices(StageId id, const Values& point) const;
  Expr load_of(StageId id, const Values& point) const {
    return load(state(id).buffer, buffer_indices(id, point), dag_[id].dtype);
  }
  Stmt store_of(StageId id, const Values& point, Expr value) const {
    return make_stmt(Store{state(id).buffer, simple(buffer_indices(id, point)), std::move(value)});
  }
  Expr body_at(StageId id, const Values& values) const {
    return ProgramParts::body_at(dag_[id], values, [&](const Load& read, DType) {
      return load_of(read.tensor, read.indices);
    });
  }

  // ---- loops.cpp: stages and their loops

  Stmt emit_stage(const NestStage& nest, std::vector<Expr> base);
  Stmt emit_loops(const NestStage& nest, int i, const Values& values);
  Stmt emit_rest(const NestStage& nest, int i, const Values& values);
  /// values[axis] advanced by iteration `index` of the loop.
  Stmt advance(const NestStage& nest,
               const NestLoop& loop,
               const Expr& index,
               Values values,
               const Emit& inner);
  Stmt emit_loop(const NestStage& nest, int i, const Values& values, const Emit& inner);
  /// `made`, which has an extent, a kind and notes, with a variable and a body.
  Stmt emit_one_loop(const NestStage& nest,
                     const NestLoop& loop,
                     For made,
                     const Values& values,
                     const Emit& inner);
  /// Iterations of loop `i` at this place: fewer than its extent where the axis or the region ends,
  /// or all terms of a reduction that are left are its neutral element.
  Expr loop_extent(const NestStage& nest, int i, const Values& values) const;
  /// Iterations of loop `i` before the stage's constant part; empty: none of them lies in it.
  Expr iterations_before_part(const NestStage& nest, int i, const Values& values) const;
  /// Emits a loop of two parts: computed elements, and known elements (ConstantPart).
  Stmt emit_split_loop(const NestStage& nest, int i, const Values& values, const Expr& before);
  Stmt emit_parallel(const NestStage& nest, Values values);

  // ---- reductions.cpp

  /// The last unbroken run of reduce loops: [begin, end); `first` is the first reduce loop of all.
  struct ReduceRun {
    int first, begin, end;
  };
  ReduceRun innermost_run(const NestStage& nest) const;
  Stmt emit_tile(const NestStage& nest,
                 int i,
                 bool masked,
                 const Values& values,
                 const Emit& statement,
                 bool adds = false);
  Stmt emit_accumulation(const NestStage& nest, const ReduceRun& run, const Values& values);
  /// Registers that hold a tile of a reduction while it runs.
  struct Tile {
    TensorId buffer;
    std::vector<int> axes;
    std::vector<Expr> base;
  };
  Tile make_accumulators(const NestStage& nest, const ReduceRun& run, const Values& values);
  std::vector<Expr> tile_indices(const Tile& tile, const Values& at) const;
  /// The run's loops, to be unrolled as far as the nest's budget of statements goes.
  Stmt emit_run(
      const NestStage& nest, const ReduceRun& run, int i, const Values& values, const Emit& inner);
  /// Sets the stage's buffer to the neutral element.
  Stmt emit_fill(const NestStage& nest);

  const Sketch& sketch_;
  const ComputeDag& dag_;
  const LoopNest& nest_;
  bool in_part_ = false;  // a constant part is being emitted
  std::vector<StageState> stages_;
  std::map<int32_t, std::vector<Expr>> region_base_;
};

}  // namespace pruner
