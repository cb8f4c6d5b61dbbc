#include "lower/lockstep.h"

#include <algorithm>
#include <map>

#include "support/check.h"

namespace pruner {
namespace {

void add_term(SlotSum::Terms& terms, int slot, int64_t coefficient) {
  const auto at = std::lower_bound(
      terms.begin(), terms.end(), slot, [](const auto& term, int s) { return term.first < s; });
  if (at == terms.end() || at->first != slot) {
    if (coefficient != 0) terms.insert(at, {slot, coefficient});
  } else if ((at->second += coefficient) == 0) {
    terms.erase(at);
  }
}

void add(SlotSum& sum, const SlotSum& other, int64_t factor) {
  sum.constant += other.constant * factor;
  for (const auto& [slot, c] : other.uniform) add_term(sum.uniform, slot, c * factor);
  for (const auto& [slot, c] : other.varying) add_term(sum.varying, slot, c * factor);
}

bool is_constant(const SlotSum& sum) { return sum.uniform.empty() && sum.varying.empty(); }

bool is_index(DType dtype) { return dtype == DType::kInt64 || dtype == DType::kBool; }

// Whether only variables and constants decide the value: such an expression has no effect and may
// be evaluated anywhere.
bool is_pure(const Expr& e) {
  bool pure = true;
  visit(e, [&](const Expr& part) { pure &= is_index(part->dtype) && !as<Load>(part); });
  return pure;
}

Range add(Range a, Range b) {
  const auto clamp = [](int64_t v) { return std::clamp(v, kUnbounded.first, kUnbounded.second); };
  return {clamp(a.first + b.first), clamp(a.second + b.second)};
}

Range scale(Range a, int64_t factor) {
  const auto clamp = [](__int128 v) {
    return static_cast<int64_t>(
        std::clamp(v, __int128{kUnbounded.first}, __int128{kUnbounded.second}));
  };
  const int64_t x = clamp(__int128{a.first} * factor), y = clamp(__int128{a.second} * factor);
  return {std::min(x, y), std::max(x, y)};
}

class Compiler {
 public:
  explicit Compiler(const Program& program) : program_(program) {}

  // One launch of a GPU program; without one, the whole of a program for CPUs.
  Lockstep launch(const For* blocks) {
    out_.watched.assign(program_.buffers.size(), false);
    vars_.assign(program_.var_names.size(), SlotSum{});
    scopes_ = {&out_.fills};
    gpu_ = blocks != nullptr;
    if (blocks) {
      out_.body.push_back(loop(*blocks));
    } else {
      out_.body = list(program_.body);
    }
    return std::move(out_);
  }

 private:
  struct Slot {
    int depth;  // depth of the scope that fills the slot
    Range range;
  };

  LockstepBody list(const Stmt& s) {
    LockstepBody result;
    append(s, result);
    return result;
  }

  void append(const Stmt& s, LockstepBody& to) {
    match(
        s->op,
        [&](const For& n) { to.push_back(loop(n)); },
        [&](const Let& n) {
          if (is_pure(n.value)) {
            var(n.var) = index(n.value);
            return append(n.body, to);
          }
          LetStep step{new_slot(true, kUnbounded, depth() + 1), node(n.value), {}, {}};
          var(n.var).varying = {{step.slot, 1}};
          step.body = scope(step.fills, n.body);
          to.push_back({std::move(step)});
        },
        [&](const Store& n) {
          const Scope where = program_[n.buffer].scope;
          if (gpu_ && where != Scope::kLocal && where != Scope::kRegister) {
            out_.watched[static_cast<size_t>(n.buffer.value)] = true;
          }
          const int value = node(n.value);
          to.push_back({StoreStep{place(n.buffer, n.indices), value}});
        },
        [](const Prefetch&) {},
        [&](const If& n) {
          GuardStep step;
          if (is_pure(n.condition)) {
            step.condition = settled(index(n.condition));
          } else {
            step.computed = node(n.condition);
          }
          step.body = list(n.then);
          to.push_back({std::move(step)});
        },
        [&](const Allocate& n) {
          to.push_back({AllocateStep{n.buffer}});
          append(n.body, to);
        },
        [&](const Barrier&) { to.push_back({BarrierStep{}}); },
        [&](const WarpStmt auto& n) { to.push_back({warp_step(n)}); },
        [&](const Block& n) {
          for (const Stmt& part : n.statements) append(part, to);
        });
  }

  MmaStep warp_step(const Mma& n) { return {n.instruction, place(n.sum), place(n.a), place(n.b)}; }
  LoadMatrixStep warp_step(const LoadMatrix& n) {
    return {place(n.to), place(n.from), n.matrices, n.transposed};
  }
  LaneFoldStep warp_step(const LaneFold& n) { return {place(n.element), n.combiner, n.lanes}; }
  AsyncCopyStep warp_step(const AsyncCopy& n) {
    return {place(n.to), place(n.from), n.elements, node(n.valid)};
  }
  CommitStep warp_step(const Commit&) { return {}; }
  WaitStep warp_step(const Wait& n) { return {n.groups}; }
  GroupMmaStep warp_step(const GroupMma& n) {
    return {n.instruction,
            place(n.sum),
            place(n.a),
            place(n.b),
            n.columns,
            n.a_terms_first,
            n.b_terms_first};
  }
  GroupCommitStep warp_step(const GroupCommit&) { return {}; }
  GroupWaitStep warp_step(const GroupWait& n) { return {n.groups}; }
  GroupFenceStep warp_step(const GroupFence&) { return {}; }
  SharedFenceStep warp_step(const SharedFence&) { return {}; }
  GridWaitStep warp_step(const GridWait&) {
    out_.waits = true;
    return {};
  }

