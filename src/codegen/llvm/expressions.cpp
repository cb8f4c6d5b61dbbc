// Expressions: scalars, and vectors of them inside a vector loop.
#include <algorithm>
#include <cmath>

#include "codegen/llvm/emitter.h"
#include "codegen/llvm/math.h"
#include "support/check.h"
#include "tensor/multiply_add.h"
#include "tensor/scalar_ops.h"

namespace pruner {

using llvm::CmpInst;

// Returns the type of values in computations: all floats but float64 are float, bool is one bit.
llvm::Type* Emitter::value_type(DType dtype) {
  if (dtype == DType::kFloat64) return b_.getDoubleTy();
  if (is_float(dtype)) return b_.getFloatTy();
  if (dtype == DType::kBool) return b_.getInt1Ty();
  return b_.getIntNTy(static_cast<unsigned>(8 * dtype_bytes(dtype)));
}

// Returns the type of values in memory: bool is a byte; a float that is the upper bits of float32
// is an integer.
llvm::Type* Emitter::memory_type(DType dtype) {
  if (dtype == DType::kBool) return b_.getInt8Ty();
  if (is_upper_float32(dtype)) return b_.getIntNTy(static_cast<unsigned>(8 * dtype_bytes(dtype)));
  return is_narrow_float(dtype) ? b_.getHalfTy() : value_type(dtype);
}

llvm::Type* Emitter::at_width(llvm::Type* scalar, int lanes) {
  return lanes == 1 ? scalar : llvm::FixedVectorType::get(scalar, static_cast<unsigned>(lanes));
}

// LLVM's bfloat is for CPUs with an instruction that makes one; others call a library to do so. On
// x86 it makes 0 of what is below the normal numbers, as dot instructions do, and so it is for
// kernels with such alone.
llvm::Value* Emitter::from_memory(Value* value, DType dtype) {
  llvm::Type* type = value->getType()->getWithNewType(value_type(dtype));
  if (is_upper_float32(dtype)) {
    Value* bits = b_.CreateZExt(value, value->getType()->getWithNewBitWidth(32));
    return b_.CreateBitCast(b_.CreateShl(bits, 32 - 8 * dtype_bytes(dtype)), type);
  }
  if (is_narrow_float(dtype)) return b_.CreateFPExt(value, type);
  if (dtype == DType::kBool) return b_.CreateIsNotNull(value);
  return value;
}

llvm::Value* Emitter::to_memory(Value* value, DType dtype) {
  llvm::Type* type = value->getType()->getWithNewType(memory_type(dtype));
  if (dtype == DType::kBFloat16 && kernel_.makes_bfloat16) {
    llvm::Type* narrow = value->getType()->getWithNewType(b_.getBFloatTy());
    return b_.CreateBitCast(b_.CreateFPTrunc(value, narrow), type);
  }
  if (is_upper_float32(dtype)) {
    const auto dropped = static_cast<uint64_t>(32 - 8 * dtype_bytes(dtype));
    Value* bits = b_.CreateBitCast(value, value->getType()->getWithNewType(b_.getInt32Ty()));
    const auto constant = [&](uint64_t v) { return llvm::ConstantInt::get(bits->getType(), v); };
    // Half of what the last bit kept stands for, less one where that bit is even.
    Value* last = b_.CreateAnd(b_.CreateLShr(bits, dropped), constant(1));
    Value* half = b_.CreateAdd(last, constant((uint64_t{1} << (dropped - 1)) - 1));
    Value* quiet = b_.CreateOr(bits, constant(uint64_t{1} << 22));
    Value* kept = b_.CreateSelect(b_.CreateFCmpUNO(value, value), quiet, b_.CreateAdd(bits, half));
    return b_.CreateTrunc(b_.CreateLShr(kept, dropped), type);
  }
  if (is_narrow_float(dtype)) return b_.CreateFPTrunc(value, type);
  if (dtype == DType::kBool) return b_.CreateZExt(value, type);
  return value;
}

llvm::Value* Emitter::widened(Value* value) {
  if (lanes_ == 1 || value->getType()->isVectorTy()) return value;
  return b_.CreateVectorSplat(static_cast<unsigned>(lanes_), value);
}

// A scalar beside a vector becomes one.
void Emitter::unify(Value*& a, Value*& b) {
  if (a->getType()->isVectorTy()) b = widened(b);
  if (b->getType()->isVectorTy()) a = widened(a);
}

// Null is true: no condition.
llvm::Value* Emitter::logical_and(Value* a, Value* b) {
  if (!a || !b) return a ? a : b;
  unify(a, b);
  return b_.CreateAnd(a, b);
}

llvm::Value* Emitter::expr(const Expr& e) {
  if (expr_depth_ == 0) made_ = {};
  if (Value* const* known = made_.find(e)) return *known;
  ++expr_depth_;
  Value* made = expr_node(e);
  --expr_depth_;
  made_.keep(e, made);
  return made;
}

llvm::Value* Emitter::expr_node(const Expr& e) {
  return match(
      e->op,
      [&](const IntImm& n) -> Value* {
        return llvm::ConstantInt::getSigned(value_type(e->dtype), n.value);
      },
      [&](const FloatImm& n) -> Value* {
        return llvm::ConstantFP::get(value_type(e->dtype), n.value);
      },
      [&](const Var&) { return value(linear(e)); },
      [&](const Binary& n) { return e->dtype == DType::kInt64 ? value(linear(e)) : binary(n); },
      [&](const Select& n) { return select_value(n); },
      [&](const Cast& n) {
        const DType from = n.value->dtype;
        if (!n.of_bits && is_float(from) && !is_float(e->dtype)) {
          Value* value = rounded_apart([&] { return expr(n.value); });
          return e->dtype == DType::kBool ? cast_value(value, from, e->dtype)
                                          : truncated(value, e->dtype, range_of(n.value));
        }
        if (const auto fused = as_multiply_add(e); fused && kernel_.math.fma)
          return multiply_add(fused->a, fused->b, fused->c);
        Value* value = expr(n.value);
        return n.of_bits ? bit_cast_value(value, from, e->dtype)
                         : cast_value(value, from, e->dtype);
      },
      [&](const Call& n) {
        const bool jumps = n.function == Intrinsic::kFloor || n.function == Intrinsic::kCeil ||
                           n.function == Intrinsic::kRound;
        return jumps ? rounded_apart([&] { return intrinsic(n); }) : intrinsic(n);
      },
      [&](const Load& n) { return load(n, nullptr); });
}

// Returns the value that `make` computes, with products that are rounded before they are added. An
// operator that jumps reads the value, so that the last digit, which a fused sum changes, may
// decide. For example, x * (1 / 3) - 1 is 0 if x is 3; the fused sum is 3e-8, whose ceiling is 1.
template <typename Make>
llvm::Value* Emitter::rounded_apart(const Make& make) {
  const llvm::FastMathFlags outer = b_.getFastMathFlags();
  if (!outer.allowContract()) return make();
  const NodeMemo<Value*> made = made_;  // values that are fused elsewhere are computed again
  made_ = {};
  b_.setFastMathFlags({});
  Value* result = make();
  b_.setFastMathFlags(outer);
  made_ = made;
  return result;
}

llvm::Value* Emitter::binary(const Binary& n) {
  const DType dtype = n.a->dtype;
  const bool comparison = n.op >= BinaryOp::kLt && n.op <= BinaryOp::kNe;
  if (comparison && dtype == DType::kInt64) return compare_indices(n.op, n.a, n.b);
  if (n.op == BinaryOp::kAdd && is_float(dtype) && b_.getFastMathFlags().allowContract()) {
    const auto product_of = [](const Expr& e) {
      const Binary* product = as<Binary>(e);
      return product && product->op == BinaryOp::kMul ? product : nullptr;
    };
    if (const Binary* product = product_of(n.b)) return multiply_add(product->a, product->b, n.a);
    if (const Binary* product = product_of(n.a)) return multiply_add(product->a, product->b, n.b);
  }
  if (comparison && is_float(dtype)) return rounded_apart([&] { return compared(n); });
  if (comparison) return compared(n);
  Value* a = expr(n.a);
  if (n.op == BinaryOp::kAnd || n.op == BinaryOp::kOr) {
    // A known operand decides before the other is made.
    const auto* known = llvm::dyn_cast<llvm::ConstantInt>(a);
    if (known) return known->isOne() == (n.op == BinaryOp::kOr) ? a : expr(n.b);
  }
  Value* b = expr(n.b);
  unify(a, b);
  if (n.op == BinaryOp::kFloorMod && is_float(dtype)) return emit_remainder(b_, a, b);
  if (n.op == BinaryOp::kFloorDiv || n.op == BinaryOp::kFloorMod) {
    if (is_signed_int(dtype)) return floor_division(n.op, a, b, bounds_of(n.a), bounds_of(n.b));
    const int64_t most = is_wide_unsigned(dtype) ? INT64_MAX : greatest_int(dtype);
    return floor_division(n.op, a, b, {0, most}, {0, most});
  }
  return arithmetic(n.op, dtype, a, b);
}

llvm::Value* Emitter::compared(const Binary& n) {
  Value *a = expr(n.a), *b = expr(n.b);
  unify(a, b);
  return compare(n.op, n.a->dtype, a, b);
}

// The condition of a select. Where a branch has what is compared, as x in LeakyRelu's
// select(x < 0, 0.01 * x, x), the result does not jump where the comparison does.
llvm::Value* Emitter::condition_of(const Select& n) {
  const Binary* test = as<Binary>(n.condition);
  if (test == nullptr || !is_compare(test->op) || !is_float(test->a->dtype))
    return expr(n.condition);
  bool shared = false;
  for (const Expr& branch : {n.a, n.b}) {
    visit(branch, [&](const Expr& part) {
      shared |= !is_leaf(part) && (part.same_as(test->a) || part.same_as(test->b));
    });
  }
  return shared ? compared(*test) : expr(n.condition);
}

// fmuladd is one instruction where the CPU has it, and never a call.
llvm::Value* Emitter::multiply_add(const Expr& x, const Expr& y, const Expr& addend) {
  Value *c = expr(addend), *a = expr(x), *b = expr(y);
  unify(a, b);
  unify(a, c);
  unify(b, c);
  return b_.CreateIntrinsic(llvm::Intrinsic::fmuladd, {a->getType()}, {a, b, c});
}

llvm::Value* Emitter::arithmetic(BinaryOp op, DType dtype, Value* a, Value* b) {
  const bool fp = is_float(dtype);
  switch (op) {
    case BinaryOp::kAdd: return fp ? b_.CreateFAdd(a, b) : b_.CreateAdd(a, b);
    case BinaryOp::kSub: return fp ? b_.CreateFSub(a, b) : b_.CreateSub(a, b);
    case BinaryOp::kMul: return fp ? b_.CreateFMul(a, b) : b_.CreateMul(a, b);
    case BinaryOp::kDiv: return b_.CreateFDiv(a, b);
    case BinaryOp::kMin:
    case BinaryOp::kMax: return extreme(op, dtype, a, b);
    case BinaryOp::kAnd: return b_.CreateAnd(a, b);
    case BinaryOp::kOr: return b_.CreateOr(a, b);
    case BinaryOp::kXor: return b_.CreateXor(a, b);
    default: break;
  }
  CHECK(false) << "no arithmetic operator";
  return nullptr;
}

// NaN where an operand is. An instruction of x86 gives its second operand for an unordered pair, so
// that where one operand is a number, as in max(x, 0), it is all that is needed.
llvm::Value* Emitter::extreme(BinaryOp op, DType dtype, Value* a, Value* b) {
  const auto is_number = [](Value* v) {
    auto* constant = llvm::dyn_cast<llvm::Constant>(v);
    if (constant && v->getType()->isVectorTy()) constant = constant->getSplatValue();
    auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
    return number && !number->getValue().isNaN();
  };
  if (is_float(dtype) && is_number(a)) std::swap(a, b);
  const bool min = op == BinaryOp::kMin;
  Value* second = min ? compare(BinaryOp::kLt, dtype, b, a) : compare(BinaryOp::kLt, dtype, a, b);
  Value* result = b_.CreateSelect(second, b, a);
  if (!is_float(dtype) || is_number(b)) return result;
  return b_.CreateSelect(b_.CreateFCmpUNO(b, b), b, result);
}

llvm::Value* Emitter::compare(BinaryOp op, DType dtype, Value* a, Value* b) {
  const bool fp = is_float(dtype);
  const auto less = fp                     ? CmpInst::FCMP_OLT
                    : is_signed_int(dtype) ? CmpInst::ICMP_SLT
                                           : CmpInst::ICMP_ULT;
  switch (op) {
    case BinaryOp::kLt: return b_.CreateCmp(less, a, b);
    case BinaryOp::kLe:
      return fp ? b_.CreateFCmpOLE(a, b) : b_.CreateNot(compare(BinaryOp::kLt, dtype, b, a));
    case BinaryOp::kGt: return compare(BinaryOp::kLt, dtype, b, a);
    case BinaryOp::kGe: return compare(BinaryOp::kLe, dtype, b, a);
    case BinaryOp::kEq: return fp ? b_.CreateFCmpOEQ(a, b) : b_.CreateICmpEQ(a, b);
    case BinaryOp::kNe: return fp ? b_.CreateFCmpUNE(a, b) : b_.CreateICmpNE(a, b);
    default: break;
  }
  CHECK(false) << "no comparison";
  return nullptr;
}

bool Emitter::loads(const Expr& e) {
  bool any = false;
  visit(e, [&](const Expr& part) { any |= as<Load>(part) != nullptr; });
  return any;
}

// Whether the place of a load is itself loaded. Such a place is known only under the conditions of
// the load.
bool Emitter::place_is_loaded(const Load& n) { return std::ranges::any_of(n.indices, loads); }

// Loads of a branch happen only where the condition takes it. select(c, x[i], constant) with a
// uniform c chooses between two addresses and needs nothing else, unless i is loaded.
llvm::Value* Emitter::select_value(const Select& n) {
  Value* condition = condition_of(n);
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition)) {
    return expr(known->isOne() ? n.a : n.b);
  }
  if (!condition->getType()->isVectorTy()) {
    const auto or_constant = [&](Value* taken, const Load* load, const Expr& other) -> Value* {
      if (!load || (!as<FloatImm>(other) && !as<IntImm>(other))) return nullptr;
      if (place_is_loaded(*load)) return nullptr;
      const Buffer& buffer = program_[load->tensor];
      if (buffer.scope == pruner::Scope::kRegister || mask()) return nullptr;
      const LaneIndex place = flatten(load->tensor, load->indices);
      LaneIndex uniform = place;
      uniform.lane = 0;
      if (varies_by_lane(uniform) || (place.lane != 0 && place.lane != 1)) return nullptr;
      const Predicate outer = predicate_;
      predicate_.uniform = logical_and(predicate_.uniform, taken);
      auto* constant = llvm::cast<llvm::Constant>(to_memory(expr(other), buffer.dtype));
      Value* result = load_place(load->tensor, place, constant);
      predicate_ = outer;
      return result;
    };
    if (Value* v = or_constant(condition, as<Load>(n.a), n.b)) return v;
    if (as<Load>(n.b)) {
      if (Value* v = or_constant(b_.CreateNot(condition), as<Load>(n.b), n.a)) return v;
    }
  }
  Value* a = under(condition, false, n.a);
  Value* b = under(condition, true, n.b);
  unify(a, b);
  // A scalar condition on vectors would become a branch.
  if (a->getType()->isVectorTy()) condition = widened(condition);
  unify(a, condition);
  unify(b, condition);
  return b_.CreateSelect(condition, a, b);
}

