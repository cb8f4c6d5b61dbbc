// The expressions of a replayed program as TVM has them after simplifying: guards, and what each
// statement stores where, over the loops' variables (variable i is that of loop i). The printer and
// the analysis walk the nest and ask for them on the way, because what TVM simplifies to depends on
// the loops that are open and on the guards that hold.
#pragma once

#include <string>
#include <vector>

#include "ansor/nest.h"
#include "ansor/tvm_simplify.h"

namespace pruner::ansor {

/// The tensor number of a reduction's own register, which is no stage.
inline constexpr int kOwnRegister = 1'000'000;

class ProgramValues {
 public:
  /// Without `named`, variables have no names: for who does not print them.
  explicit ProgramValues(const ReplayNest& nest, bool named = true);

  /// Call on the way into a loop.
  void enter_loop(int number);
  /// The guard's condition, simplified; a constant where it is decided.
  Expr guard(const ReplayGuard& guard);
  /// Around what a guard holds.
  void push_condition(const Expr& condition) { simplifier_.push_condition(condition); }
  void pop_condition() { simplifier_.pop_condition(); }

  /// Returns where a region of the stage starts: one simplified expression per dimension.
  std::vector<Expr> region_mins(int stage);
  /// Returns the place that a statement stores to: one simplified index per dimension.
  std::vector<Expr> indices(const ReplayStatement& s);
  /// Returns what a statement stores or reduces, simplified; null if it stores a reduced temporary.
  Expr value(const ReplayStatement& s);

  /// "i.outer", "blockIdx.x"
  std::string loop_name(int number) const;
  /// "i.outer", whatever it is bound to.
  const std::string& iterator_name(int stage, int iter) const;

 private:
  std::vector<std::string> iterator_names(int s) const;
  const Expr& variable(int loop) const { return variables_[loop]; }
  Expr to_expr(IndexId id) const;
  const std::vector<Expr>& iterator_values(int s, bool init);
  std::vector<Expr> make_iterator_values(int s, bool init) const;

  const ReplayNest& nest_;
  const ComputeDag& dag_;
  const std::vector<StateStage>& stages_;
  std::vector<std::vector<int>> init_loop_of_;   // per stage and iterator: init loop, if any
  std::vector<std::vector<std::string>> names_;  // per stage and iterator, if `named`
  std::vector<Expr> variables_;                  // one per loop
  std::vector<std::vector<Expr>> mins_;          // region starts, per stage and axis
  std::vector<std::vector<Expr>> values_[2];     // per stage and iterator; [1]: in its init nest
  TvmSimplifier simplifier_;
};

/// "serial", "vthread", "blockIdx.x"
const char* annotation_text(Annotation annotation);

}  // namespace pruner::ansor
