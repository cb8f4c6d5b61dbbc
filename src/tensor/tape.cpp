#include "tensor/tape.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <optional>
#include <tuple>

#include "support/check.h"
#include "tensor/affine.h"

namespace pruner {
namespace {

class TapeBuilder {
 public:
  TapeBuilder(const ComputeDag& dag, const std::vector<bool>& stored)
      : dag_(dag), stored_(stored) {}

  int add_var(int var, int level, bool is_lane) {
    TapeNode node{.op = TapeOp::kVar, .value = var};
    node.step = is_lane;
    node.level = level;
    return add(node);
  }

  /// The stage's body in full precision: a reduction rounds what it has folded, not what it folds.
  int build_body(StageId id, const std::vector<int>& vars) {
    return build(dag_[id].body, {id, vars, -1});
  }

  int spread(int id) {
    if (at(id).lanes) return id;
    return add({.op = TapeOp::kSpread, .dtype = at(id).dtype, .a = id}, true);
  }

  /// The nodes that `result` and the range checks need, in the order they run.
  void finish(int result, int levels, Tape& tape) const;

 private:
  // The place of an expression: its stage, the stage's variables as nodes, and the condition under
  // which the expression is evaluated at all (-1: always).
  struct Place {
    StageId stage;
    const std::vector<int>& vars;
    int guard;
  };

  const TapeNode& at(int id) const { return nodes_[id]; }

  // Adds a node, or finds the equal one. Its level is that of its deepest operand.
  int add(TapeNode node, bool lanes = false) {
    const auto key = std::make_tuple(node.op,
                                     node.dtype,
                                     node.binary,
                                     node.function,
                                     node.a,
                                     node.b,
                                     node.c,
                                     node.value,
                                     std::bit_cast<int64_t>(node.real),
                                     node.tensor);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
    node.lanes = lanes;
    node.exact |= node.dtype == DType::kInt64 || node.dtype == DType::kUInt64 ||
                  node.dtype == DType::kBool || node.dtype == DType::kFloat64;
    for (int operand : operands(node)) {
      if (operand >= 0) node.level = std::max(node.level, at(operand).level);
    }
    nodes_.push_back(node);
    return known_[key] = static_cast<int>(nodes_.size()) - 1;
  }

  static std::array<int, 3> operands(const TapeNode& node) {
    return {node.a, node.b, node.op == TapeOp::kInRange ? -1 : node.c};
  }

  int constant(int64_t value, DType dtype = DType::kInt64) {
    return add({.op = TapeOp::kConst, .dtype = dtype, .value = value, .exact = true});
  }

  int real_constant(double value, DType dtype) {
    TapeNode node{.op = TapeOp::kConst, .dtype = dtype, .real = value};
    node.exact = value == round_to(dtype, value);
    return add(node);
  }

  // The step of `op` on two numbers that step evenly, or nothing when the result does not.
  std::optional<int64_t> stepping(BinaryOp op, const TapeNode& a, const TapeNode& b) const {
    if (a.step == 0 && b.step == 0) return 0;
    if (op == BinaryOp::kAdd) return a.step + b.step;
    if (op == BinaryOp::kSub) return a.step - b.step;
    if (op == BinaryOp::kMul && b.op == TapeOp::kConst) return a.step * b.value;
    if (op == BinaryOp::kMul && a.op == TapeOp::kConst) return b.step * a.value;
    return std::nullopt;
  }

  int add_binary(BinaryOp op, int a, int b) {
    const DType dtype = is_compare(op) ? DType::kBool : at(a).dtype;
    TapeNode node{.op = TapeOp::kBinary, .dtype = dtype, .binary = op, .a = a, .b = b};
    node.exact = (op == BinaryOp::kMin || op == BinaryOp::kMax) && at(a).exact && at(b).exact;
    const auto step = stepping(op, at(a), at(b));
    if (!at(a).lanes && !at(b).lanes && step) {
      node.step = *step;
      return add(node);
    }
    node.a = spread(a);
    node.b = spread(b);
    return add(node, true);
  }

  int add_select(int condition, int a, int b) {
    TapeNode node{.op = TapeOp::kSelect, .dtype = at(a).dtype, .a = condition, .b = a, .c = b};
    node.exact = at(a).exact && at(b).exact;
    const bool lanes = at(condition).lanes || at(a).lanes || at(b).lanes;
    if (!lanes && at(a).step == at(b).step) {
      node.step = at(a).step;
      return add(node);
    }
    node.b = spread(a);  // the condition may stay one value: then a whole side is taken
    node.c = spread(b);
    return add(node, true);
  }