// The value of `e` where the condition holds; elsewhere its loads do not touch memory.
llvm::Value* Emitter::under(Value* condition, bool negated, const Expr& e) {
  if (!loads(e)) return expr(e);
  const Predicate outer = predicate_;
  const NodeMemo<Value*> made = made_;  // values loaded in here count here alone
  if (negated) condition = b_.CreateNot(condition);
  Value*& all = condition->getType()->isVectorTy() ? predicate_.lanes : predicate_.uniform;
  all = logical_and(all, condition);
  Value* result = expr(e);
  predicate_ = outer;
  made_ = made;
  return result;
}

// Returns bounds of a float, which hold if the float is a number.
Emitter::FloatRange Emitter::range_of(const Expr& e) {
  if (const FloatImm* n = as<FloatImm>(e)) return {n->value, n->value};
  if (const Call* n = as<Call>(e); n != nullptr && n->function == Intrinsic::kRound) {
    const FloatRange x = range_of(n->args[0]);
    return {std::floor(x.low), std::ceil(x.high)};
  }
  const Binary* n = as<Binary>(e);
  const bool known = n != nullptr && (n->op == BinaryOp::kAdd || n->op == BinaryOp::kSub ||
                                      n->op == BinaryOp::kMin || n->op == BinaryOp::kMax);
  if (!known) return {};
  const FloatRange a = range_of(n->a), b = range_of(n->b);
  switch (n->op) {
    case BinaryOp::kAdd: return {a.low + b.low, a.high + b.high};
    case BinaryOp::kSub: return {a.low - b.high, a.high - b.low};
    case BinaryOp::kMin: return {std::min(a.low, b.low), std::min(a.high, b.high)};
    default: return {std::max(a.low, b.low), std::max(a.high, b.high)};
  }
}

