#include "tensor/expr.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "support/check.h"
#include "tensor/scalar_ops.h"

namespace pruner {

namespace {

/// Blocks of one size that a thread has given back, for its next nodes: index arithmetic makes and
/// drops millions of small ones.
template <typename Block>
class BlockList {
 public:
  ~BlockList() {
    for (void* block : free_) ::operator delete(block);
    ended_ = true;
  }
  static BlockList& of_thread() {
    thread_local BlockList list;
    return list;
  }
  void* take() {
    if (free_.empty()) return ::operator new(sizeof(Block));
    void* block = free_.back();
    free_.pop_back();
    return block;
  }
  void give(void* block) {
    if (ended_ || free_.size() == kMost) return ::operator delete(block);
    free_.push_back(block);
  }

 private:
  static constexpr size_t kMost = 1 << 14;         // blocks that a thread keeps
  static thread_local inline bool ended_ = false;  // blocks that outlive the list are deleted
  std::vector<void*> free_;
};

template <typename T>
struct NodeAllocator {
  using value_type = T;
  NodeAllocator() = default;
  template <typename U>
  NodeAllocator(const NodeAllocator<U>&) {}
  T* allocate(size_t) { return static_cast<T*>(BlockList<T>::of_thread().take()); }
  void deallocate(T* node, size_t) { BlockList<T>::of_thread().give(node); }
  friend bool operator==(const NodeAllocator&, const NodeAllocator&) { return true; }
};

}  // namespace

template <typename Op>
static Expr make(Op op, DType dtype) {
  return Expr(std::allocate_shared<const ExprNode>(NodeAllocator<ExprNode>(),
                                                   ExprNode{std::move(op), dtype}));
}

Expr::Expr(int64_t value) : Expr(int_imm(value)) {}

Expr int_imm(int64_t value, DType dtype) { return make(IntImm{value}, dtype); }
Expr float_imm(double value, DType dtype) { return make(FloatImm{value}, dtype); }
Expr make_var(VarId id, std::string name) { return make(Var{id, std::move(name)}, DType::kInt64); }

Expr load(TensorId tensor, std::vector<Expr> indices, DType dtype) {
  return make(Load{tensor, std::move(indices)}, dtype);
}

const int64_t* as_int(const Expr& e) {
  const IntImm* imm = as<IntImm>(e);
  return imm ? &imm->value : nullptr;
}

static bool is_int(const Expr& e, int64_t value) {
  const int64_t* imm = as_int(e);
  return imm && *imm == value;
}

static bool is_imm(const Expr& e) { return as<IntImm>(e) || as<FloatImm>(e); }

static bool fits(int64_t value, DType dtype) {
  return !is_float(dtype) && wrap_to(dtype, value) == value;
}

// How much a dtype holds: bool < int8 < int32 < int64 < float16 < float32.
static int64_t rank(DType t) {
  return (is_float(t) ? 100 : 0) + (t == DType::kBool ? 0 : row_of(t).bits);
}

std::optional<DType> common_dtype(const Expr& a, const Expr& b) {
  if (a->dtype == b->dtype) return a->dtype;
  const bool same_kind = is_float(a->dtype) == is_float(b->dtype);
  const DType wider = rank(a->dtype) < rank(b->dtype) ? b->dtype : a->dtype;
  if (is_imm(a) && is_imm(b)) return wider;
  if (is_imm(a) && (same_kind || is_float(b->dtype))) return b->dtype;
  if (is_imm(b) && (same_kind || is_float(a->dtype))) return a->dtype;
  if (same_kind && !is_float(a->dtype) && rank(a->dtype) != rank(b->dtype)) return wider;
  return std::nullopt;
}

static void unify(Expr& a, Expr& b) {
  if (a->dtype == b->dtype) return;
  const std::optional<DType> common = common_dtype(a, b);
  CHECK(common) << "operands of types " << dtype_name(a->dtype) << " and " << dtype_name(b->dtype);
  a = cast(*common, std::move(a));
  b = cast(*common, std::move(b));
}

bool is_compare(BinaryOp op) { return op >= BinaryOp::kLt && op <= BinaryOp::kNe; }

int64_t floor_div(int64_t a, int64_t b) { return divided_down(a, b); }
int64_t floor_mod(int64_t a, int64_t b) { return remainder_down(a, b); }

__extension__ using Wide = __int128;  // holds what two int64 give

static std::optional<int64_t> fold(BinaryOp op, DType dtype, int64_t a, int64_t b) {
  const bool is_wide = is_wide_unsigned(dtype);
  const auto widened = [&](int64_t v) {
    return is_wide ? Wide{static_cast<uint64_t>(v)} : Wide{v};
  };
  const bool rounds_down = op == BinaryOp::kFloorDiv || op == BinaryOp::kFloorMod;
  if (op == BinaryOp::kDiv || (rounds_down && widened(b) <= 0)) return std::nullopt;
  const auto value = value_of<Wide>(op, widened(a), widened(b));
  const auto narrow = static_cast<int64_t>(value);
  return widened(narrow) == value ? std::optional(narrow) : std::nullopt;
}

static bool has_float_value(BinaryOp op) {
  return op <= BinaryOp::kDiv || op == BinaryOp::kMin || op == BinaryOp::kMax;
}

// x + 0 and the like. Integers and truth values only: 0.0 * x and x + 0.0 are not x for every
// float.
static Expr identity(BinaryOp op, const Expr& a, const Expr& b) {
  switch (op) {
    case BinaryOp::kAdd: return is_int(b, 0) ? a : is_int(a, 0) ? b : Expr();
    case BinaryOp::kSub: return is_int(b, 0) ? a : Expr();
    case BinaryOp::kMul:
      if (is_int(a, 0) || is_int(b, 1)) return a;
      return is_int(b, 0) || is_int(a, 1) ? b : Expr();
    case BinaryOp::kFloorDiv: return is_int(b, 1) ? a : Expr();
    case BinaryOp::kFloorMod: return is_int(b, 1) ? int_imm(0, a->dtype) : Expr();
    case BinaryOp::kAnd:
      if (is_int(a, 0) || is_int(b, 1)) return a;
      return is_int(b, 0) || is_int(a, 1) ? b : Expr();
    case BinaryOp::kOr:
      if (is_int(a, 1) || is_int(b, 0)) return a;
      return is_int(b, 1) || is_int(a, 0) ? b : Expr();
    case BinaryOp::kXor: return is_int(b, 0) ? a : is_int(a, 0) ? b : Expr();
    default: return Expr();
  }
}

Expr binary(BinaryOp op, Expr a, Expr b) {
  unify(a, b);
  const bool logical = op == BinaryOp::kAnd || op == BinaryOp::kOr;
  CHECK(!logical || a->dtype == DType::kBool) << "a logical operand is not bool";
  const DType dtype = is_compare(op) ? DType::kBool : a->dtype;
  if (const int64_t* x = as_int(a), *y = as_int(b); x && y) {
    const std::optional<int64_t> folded = fold(op, a->dtype, *x, *y);
    if (folded && fits(*folded, dtype)) return int_imm(*folded, dtype);
  }
  if (const FloatImm* x = as<FloatImm>(a), *y = as<FloatImm>(b); x && y) {
    if (is_compare(op)) return int_imm(value_of<bool>(op, x->value, y->value), dtype);
    if (has_float_value(op)) return float_imm(value_of<double>(op, x->value, y->value), dtype);
  }
  if (Expr same = identity(op, a, b)) return same;
  return make(Binary{op, std::move(a), std::move(b)}, dtype);
}

Expr select(Expr condition, Expr a, Expr b) {
  unify(a, b);
  CHECK(condition->dtype == DType::kBool) << "the condition of a select is not bool";
  if (const int64_t* taken = as_int(condition)) return *taken ? a : b;
  const DType dtype = a->dtype;
  return make(Select{std::move(condition), std::move(a), std::move(b)}, dtype);
}

Expr cast(DType to, Expr value) {
  if (value->dtype == to) return value;
  if (const IntImm* imm = as<IntImm>(value)) {
    if (is_float(to)) return float_imm(cast_int(value->dtype, to, imm->value), to);
    if (to == DType::kBool) return int_imm(imm->value != 0, to);
    if (fits(imm->value, to)) return int_imm(imm->value, to);
  }
  if (const FloatImm* imm = as<FloatImm>(value)) {
    const bool is_double = value->dtype == DType::kFloat64 || to == DType::kFloat64;
    if (is_float(to))
      return float_imm(is_double ? cast_float(value->dtype, to, imm->value) : imm->value, to);
    return int_imm(truncate_to(to, imm->value), to);
  }
  return make(Cast{std::move(value)}, to);
}

Expr bit_cast(DType to, Expr value) {
  if (value->dtype == to) return value;
  CHECK(row_of(value->dtype).bits == row_of(to).bits)
      << dtype_name(value->dtype) << " has not as many bits as " << dtype_name(to);
  return make(Cast{std::move(value), true}, to);
}

Expr call(Intrinsic function, std::vector<Expr> args) {
  CHECK(args.size() == facts_of(function).arguments) << "arguments of an intrinsic";
  if (args.size() == 2) unify(args[0], args[1]);
  if (function == Intrinsic::kNot) {
    CHECK(args[0]->dtype == DType::kBool) << "the operand of ! is not bool";
    if (const int64_t* imm = as_int(args[0])) return int_imm(!*imm, DType::kBool);
  }
  const DType dtype = args[0]->dtype;
  return make(Call{function, std::move(args)}, dtype);
}

namespace {

// Maps a node of one expression to an equal node of the other expression.
using Equals = NodeMemo<const ExprNode*>;

bool equal(const Expr& a, const Expr& b, Equals& known);

bool equal(const std::vector<Expr>& a, const std::vector<Expr>& b, Equals& known) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const Expr& x, const Expr& y) {
    return equal(x, y, known);
  });
}

