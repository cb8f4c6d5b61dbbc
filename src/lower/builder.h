// Parts that every lowering makes programs with: variables with their ranges, and index arithmetic
// that is simplified by the ranges.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lower/program.h"
#include "space/space.h"

namespace pruner {

class ProgramParts {
 public:
  VarId new_var(const std::string& name, Range range) {
    return program_.add_var(name + std::to_string(program_.var_names.size()), range);
  }
  Expr var(VarId id) const { return program_.var(id); }
  /// Returns the name of a spatial axis or, after the spatial axes, of a reduce axis.
  static const std::string& iterator_name(const Stage& stage, int axis) {
    const size_t spatial = stage.axes.size(), a = static_cast<size_t>(axis);
    return a < spatial ? stage.axes[a].name : stage.reduce_axes[a - spatial].name;
  }
  Expr simple(const Expr& e) const { return program_.simple(e); }
  std::vector<Expr> simple(std::vector<Expr> list) const {
    for (Expr& e : list) e = simple(e);
    return list;
  }
  /// Returns a stage's body at `values` of its iterators; `place` turns a load of a stage into a
  /// load of a buffer.
  Expr body_at(const Stage& stage,
               const std::vector<Expr>& values,
               const std::function<Expr(const Load& read, DType dtype)>& place) const;
  /// Returns the start of the region of `id` that the loops of `at`, at `values`, read: directly or
  /// through stages in between. A region that guarded reads leave is moved to lie inside the stage.
  std::vector<Expr> region_start(const LoopNest& nest,
                                 StageId id,
                                 StageId at,
                                 const std::vector<Expr>& values) const;

 protected:
  Program program_;

 private:
  /// The start of a region along each axis, and whether the region was moved along the axis to lie
  /// inside its stage.
  struct Region {
    std::vector<Expr> start;
    std::vector<bool> moved;
  };
  Region region_of(const LoopNest& nest,
                   StageId id,
                   StageId at,
                   const std::vector<Expr>& values) const;
  std::vector<Expr> tile_start(const ComputeDag& dag,
                               StageId id,
                               StageId reader,
                               const std::vector<Expr>& values) const;
};

}  // namespace pruner