// Truncates as truncate_to() does: LLVM's conversion says nothing of values that do not fit.
llvm::Value* Emitter::truncated(Value* value, DType to, const FloatRange& range) {
  const unsigned bits = truncates_in_64_bits(to) ? 64 : 32;
  const double limit = std::ldexp(1, static_cast<int>(bits) - 1);
  llvm::Type* real = value->getType();
  llvm::Type* whole = real->getWithNewType(b_.getIntNTy(bits));
  const auto bound = [&](double number) { return llvm::ConstantFP::get(real, number); };
  Value* holds = range.low >= -limit && range.high < limit
                     ? b_.CreateFCmpORD(value, value)
                     : b_.CreateAnd(b_.CreateFCmpOGE(value, bound(-limit)),
                                    b_.CreateFCmpOLT(value, bound(limit)));
  Value* least = llvm::ConstantInt::get(whole, llvm::APInt::getSignedMinValue(bits));
  Value* result = b_.CreateSelect(holds, b_.CreateFPToSI(value, whole), least);
  return b_.CreateZExtOrTrunc(result, real->getWithNewType(value_type(to)));
}

llvm::Value* Emitter::cast_value(Value* value, DType from, DType to) {
  llvm::Type* type = value->getType()->getWithNewType(value_type(to));
  if (to == DType::kBool) {
    return is_float(from) ? b_.CreateFCmpUNE(value, llvm::Constant::getNullValue(value->getType()))
                          : b_.CreateIsNotNull(value);
  }
  if (is_narrow_float(to) && from != to)
    return from_memory(to_memory(to_single(value, from), to), to);
  if (is_float(from) && is_float(to)) return b_.CreateFPCast(value, type);
  if (is_float(from)) return truncated(value, to, {});
  if (!is_signed_int(from))
    return is_float(to) ? b_.CreateUIToFP(value, type)
                        : wrapped(b_.CreateZExtOrTrunc(value, type), to);
  return is_float(to) ? b_.CreateSIToFP(value, type)
                      : wrapped(b_.CreateSExtOrTrunc(value, type), to);
}

