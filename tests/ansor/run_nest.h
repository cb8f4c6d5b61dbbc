// Runs a replayed nest element by element, threads one after the other, so that its bounds, guards
// and indices can be judged by the values it computes. Not for reductions over threads.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "ansor/nest.h"

namespace pruner::ansor {

class NestRun {
 public:
  using Place = std::pair<int, std::vector<int64_t>>;

  explicit NestRun(const ReplayNest& nest) : nest_(nest), loops_(nest.loops.size(), 0) {
    run(0, static_cast<int>(nest.nodes.size()));
  }

  /// The values of a stage's tensor; an input's is a number that its place gives.
  double at(int stage, const std::vector<int64_t>& index) const {
    const Stage& made = nest_.structure->dag[StageId{stage}];
    if (made.is_placeholder()) {
      double value = made.name.back();
      for (const int64_t i : index) value = std::fmod(value * 3 + static_cast<double>(i) + 1, 17);
      return value;
    }
    const auto found = values_.find({stage, index});
    EXPECT_TRUE(found != values_.end()) << "stage " << stage << " is read before it is written";
    return found == values_.end() ? 0 : found->second;
  }
  bool written(int stage, const std::vector<int64_t>& index) const {
    return values_.contains({stage, index});
  }
  /// Statements that ran.
  int64_t statements = 0;

 private:
  static size_t z(int i) { return static_cast<size_t>(i); }

  int64_t value(IndexId id) const {
    const IndexNode& n = nest_.pool[id];
    if (n.op == IndexOp::kConst) return n.value;
    if (n.op == IndexOp::kVar) return loops_[static_cast<size_t>(n.value)];
    const int64_t a = value(n.a), b = value(n.b);
    const int64_t made = n.op == IndexOp::kAdd        ? a + b
                         : n.op == IndexOp::kSub      ? a - b
                         : n.op == IndexOp::kMul      ? a * b
                         : n.op == IndexOp::kFloorDiv ? floor_div(a, b)
                         : n.op == IndexOp::kFloorMod ? floor_mod(a, b)
                         : n.op == IndexOp::kMin      ? std::min(a, b)
                                                      : std::max(a, b);
    EXPECT_LE(n.low, made);
    EXPECT_GE(n.high, made);
    EXPECT_EQ(n.stride == 0 ? made - n.residue : floor_mod(made - n.residue, n.stride), 0);
    return made;
  }

  std::vector<int64_t> values(const std::vector<IndexId>& ids) const {
    std::vector<int64_t> list;
    for (const IndexId id : ids) list.push_back(value(id));
    return list;
  }

  double evaluate(const Expr& e, const std::vector<int64_t>& roots) const {
    const auto sub = [&](const Expr& x) { return evaluate(x, roots); };
    if (const auto* imm = as<IntImm>(e)) return static_cast<double>(imm->value);
    if (const auto* imm = as<FloatImm>(e)) return imm->value;
    if (const auto* var = as<Var>(e)) return static_cast<double>(roots[z(var->id.value)]);
    if (const auto* node = as<Select>(e)) return sub(sub(node->condition) != 0 ? node->a : node->b);
    if (const auto* read = as<Load>(e)) {
      std::vector<int64_t> index;
      for (const Expr& i : read->indices) index.push_back(static_cast<int64_t>(sub(i)));
      return at(read->tensor.value, index);
    }
    const auto& node = std::get<Binary>(e->op);
    const double a = sub(node.a), b = sub(node.b);
    switch (node.op) {
      case BinaryOp::kAdd: return a + b;
      case BinaryOp::kSub: return a - b;
      case BinaryOp::kMul: return a * b;
      case BinaryOp::kMax: return std::max(a, b);
      case BinaryOp::kFloorDiv: return std::floor(a / b);
      case BinaryOp::kFloorMod: return a - std::floor(a / b) * b;
      case BinaryOp::kLt: return a < b;
      case BinaryOp::kGe: return a >= b;
      case BinaryOp::kAnd: return a != 0 && b != 0;
      default: ADD_FAILURE() << "an operator that the test does not know"; return 0;
    }
  }

  void run(int from, int to) {
    for (int i = from; i < to; i = nest_.nodes[z(i)].end) run_node(i);
  }

  void run_node(int number) {
    const ReplayNode& node = nest_.nodes[z(number)];
    if (node.kind == NodeKind::kStatement) return run_statement(nest_.statements[z(node.index)]);
    if (node.kind == NodeKind::kLoop) {
      for (int64_t i = 0; i < nest_.loops[z(node.index)].extent; ++i) {
        loops_[z(node.index)] = i;
        run(number + 1, node.end);
      }
      return;
    }
    if (node.kind == NodeKind::kGuard) {
      const ReplayGuard& guard = nest_.guards[z(node.index)];
      const int64_t v = value(guard.value);
      if (guard.lower ? v < 0 : v >= guard.bound) return;
    }
    run(number + 1, node.end);
  }

  void run_statement(const ReplayStatement& s) {
    ++statements;
    const Stage& stage = nest_.structure->dag[StageId{s.stage}];
    const ReplayRegion& region = nest_.regions[z(s.stage)];
    const std::vector<int64_t> index = values(s.store.indices);
    for (size_t i = 0; i < index.size(); ++i) {
      EXPECT_GE(index[i], value(region.mins[i])) << stage.name;
      EXPECT_LT(index[i], value(region.mins[i]) + region.extents[i]) << stage.name;
      if (s.kind == StatementKind::kInit) continue;  // TVM's init, too, may set more than there is
      EXPECT_LT(index[i], stage.axes[i].extent) << stage.name;
    }
    double& place = values_[{s.stage, index}];
    if (s.kind == StatementKind::kInit) {
      place = stage.combiner == Combiner::kMax ? -1e30 : 0;
      return;
    }
    for (const ReplayAccess& access : s.loads) check_read(access);
    const std::vector<int64_t> roots = values(s.roots);
    const double body = evaluate(stage.body, roots);
    place = s.kind == StatementKind::kCompute  ? body
            : stage.combiner == Combiner::kMax ? std::max(place, body)
                                               : place + body;
  }

  // Checks that an element that is read of a stage lies in the region that is held.
  void check_read(const ReplayAccess& access) {
    const ReplayRegion& region = nest_.regions[z(access.tensor.value)];
    for (size_t i = 0; i < region.mins.size(); ++i) {
      EXPECT_GE(value(access.indices[i]), value(region.mins[i]));
      EXPECT_LT(value(access.indices[i]), value(region.mins[i]) + region.extents[i]);
    }
  }

  const ReplayNest& nest_;
  std::vector<int64_t> loops_;
  std::map<Place, double> values_;
};

}  // namespace pruner::ansor