bool equal(const Expr& a, const Expr& b, Equals& known) {
  if (a.same_as(b)) return true;
  if (!a || !b || a->dtype != b->dtype || a->op.index() != b->op.index()) return false;
  const ExprNode* const* partner = known.find(a);
  if (partner != nullptr && *partner == &*b) return true;
  const bool same = match(
      a->op,
      [&](const IntImm& x) { return x.value == as<IntImm>(b)->value; },
      [&](const FloatImm& x) { return x.value == as<FloatImm>(b)->value; },
      [&](const Var& x) { return x.id == as<Var>(b)->id; },
      [&](const Binary& x) {
        const Binary& y = *as<Binary>(b);
        return x.op == y.op && equal(x.a, y.a, known) && equal(x.b, y.b, known);
      },
      [&](const Select& x) {
        const Select& y = *as<Select>(b);
        return equal(x.condition, y.condition, known) && equal(x.a, y.a, known) &&
               equal(x.b, y.b, known);
      },
      [&](const Cast& x) {
        const Cast& y = *as<Cast>(b);
        return x.of_bits == y.of_bits && equal(x.value, y.value, known);
      },
      [&](const Call& x) {
        return x.function == as<Call>(b)->function && equal(x.args, as<Call>(b)->args, known);
      },
      [&](const Load& x) {
        return x.tensor == as<Load>(b)->tensor && equal(x.indices, as<Load>(b)->indices, known);
      });
  if (same) known.keep(a, &*b);
  return same;
}