// Converts `value` to a float32 that rounds to the same narrow float as `value` itself.
llvm::Value* Emitter::to_single(Value* value, DType from) {
  return from == DType::kFloat64 ? round_to_odd(value) : cast_value(value, from, DType::kFloat32);
}

// An integer narrower than a byte lies in one, extended.
llvm::Value* Emitter::wrapped(Value* value, DType dtype) {
  const int unused = static_cast<int>(8 * dtype_bytes(dtype)) - row_of(dtype).bits;
  if (unused == 0) return value;
  Value* high = b_.CreateShl(value, static_cast<uint64_t>(unused));
  return is_signed_int(dtype) ? b_.CreateAShr(high, static_cast<uint64_t>(unused))
                              : b_.CreateLShr(high, static_cast<uint64_t>(unused));
}

// double -> float, to the neighbour whose last bit is odd where it is between two: what is rounded
// from there to fewer bits is as if it had been rounded once.
llvm::Value* Emitter::round_to_odd(Value* value) {
  Value* near = b_.CreateFPTrunc(value, value->getType()->getWithNewType(b_.getFloatTy()));
  Value* back = b_.CreateFPExt(near, value->getType());
  llvm::Type* type = value->getType()->getWithNewType(b_.getInt32Ty());
  const auto size = [&](Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); };
  Value* beyond = b_.CreateZExt(b_.CreateFCmpOGT(size(back), size(value)), type);
  Value* below = b_.CreateSub(b_.CreateBitCast(near, type), beyond);
  Value* odd = b_.CreateOr(below, b_.CreateZExt(b_.CreateFCmpONE(back, value), type));
  return b_.CreateBitCast(odd, near->getType());
}

