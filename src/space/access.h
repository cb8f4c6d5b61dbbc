// How stages read each other: every load of a body with its indices as affine forms of the stage's
// iterators, and the predicates on them that sketch rules ask for (Ansor's access analysis).
#pragma once

#include <optional>
#include <vector>

#include "tensor/affine.h"
#include "tensor/compute_dag.h"

namespace pruner {

/// An index that is affine but for quotients: rest + sum(coefficient * floor(axis / divisor)), as
/// the channel that a grouped convolution reads for each of its outputs.
struct SteppedIndex {
  struct Quotient {
    int axis;
    int64_t divisor, coefficient;
    friend bool operator==(const Quotient&, const Quotient&) = default;
  };
  Affine rest;
  std::vector<Quotient> quotients;  // not empty
};

/// One load: producer[indices].
struct Access {
  StageId producer;
  std::vector<std::optional<Affine>> indices;  // one a dimension; nullopt: not affine
  /// `whole[d]` is true if no box can be derived, so that all of dimension `d` must be there. The
  /// index is then not affine, descends, or, under a guard, may leave the producer's domain.
  std::vector<bool> whole;
  /// `leaves[d]` is true if the last reason is the only one for `whole[d]`. A box that is moved to
  /// lie inside the domain then has all that the guard lets through.
  std::vector<bool> leaves;
  std::vector<std::optional<SteppedIndex>> stepped = {};  // one per dimension; nullopt: not stepped
};

/// Calls fn(quotient) for each quotient of an axis that the access reads by.
template <typename Fn>
void for_each_quotient(const Access& access, int axis, const Fn& fn) {
  for (const std::optional<SteppedIndex>& index : access.stepped) {
    if (!index) continue;
    for (const SteppedIndex::Quotient& q : index->quotients)
      if (q.axis == axis) fn(q);
  }
}

/// Whether a vector of so many lanes along the axis of a quotient has whole steps of it, which read
/// a run of no more elements: code loads the run and spreads it (codegen/llvm/memory.cpp).
inline bool reads_one_run(const SteppedIndex::Quotient& q, int64_t lanes) {
  return q.divisor < lanes && lanes % q.divisor == 0 && q.coefficient > 0 &&
         q.coefficient <= q.divisor;
}

/// Whether dimension `d` is read at quotients of axes other than `axis`, as the heads of keys by
/// those of queries.
bool steps_past(const Access& access, int d, int axis);

/// Returns the only iterator that an index is, which begins at 0; -1: the index is no such one.
int lone_iterator(const std::optional<Affine>& index);

/// The distinct loads of a stage's body.
std::vector<Access> accesses_of(const ComputeDag& dag, StageId stage);

/// accesses_of() for every stage, indexed by stage.
using AccessTable = IdMap<StageId, std::vector<Access>>;
AccessTable access_table(const ComputeDag& dag);

/// The last axis longer than 1 of those before number `end`; -1: none.
int last_longer(const std::vector<Iterator>& axes, int end);

/// An iterator of a stage by its number: the spatial ones, then the reduce ones.
inline const Iterator& iterator_of(const Stage& stage, int number) {
  const size_t spatial = stage.axes.size(), n = static_cast<size_t>(number);
  return n < spatial ? stage.axes[n] : stage.reduce_axes[n - spatial];
}

/// Inclusive ranges of a stage's iterators, spatial then reduce.
std::vector<Range> iterator_ranges(const Stage& stage);

/// A contraction: some data is read again at other points, so tiling pays (Ansor's
/// needs_multi_level_tiling).
bool needs_multi_level_tiling(const ComputeDag& dag, StageId stage);

/// Every point of `reader` (along its axes longer than 1) reads its own place of `producer`, or its
/// own window of it: what a pooling or a depthwise convolution does to its data.
bool reads_at_own_places(const ComputeDag& dag, StageId reader, StageId producer);

/// `consumer` reads `producer` only at its own axes, in order, over the same shape.
bool reads_elementwise(const ComputeDag& dag, StageId consumer, StageId producer);

/// Returns the instructions of one evaluation of a body, without its loads and index arithmetic. A
/// call counts as many as the polynomial that replaces the call.
double body_operations(const Expr& body);

/// Whether a body has a call that costs many instructions (exp, tanh, ...).
bool has_expensive_call(const Expr& body);
bool has_select(const Expr& body);

}  // namespace pruner