  LockstepStmt loop(const For& n) {
    if (n.kind == LoopKind::kThread) {
      out_.threads = static_cast<int>(*as_int(n.extent));
      out_.thread_slot = new_slot(true, {0, out_.threads - 1}, depth() + 1);
      var(n.var).varying = {{out_.thread_slot, 1}};
      ThreadsStep step;
      step.body = scope(step.fills, n.body);
      return {std::move(step)};
    }
    LoopStep step;
    Range extent = kUnbounded;
    if (is_pure(n.extent)) {
      step.extent = settled(index(n.extent));
      extent = range(step.extent);
    } else {
      step.computed = node(n.extent);
    }
    step.slot = new_slot(false, {0, std::max<int64_t>(extent.second - 1, 0)}, depth() + 1);
    step.blocks = n.kind == LoopKind::kBlock;
    var(n.var).uniform = {{step.slot, 1}};
    step.body = scope(step.fills, n.body);
    return {std::move(step)};
  }

  LockstepBody scope(std::vector<SlotFill>& fills, const Stmt& body) {
    std::vector<SlotFill> mine;
    scopes_.push_back(&mine);
    LockstepBody result = list(body);
    scopes_.pop_back();
    fills = std::move(mine);
    return result;
  }

  int depth() const { return static_cast<int>(scopes_.size()) - 1; }
  SlotSum& var(VarId id) { return vars_[static_cast<size_t>(id.value)]; }

  int new_slot(bool varying, Range range, int depth) {
    std::vector<Slot>& slots = varying ? varying_ : uniform_;
    slots.push_back({depth, range});
    int& count = varying ? out_.varying_slots : out_.uniform_slots;
    return count++;
  }

  template <typename Fn>
  void each_term(const SlotSum& sum, const Fn& fn) const {
    for (const auto& [slot, c] : sum.uniform) fn(uniform_[static_cast<size_t>(slot)], c);
    for (const auto& [slot, c] : sum.varying) fn(varying_[static_cast<size_t>(slot)], c);
  }

  Range range(const SlotSum& sum) const {
    Range result = {sum.constant, sum.constant};
    each_term(sum, [&](const Slot& s, int64_t c) { result = add(result, scale(s.range, c)); });
    return result;
  }

  // The value of a rule, filled in the scope of the deepest variable that it depends on.
  SlotSum filled(SlotRule rule, Range range) {
    int depth = 0;
    bool varying = false;
    for (SlotSum* part : {&rule.a, &rule.b, &rule.c}) {
      if (rule.op != SlotRule::Op::kSum) *part = settled(std::move(*part));
      varying |= !part->varying.empty();
      each_term(*part, [&](const Slot& s, int64_t) { depth = std::max(depth, s.depth); });
    }
    const auto [known, fresh] = filled_.try_emplace(rule, 0);
    if (fresh) {
      known->second = new_slot(varying, range, depth);
      scopes_[static_cast<size_t>(depth)]->push_back({std::move(rule), known->second, varying});
    }
    SlotSum sum;
    (varying ? sum.varying : sum.uniform) = {{known->second, 1}};
    return sum;
  }

  // With one varying term at most, of coefficient 1.
  SlotSum settled(SlotSum sum) {
    if (sum.varying.empty() || (sum.varying.size() == 1 && sum.varying[0].second == 1)) return sum;
    SlotRule rule;
    rule.a.varying = std::move(sum.varying);
    const Range of_terms = range(rule.a);
    sum.varying = filled(std::move(rule), of_terms).varying;
    return sum;
  }

  SlotSum index(const Expr& e) {
    return match(
        e->op,
        [](const IntImm& n) {
          return SlotSum{n.value, {}, {}};
        },
        [](const FloatImm&) { return SlotSum{}; },
        [&](const Var& n) { return var(n.id); },
        [&](const Binary& n) { return binary(e, n); },
        [&](const Select& n) {
          const SlotSum a = index(n.a), b = index(n.b);
          const Range x = range(a), y = range(b);
          return filled({SlotRule::Op::kSelect, BinaryOp::kAdd, index(n.condition), a, b},
                        {std::min(x.first, y.first), std::max(x.second, y.second)});
        },
        [&](const Cast& n) {
          SlotSum value = index(n.value);
          if (e->dtype != DType::kBool || n.value->dtype == DType::kBool) return value;
          return filled({SlotRule::Op::kIsTrue, BinaryOp::kAdd, value, {}, {}}, {0, 1});
        },
        [&](const Call& n) {
          const bool negates = n.function == Intrinsic::kNot;
          return filled({negates ? SlotRule::Op::kNot : SlotRule::Op::kAbs,
                         BinaryOp::kAdd,
                         index(n.args[0]),
                         {},
                         {}},
                        negates ? Range{0, 1} : kUnbounded);
        },
        [](const Load&) { return SlotSum{}; });
  }