llvm::Value* Emitter::bit_cast_value(Value* value, DType from, DType to) {
  llvm::Type* bits =
      value->getType()->getWithNewType(b_.getIntNTy(static_cast<unsigned>(8 * dtype_bytes(to))));
  value = b_.CreateBitCast(to_memory(value, from), bits);
  if (!is_float(to) && to != DType::kBool) return wrapped(value, to);
  return from_memory(b_.CreateBitCast(value, bits->getWithNewType(memory_type(to))), to);
}

llvm::Value* Emitter::intrinsic(const Call& n) {
  llvm::SmallVector<Value*, 2> args;
  for (const Expr& arg : n.args) args.push_back(expr(arg));
  if (args.size() == 2) unify(args[0], args[1]);
  if (n.function == Intrinsic::kNot) return b_.CreateNot(args[0]);
  if (const DType dtype = n.args[0]->dtype; n.function == Intrinsic::kAbs && !is_float(dtype)) {
    if (!is_signed_int(dtype)) return args[0];
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, args[0], b_.getFalse());
  }
  // If the arguments are the same in all lanes, the function is computed once.
  return emit_math(b_, n.function, args, kernel_.math);
}

// All lanes of a vector combined, by halves.
llvm::Value* Emitter::fold(BinaryOp op, DType dtype, Value* vector) {
  auto n = llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
  while (n > 1) {
    CHECK(n % 2 == 0) << "vector width is no power of two";
    n /= 2;
    llvm::SmallVector<int, 16> low, high;
    for (unsigned i = 0; i < n; ++i) {
      low.push_back(static_cast<int>(i));
      high.push_back(static_cast<int>(i + n));
    }
    vector = arithmetic(
        op, dtype, b_.CreateShuffleVector(vector, low), b_.CreateShuffleVector(vector, high));
  }
  return b_.CreateExtractElement(vector, uint64_t{0});
}

}  // namespace pruner
