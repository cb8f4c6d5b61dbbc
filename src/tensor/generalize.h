// Generalizes expressions and compute DAGs that are the same at several extents of the symbols but
// for numbers. The one form has formulas in the numbers' places (Plotkin's least general
// generalization). Programs are generalized likewise (lower/generalize.h).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/compute_dag.h"
#include "tensor/formula.h"

namespace pruner {

/// `NumbersForm` returns the form that stands for numbers found at one place; empty: no form can.
using NumbersForm = std::function<Expr(const std::vector<int64_t>& values)>;

/// Goes through some expressions at once. The first difference in more than numbers, or in numbers
/// without a form, is the problem; the expressions made are of no use then.
class ExprGeneralizer {
 public:
  explicit ExprGeneralizer(NumbersForm form) : form_(std::move(form)) {}

  /// Returns the expression that equals all[i] at point i.
  Expr expr(const std::vector<Expr>& all);
  /// Returns expr() of each element of the lists. Each list is of one point; all have one length.
  std::vector<Expr> exprs(const std::vector<std::vector<Expr>>& lists);
  Expr number(const std::vector<int64_t>& values, std::string_view what);

  void fail(std::string_view what) {
    if (problem_.empty()) problem_ = what;
  }
  bool failed() const { return !problem_.empty(); }
  const std::string& problem() const { return problem_; }

 private:
  template <typename Op>
  using All = std::vector<const Op*>;
  Expr made(const All<IntImm>& all, const Expr& first);
  Expr made(const All<FloatImm>& all, const Expr& first);
  Expr real(const std::vector<double>& values, DType dtype);
  Expr made(const All<Var>& all, const Expr& first);
  Expr made(const All<Binary>& all, const Expr& first);
  Expr made(const All<Select>& all, const Expr& first);
  Expr made(const All<Cast>& all, const Expr& first);
  Expr made(const All<Call>& all, const Expr& first);
  Expr made(const All<Load>& all, const Expr& first);
  template <typename Op>
  Expr part(const All<Op>& all, Expr Op::*part);
  template <typename Op, typename Of>
  bool alike(const All<Op>& all, const Of& of, std::string_view what);

  NumbersForm form_;
  std::string problem_;
  std::map<std::vector<const ExprNode*>, Expr> made_;  // forms of shared nodes
};

/// A compute DAG over a range of shapes.
class DagRange {
 public:
  /// Generalizes the DAGs at the finder's points. The error says what differs in more than numbers.
  static Result<DagRange> of(std::span<const ComputeDag* const> dags, FormulaFinder& finder);
  /// Whether two DAGs differ in numbers at most; the error says what else differs.
  static Result<Unit> check_alike(const ComputeDag& a, const ComputeDag& b);

  /// A text that is equal for DAGs that are equal at every shape.
  std::string key() const;

  /// The DAG at one shape.
  ComputeDag at(std::span<const int64_t> values) const;
  /// The distinct extents of its axes that are more than a number or a symbol; variable i is symbol
  /// i.
  std::vector<Expr> extents() const;
  /// Returns the form common to all shapes; numbers that differ are those of one of the shapes.
  const ComputeDag& form() const { return form_; }
  /// Extents of a stage's axes; variable i is symbol i.
  const std::vector<Expr>& axes(StageId id) const { return extents_of(id).axes; }
  const std::vector<Expr>& reduce_axes(StageId id) const { return extents_of(id).reduce_axes; }
  /// Body of a stage that is no placeholder; variables: its iterators, then the symbols.
  const Expr& body(StageId id) const { return bodies_[static_cast<size_t>(id.value)]; }
  /// Stage::read_at; variable i is symbol i.
  const std::vector<Expr>& read_at(StageId id) const { return extents_of(id).read_at; }

 private:
  static Result<DagRange> of(std::span<const ComputeDag* const> dags,
                             size_t symbols,
                             const NumbersForm& form);
  struct Extents {
    std::vector<Expr> axes, reduce_axes, read_at;
    Expr index_bound;
  };
  const Extents& extents_of(StageId id) const { return extents_[static_cast<size_t>(id.value)]; }

  ComputeDag form_;  // numbers are those of one point; bodies have symbols behind their iterators
  std::vector<Extents> extents_;
  std::vector<Expr> bodies_;
};

}  // namespace pruner