  int cast_to(DType to, int value) {
    const TapeNode& from = at(value);
    const bool narrow = is_narrow_float(from.dtype) && to == DType::kFloat32;
    const bool widens = from.is_real() ? narrow || to == DType::kFloat64 : to == DType::kInt64;
    if (from.exact && (from.dtype == to || widens)) return value;
    return add_cast(to, value, false);
  }

  // The bits of a value of type `from`; a cast that widens may have been left out.
  int bits_as(DType to, int value, DType from) {
    if (at(value).dtype != from) value = add_cast(from, value, false);
    return add_cast(to, value, true);
  }

  int add_cast(DType to, int value, bool of_bits) {
    const TapeNode& from = at(value);
    TapeNode node{.op = TapeOp::kCast, .dtype = to, .a = value, .value = of_bits, .exact = true};
    const bool lanes = from.lanes || from.step != 0;
    if (lanes) node.a = spread(value);
    return add(node, lanes);
  }

  int add_call(Intrinsic function, DType dtype, int a, int b) {
    const bool lanes = at(a).lanes || at(a).step != 0 || (b >= 0 && at(b).lanes);
    TapeNode node{.op = TapeOp::kCall, .dtype = dtype, .function = function, .a = a, .b = b};
    if (lanes) node.a = spread(a);
    if (lanes && b >= 0) node.b = spread(b);
    return add(node, lanes);
  }

  int negate(int condition) { return add_binary(BinaryOp::kEq, condition, constant(0)); }
  int both(int guard, int condition) {
    return guard < 0 ? condition : add_binary(BinaryOp::kAnd, guard, condition);
  }

  int build(const Expr& e, const Place& place) {
    return match(
        e->op,
        [&](const IntImm& n) { return constant(n.value, e->dtype); },
        [&](const FloatImm& n) { return real_constant(n.value, e->dtype); },
        [&](const Var& n) { return place.vars[n.id.value]; },
        [&](const Binary& n) {
          const int a = build(n.a, place);
          return add_binary(n.op, a, build(n.b, place));
        },
        [&](const Select& n) {
          const int condition = build(n.condition, place);
          const int a = build(n.a, {place.stage, place.vars, both(place.guard, condition)});
          // Each side stands under the guard that it is taken: in lanes that take the other, it
          // loads nothing and no index is checked.
          const int not_taken = both(place.guard, negate(condition));
          return add_select(condition, a, build(n.b, {place.stage, place.vars, not_taken}));
        },
        [&](const Cast& n) {
          const int value = build(n.value, place);
          return n.of_bits ? bits_as(e->dtype, value, n.value->dtype) : cast_to(e->dtype, value);
        },
        [&](const Call& n) {
          const int a = build(n.args[0], place);
          if (n.function == Intrinsic::kNot) return negate(a);
          return add_call(
              n.function, e->dtype, a, n.args.size() > 1 ? build(n.args[1], place) : -1);
        },
        [&](const Load& n) { return build_load(n, place); });
  }

  int build_load(const Load& load, const Place& place) {
    const Stage& source = dag_[load.tensor];
    std::vector<int> index;
    for (size_t d = 0; d < load.indices.size(); ++d) {
      index.push_back(build(load.indices[d], place));
      const int64_t extent = source.axes[d].extent;
      const auto [low, high] = bounds(load.indices[d], ranges_of(place.stage));
      if (low >= 0 && high < extent) continue;
      checks_.push_back(add({.op = TapeOp::kInRange,
                             .a = index[d],
                             .b = place.guard,
                             .c = static_cast<int>(d),
                             .value = extent,
                             .tensor = load.tensor,
                             .reader = place.stage}));
    }
    if (!stored_[load.tensor.value]) {
      // One copy for equal reads, or a chain of stages that read twice would grow exponentially.
      const auto key = std::make_tuple(load.tensor, index, place.guard);
      if (const auto found = inlined_.find(key); found != inlined_.end()) return found->second;
      return inlined_[key] =
                 cast_to(source.dtype, build(source.body, {load.tensor, index, place.guard}));
    }
    int position = index.empty() ? constant(0) : index[0];
    for (size_t d = 1; d < index.size(); ++d) {
      const int scaled = add_binary(BinaryOp::kMul, position, constant(source.axes[d].extent));
      position = add_binary(BinaryOp::kAdd, scaled, index[d]);
    }
    const bool guard_lanes = place.guard >= 0 && at(place.guard).lanes;
    const bool lanes = at(position).lanes || at(position).step != 0 || guard_lanes;
    TapeNode node{.op = TapeOp::kLoad, .dtype = source.dtype, .a = position, .b = place.guard};
    node.tensor = load.tensor;
    node.reader = place.stage;
    node.exact = true;
    return add(node, lanes);
  }

