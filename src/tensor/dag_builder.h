// Builds a ComputeDag stage by stage; used by the operators, the graph lowering and tests.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "tensor/compute_dag.h"

namespace pruner {

/// Owns the DAG until finish(). Extents have to be above 0, and a tensor is read with an index for
/// each of its dims (CHECK).
class DagBuilder {
 public:
  StageId placeholder(std::string name,
                      std::vector<int64_t> shape,
                      DType dtype = DType::kFloat32,
                      bool constant = false);

  /// Adds `name[axes...] = body(vars)`; vars are the axes' variables, called ax0, ax1, ... or as
  /// `axis_names` says. Stage names are made unique.
  StageId compute(std::string name,
                  std::vector<int64_t> shape,
                  const std::function<Expr(std::span<const Expr>)>& body,
                  std::string tag = "elemwise",
                  std::vector<std::string> axis_names = {});

  /// Adds a reduction: body gets the spatial and the reduce variables; `axis_names` names the
  /// spatial and then the reduce axes (default k, or k0, k1, ...).
  StageId reduce(std::string name,
                 std::vector<int64_t> shape,
                 std::vector<int64_t> reduce_extents,
                 Combiner combiner,
                 const std::function<Expr(std::span<const Expr>, std::span<const Expr>)>& body,
                 std::string tag,
                 std::vector<std::string> axis_names = {});

  /// tensor[indices], with the stage's dtype.
  Expr at(StageId tensor, std::vector<Expr> indices) const;
  std::vector<int64_t> shape(StageId tensor) const { return dag_[tensor].shape(); }
  const Stage& stage(StageId tensor) const { return dag_[tensor]; }
  Stage& stage(StageId tensor) { return dag_[tensor]; }

  /// Marks `weight`, if it is constant, as an operand of `stage` whose layout is free.
  void allow_repacking(StageId stage, StageId weight);

  /// Marks `outputs` and gives the DAG, without the computed stages that no output reads; their
  /// numbers are others then.
  ComputeDag finish(std::span<const StageId> outputs);
  ComputeDag finish(std::initializer_list<StageId> outputs) {
    return finish(std::span(outputs.begin(), outputs.size()));
  }

 private:
  std::string unique_name(std::string name) const;
  ComputeDag dag_;
};

}  // namespace pruner