// A rewriting, and what it has made.
class ExprRewriter {
 public:
  explicit ExprRewriter(const std::function<Expr(const Expr&)>& fn) : fn_(fn) {}

  Expr run(const Expr& e) {
    if (const Expr* known = made_.find(e)) return *known;
    Expr made = rebuilt(e);
    made_.keep(e, made);
    return made;
  }

 private:
  Expr rebuilt(const Expr& e);
  std::optional<std::vector<Expr>> run_all(const std::vector<Expr>& list);

  const std::function<Expr(const Expr&)>& fn_;
  NodeMemo<Expr> made_;
};

// The list rewritten, or nothing when no element changed.
std::optional<std::vector<Expr>> ExprRewriter::run_all(const std::vector<Expr>& list) {
  std::vector<Expr> out;
  bool changed = false;
  for (const Expr& e : list) {
    out.push_back(run(e));
    changed |= !out.back().same_as(e);
  }
  return changed ? std::optional(std::move(out)) : std::nullopt;
}

Expr ExprRewriter::rebuilt(const Expr& e) {
  // A builder may fold the node to one of its children, which fn has seen: it must not see it
  // again.
  bool seen = false;
  const auto folded = [&](Expr result, std::initializer_list<const Expr*> children) {
    for (const Expr* child : children) seen |= result.same_as(*child);
    return result;
  };
  const Expr rebuilt = match(
      e->op,
      [&](const IntImm&) { return e; },
      [&](const FloatImm&) { return e; },
      [&](const Var&) { return e; },
      [&](const Binary& n) {
        Expr a = run(n.a), b = run(n.b);
        return a.same_as(n.a) && b.same_as(n.b) ? e : folded(binary(n.op, a, b), {&a, &b});
      },
      [&](const Select& n) {
        Expr c = run(n.condition), a = run(n.a), b = run(n.b);
        if (c.same_as(n.condition) && a.same_as(n.a) && b.same_as(n.b)) return e;
        return folded(select(c, a, b), {&a, &b});
      },
      [&](const Cast& n) {
        Expr value = run(n.value);
        if (value.same_as(n.value)) return e;
        return folded(n.of_bits ? bit_cast(e->dtype, value) : cast(e->dtype, value), {&value});
      },
      [&](const Call& n) {
        auto args = run_all(n.args);
        return args ? call(n.function, *std::move(args)) : e;
      },
      [&](const Load& n) {
        auto indices = run_all(n.indices);
        return indices ? load(n.tensor, *std::move(indices), e->dtype) : e;
      });
  Expr replaced = seen ? Expr() : fn_(rebuilt);
  return replaced ? replaced : rebuilt;
}

