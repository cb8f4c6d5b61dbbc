// Scalar expressions over iterators and tensor elements: the bodies of compute stages and the index
// arithmetic of loop IR. Immutable handles; copying shares; rewriting is bottom-up and keeps what
// does not change. Index expressions are int64. Equality of meaning is structural_equal().
//
// An expression is a DAG: (x + x) + (x + x) may have two additions, written out it has three. Such
// chains grow exponentially when they are written out, so walks remember what they have made of a
// node (NodeMemo), and stages end before that is too much (space/rules/inline.cpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "support/id.h"
#include "support/match.h"
#include "tensor/dtype.h"

namespace pruner {

struct ExprNode;

/// An immutable expression.
class Expr {
 public:
  Expr() = default;
  explicit Expr(std::shared_ptr<const ExprNode> node) : node_(std::move(node)) {}
  /// An index constant (int64).
  Expr(int64_t value);
  Expr(int value) : Expr(static_cast<int64_t>(value)) {}

  const ExprNode* operator->() const { return node_.get(); }
  const ExprNode& operator*() const { return *node_; }
  explicit operator bool() const { return node_ != nullptr; }
  bool same_as(const Expr& other) const { return node_ == other.node_; }
  /// Whether others may hold the node too.
  bool is_shared() const { return node_.use_count() > 1; }

 private:
  std::shared_ptr<const ExprNode> node_;
};

/// A variable of the owner that gives it meaning: in a stage's body, iterator number `value` of the
/// stage (spatial axes first, then reduce axes); in a Program, loop variable number `value`.
struct VarTag {};
using VarId = Id<VarTag>;

/// A tensor of the owner: stage number `value` in a ComputeDag, buffer number in a Program.
struct TensorTag {};
using TensorId = Id<TensorTag>;

enum class BinaryOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,  // kDiv: true division of floats
  kFloorDiv,
  kFloorMod,  // integers, rounding down
  kMin,
  kMax,
  kLt,
  kLe,
  kGt,
  kGe,
  kEq,
  kNe,  // result kBool
  kAnd,
  kOr,   // kAnd, kOr: operands are kBool
  kXor,  // bits of integers
};

enum class Intrinsic : uint8_t {
  kExp,
  kLog,
  kSqrt,
  kRsqrt,
  kTanh,
  kSigmoid,
  kErf,
  kPow,
  kAbs,
  kFloor,
  kCeil,
  kRound,
  kSin,
  kCos,
  kNot,  // kRound: halves to even; kNot: of kBool
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kAsinh,
  kAcosh,
  kAtanh,
  kTf32,  // round_to_tf32()
  kExpm1,
  kLog1p,      // exp(x) - 1 and log(1 + x), which keep the digits of a small x
  kNormalCdf,  // (1 + erf(x / sqrt(2))) / 2, which keeps the digits of its lower tail
};

struct IntImm {
  int64_t value;
};  // dtype in the node: an integer or kBool
struct FloatImm {
  double value;
};
struct Var {
  VarId id;
  std::string name;
};  // int64; the name is for printing only
struct Binary {
  BinaryOp op;
  Expr a, b;
};
struct Select {
  Expr condition, a, b;
};  // evaluates (and loads) only the branch it takes
struct Cast {
  Expr value;
  bool of_bits = false;
};  // to the node's dtype; float to int truncates. of_bits: the same bits, of a type of as many
struct Call {
  Intrinsic function;
  std::vector<Expr> args;
};
struct Load {
  TensorId tensor;
  std::vector<Expr> indices;
};

struct ExprNode {
  std::variant<IntImm, FloatImm, Var, Binary, Select, Cast, Call, Load> op;
  DType dtype;
};

// Builders. They fold constants and the identities x+0, x-0, x*1, x*0 (integers), x//1, x%1,
// min/max of constants, && and || with a constant, select of a constant condition; nothing else.
// Operands of two types meet in common_dtype(), which must exist (CHECK).
/// The type in which a and b combine: an immediate takes the other's type, a narrower integer
/// widens. None when a float meets an integer that is not an immediate, float16 meets float32, or
/// one integer of as many bytes another.
std::optional<DType> common_dtype(const Expr& a, const Expr& b);
Expr int_imm(int64_t value, DType dtype = DType::kInt64);
Expr float_imm(double value, DType dtype = DType::kFloat32);
Expr make_var(VarId id, std::string name);
Expr binary(BinaryOp op, Expr a, Expr b);
Expr select(Expr condition, Expr a, Expr b);
Expr cast(DType to, Expr value);
/// The value of type `to` that has the bits of `value`, whose type has as many (CHECK).
Expr bit_cast(DType to, Expr value);
Expr call(Intrinsic function, std::vector<Expr> args);
Expr load(TensorId tensor, std::vector<Expr> indices, DType dtype);