  SlotSum binary(const Expr& e, const Binary& n) {
    SlotSum a = index(n.a), b = index(n.b);
    const bool sum = n.op == BinaryOp::kAdd || n.op == BinaryOp::kSub;
    if (e->dtype == DType::kInt64 && sum) {
      add(a, b, n.op == BinaryOp::kAdd ? 1 : -1);
      return a;
    }
    if (n.op == BinaryOp::kMul && (is_constant(a) || is_constant(b))) {
      SlotSum product;
      add(product, is_constant(a) ? b : a, is_constant(a) ? a.constant : b.constant);
      return product;
    }
    const Range x = range(a), y = range(b);
    Range r = e->dtype == DType::kBool ? Range{0, 1} : kUnbounded;
    if (n.op == BinaryOp::kMin) r = {std::min(x.first, y.first), std::min(x.second, y.second)};
    if (n.op == BinaryOp::kMax) r = {std::max(x.first, y.first), std::max(x.second, y.second)};
    if (n.op == BinaryOp::kXor) r = bounds_of_xor(x, y);
    if (is_constant(b) && b.constant > 0) {
      const int64_t d = b.constant;
      if (n.op == BinaryOp::kFloorDiv) r = {floor_div(x.first, d), floor_div(x.second, d)};
      if (n.op == BinaryOp::kFloorMod) r = {0, d - 1};
    }
    return filled({SlotRule::Op::kBinary, n.op, a, b, {}}, r);
  }

  SlotPlace place(const ElementPlace& at) { return place(at.buffer, at.indices); }
  SlotPlace place(TensorId id, const std::vector<Expr>& indices) {
    const Buffer& buffer = program_[id];
    SlotPlace result{id, {}, {}, {}};
    if (gpu_ && buffer.scope == Scope::kShared) out_.watched[static_cast<size_t>(id.value)] = true;
    if (!std::all_of(indices.begin(), indices.end(), is_pure)) {
      for (const Expr& i : indices) result.computed.push_back(node(i));
      return result;
    }
    for (size_t d = 0; d < indices.size(); ++d) {
      const SlotSum i = index(indices[d]);
      SlotSum flat{result.flat.constant * buffer.shape[d], {}, {}};
      add(flat, SlotSum{0, result.flat.uniform, result.flat.varying}, buffer.shape[d]);
      add(flat, i, 1);
      result.flat = std::move(flat);
      const Range r = range(i);
      if (r.first < 0 || r.second >= buffer.shape[d]) {
        result.checks.push_back({static_cast<int>(d), settled(i)});
      }
    }
    result.flat = settled(std::move(result.flat));
    return result;
  }

  int add_node(LockstepNode node) {
    out_.nodes.push_back(std::move(node));
    return static_cast<int>(out_.nodes.size()) - 1;
  }

  int node(const Expr& e) {
    using Op = LockstepNode::Op;
    LockstepNode result{.op = Op::kConstant, .dtype = e->dtype, .index = {}, .place = {}};
    if (is_pure(e)) {
      result.op = Op::kIndex;
      result.index = settled(index(e));
      return add_node(std::move(result));
    }
    match(
        e->op,
        [&](const IntImm& n) { result.integer = n.value; },
        [&](const FloatImm& n) { result.real = n.value; },
        [](const Var&) {},
        [&](const Binary& n) {
          result.op = Op::kBinary;
          result.binary = n.op;
          result.a = node(n.a);
          result.b = node(n.b);
        },
        [&](const Select& n) {
          result.op = Op::kSelect;
          result.a = node(n.condition);
          result.b = node(n.a);
          result.c = node(n.b);
        },
        [&](const Cast& n) {
          result.op = Op::kCast;
          result.of_bits = n.of_bits;
          result.a = node(n.value);
        },
        [&](const Call& n) {
          result.op = Op::kCall;
          result.function = n.function;
          result.a = node(n.args[0]);
          if (n.args.size() > 1) result.b = node(n.args[1]);
        },
        [&](const Load& n) {
          result.op = Op::kLoad;
          result.place = place(n.tensor, n.indices);
        });
    return add_node(std::move(result));
  }

  const Program& program_;
  Lockstep out_;
  std::vector<SlotSum> vars_;
  std::vector<Slot> uniform_, varying_;
  std::vector<std::vector<SlotFill>*> scopes_;
  std::map<SlotRule, int> filled_;
  bool gpu_ = false;
};

}  // namespace

std::vector<Lockstep> make_lockstep(const Program& program) {
  std::vector<Lockstep> result;
  for (const For* blocks : launches(program)) result.push_back(Compiler(program).launch(blocks));
  if (result.empty()) result.push_back(Compiler(program).launch(nullptr));
  return result;
}

}  // namespace pruner