// The operands of a node, in order.
template <typename Fn>
void each_operand(const Expr& e, const Fn& fn) {
  match(
      e->op,
      [](const IntImm&) {},
      [](const FloatImm&) {},
      [](const Var&) {},
      [&](const Binary& n) { fn(n.a), fn(n.b); },
      [&](const Select& n) { fn(n.condition), fn(n.a), fn(n.b); },
      [&](const Cast& n) { fn(n.value); },
      [&](const Call& n) {
        for (const Expr& arg : n.args) fn(arg);
      },
      [&](const Load& n) {
        for (const Expr& index : n.indices) fn(index);
      });
}

void visit(const Expr& e, const std::function<void(const Expr&)>& fn, NodeMemo<bool>& seen) {
  if (seen.find(e) != nullptr) return;
  fn(e);
  each_operand(e, [&](const Expr& part) { visit(part, fn, seen); });
  seen.keep(e, true);
}

double tree_size(const Expr& e, TensorId tensor, double load_size, NodeMemo<double>& known) {
  if (const double* size = known.find(e)) return *size;
  const Load* read = as<Load>(e);
  double size = read != nullptr && read->tensor == tensor ? load_size : 1;
  each_operand(e, [&](const Expr& part) { size += tree_size(part, tensor, load_size, known); });
  known.keep(e, size);
  return size;
}

}  // namespace

bool structural_equal(const Expr& a, const Expr& b) {
  Equals known;
  return equal(a, b, known);
}

Expr rewrite(const Expr& e, const std::function<Expr(const Expr&)>& fn) {
  return ExprRewriter(fn).run(e);
}

Expr substitute(const Expr& e, const std::vector<Expr>& values) {
  return rewrite(e, [&](const Expr& node) {
    const Var* var = as<Var>(node);
    const bool given = var && var->id.value < static_cast<int>(values.size());
    return given ? values[var->id.value] : Expr();
  });
}

void visit(const Expr& e, const std::function<void(const Expr&)>& fn) {
  NodeMemo<bool> seen;
  visit(e, fn, seen);
}

bool reads(const Expr& e, VarId var) {
  bool found = false;
  visit(e,
        [&](const Expr& part) { found |= as<Var>(part) != nullptr && as<Var>(part)->id == var; });
  return found;
}

void visit_uses(const Expr& e, const std::function<void(const Expr&)>& fn) {
  fn(e);
  each_operand(e, [&](const Expr& part) { visit_uses(part, fn); });
}

double tree_size(const Expr& e, TensorId tensor, double load_size) {
  NodeMemo<double> known;
  return tree_size(e, tensor, load_size, known);
}

}  // namespace pruner