  std::vector<Range> ranges_of(StageId id) const {
    std::vector<Range> ranges;
    for (const Iterator& i : dag_[id].axes) ranges.push_back({0, i.extent - 1});
    for (const Iterator& i : dag_[id].reduce_axes) ranges.push_back({0, i.extent - 1});
    return ranges;
  }

  using NodeKey =
      std::tuple<TapeOp, DType, BinaryOp, Intrinsic, int, int, int, int64_t, int64_t, StageId>;
  const ComputeDag& dag_;
  const std::vector<bool>& stored_;
  std::vector<TapeNode> nodes_;
  std::vector<int> checks_;
  std::map<NodeKey, int> known_;
  std::map<std::tuple<StageId, std::vector<int>, int>, int> inlined_;
};

// Rough nanoseconds of a node for each value that it makes.
double node_cost(const TapeNode& node, const std::vector<TapeNode>& nodes) {
  if (node.op == TapeOp::kCall) return 15;
  if (node.op != TapeOp::kLoad) return 0.5;
  const TapeNode& position = nodes[node.a];
  return position.lanes ? 6 : position.step == 1 ? 0.5 : 2;
}

void TapeBuilder::finish(int result, int levels, Tape& tape) const {
  std::vector<bool> needed(nodes_.size(), false);
  needed[result] = true;
  for (int check : checks_) needed[check] = true;
  for (size_t i = nodes_.size(); i-- > 0;) {
    if (!needed[i]) continue;
    for (int operand : operands(nodes_[i])) {
      if (operand >= 0) needed[operand] = true;
    }
  }
  std::vector<int> moved(nodes_.size(), -1);
  for (int level = 0; level <= levels; ++level) {
    tape.level_start.push_back(static_cast<int>(tape.nodes.size()));
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!needed[i] || nodes_[i].level != level) continue;
      moved[i] = static_cast<int>(tape.nodes.size());
      TapeNode node = nodes_[i];
      for (int* operand : {&node.a, &node.b, &node.c}) {
        const bool is_dim = node.op == TapeOp::kInRange && operand == &node.c;
        if (*operand >= 0 && !is_dim) *operand = moved[*operand];
      }
      int& pool = node.is_real() ? tape.reals : tape.integers;
      node.slot = pool;
      pool += node.lanes ? kLanes : 1;
      if (node.op == TapeOp::kVar) tape.var_nodes[node.value] = moved[i];
      tape.nodes.push_back(node);
      tape.block_cost += 4;  // ns to start a node, whatever its lanes
      if (node.lanes) tape.lane_cost += node_cost(node, tape.nodes);
    }
  }
  tape.level_start.push_back(static_cast<int>(tape.nodes.size()));
  tape.result = moved[result];
}

}  // namespace

Tape compile_tape(const ComputeDag& dag,
                  StageId id,
                  int lane_var,
                  const std::vector<bool>& stored) {
  const Stage& stage = dag[id];
  Tape tape;
  tape.lane_var = lane_var;
  const int rank = static_cast<int>(stage.axes.size());
  tape.lanes_reduce = lane_var >= rank;
  std::vector<Iterator> iterators = stage.axes;
  iterators.insert(iterators.end(), stage.reduce_axes.begin(), stage.reduce_axes.end());
  if (lane_var >= 0) tape.lane_extent = iterators[lane_var].extent;

  // Reduce axes are loops around the tape; a reduced lane variable, too, where a block does not
  // hold it. Spatial axes have no loop: run() sets them for each block.
  std::vector<int> levels(iterators.size(), 0);
  const auto add_loop = [&](int var, int64_t step) {
    const auto v = static_cast<size_t>(var);
    tape.loops.push_back({var, iterators[v].extent, step});
    levels[v] = static_cast<int>(tape.loops.size());
  };
  for (int var = rank; var < static_cast<int>(iterators.size()); ++var) {
    if (var != lane_var) add_loop(var, 1);
  }
  if (tape.lanes_reduce && tape.lane_extent > kLanes) add_loop(lane_var, kLanes);

  TapeBuilder builder(dag, stored);
  std::vector<int> vars;
  for (int var = 0; var < static_cast<int>(iterators.size()); ++var) {
    vars.push_back(builder.add_var(var, levels[var], var == lane_var));
  }
  tape.var_nodes.assign(iterators.size(), -1);
  const int result = builder.spread(builder.build_body(id, vars));
  builder.finish(result, static_cast<int>(tape.loops.size()), tape);
  return tape;
}

}  // namespace pruner