inline Expr operator+(Expr a, Expr b) { return binary(BinaryOp::kAdd, std::move(a), std::move(b)); }
inline Expr operator-(Expr a, Expr b) { return binary(BinaryOp::kSub, std::move(a), std::move(b)); }
inline Expr operator*(Expr a, Expr b) { return binary(BinaryOp::kMul, std::move(a), std::move(b)); }
inline Expr operator/(Expr a, Expr b) { return binary(BinaryOp::kDiv, std::move(a), std::move(b)); }
inline Expr floor_div(Expr a, Expr b) {
  return binary(BinaryOp::kFloorDiv, std::move(a), std::move(b));
}
inline Expr ceil_div(Expr a, Expr b) { return floor_div(std::move(a) + b - Expr(1), b); }
inline Expr floor_mod(Expr a, Expr b) {
  return binary(BinaryOp::kFloorMod, std::move(a), std::move(b));
}
inline Expr min(Expr a, Expr b) { return binary(BinaryOp::kMin, std::move(a), std::move(b)); }
inline Expr max(Expr a, Expr b) { return binary(BinaryOp::kMax, std::move(a), std::move(b)); }
inline Expr operator^(Expr a, Expr b) { return binary(BinaryOp::kXor, std::move(a), std::move(b)); }
inline Expr operator<(Expr a, Expr b) { return binary(BinaryOp::kLt, std::move(a), std::move(b)); }
inline Expr operator>=(Expr a, Expr b) { return binary(BinaryOp::kGe, std::move(a), std::move(b)); }
inline Expr operator&&(Expr a, Expr b) {
  return binary(BinaryOp::kAnd, std::move(a), std::move(b));
}

template <typename Op>
const Op* as(const Expr& e) {
  return e ? std::get_if<Op>(&e->op) : nullptr;
}

/// Whether the node has no operands: an immediate or a variable.
inline bool is_leaf(const Expr& e) { return as<IntImm>(e) || as<FloatImm>(e) || as<Var>(e); }

/// Remembers the results of a walk over an expression for nodes that the walk may meet again. The
/// memo begins after some hundred nodes: most expressions are index arithmetic of a few nodes.
template <typename T>
class NodeMemo {
 public:
  /// Null: the node has to be walked.
  const T* find(const Expr& e) {
    if (++walked_ <= kFew || !e.is_shared() || made_.empty()) return nullptr;
    const auto at = made_.find(&*e);
    return at == made_.end() ? nullptr : &at->second.made;
  }
  void keep(const Expr& e, const T& made) {
    if (walked_ > kFew && e.is_shared() && !is_leaf(e)) made_.emplace(&*e, Entry{e, made});
  }

 private:
  static constexpr int kFew = 128;
  struct Entry {
    Expr node;  // held, so that no later node takes its place in memory
    T made;
  };
  int64_t walked_ = 0;
  std::unordered_map<const ExprNode*, Entry> made_;
};
/// The value of an integer constant, if it is one.
const int64_t* as_int(const Expr& e);

/// kLt ... kNe: the result is kBool.
bool is_compare(BinaryOp op);
/// Integer division that rounds down, and its remainder; b is not 0.
int64_t floor_div(int64_t a, int64_t b);
int64_t floor_mod(int64_t a, int64_t b);

/// Whether both are the same tree, types included; variables compare by id, not by name.
bool structural_equal(const Expr& a, const Expr& b);

/// Rebuilds `e` bottom-up: children first, then fn(node) may return a replacement (an empty Expr
/// keeps the node). Unchanged parts stay shared, and what was shared is rewritten once.
Expr rewrite(const Expr& e, const std::function<Expr(const Expr&)>& fn);
/// Replaces variable i by values[i]; an empty Expr keeps it.
Expr substitute(const Expr& e, const std::vector<Expr>& values);
/// Calls fn on every node, parents first. How often on one that others share is not said: who
/// counts uses visit_uses().
void visit(const Expr& e, const std::function<void(const Expr&)>& fn);
/// Whether a variable stands in `e`.
bool reads(const Expr& e, VarId var);
/// The same as visit(), on a node as often as the expression written out has it.
void visit_uses(const Expr& e, const std::function<void(const Expr&)>& fn);
/// The nodes of the expression written out as a tree, where a load of `tensor` counts as
/// `load_size`.
double tree_size(const Expr& e, TensorId tensor = {}, double load_size = 1);

/// TVM's spelling, as in the `body` of a DAG file: "max(T_add[ax0, ax1], 0.0)". `tensor_name` gives
/// the name of a loaded tensor.
std::string print(const Expr& e, const std::function<std::string(TensorId)>& tensor_name);

}  // namespace pruner
