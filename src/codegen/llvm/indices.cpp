// Index arithmetic on LaneIndex forms, and its values.
#include <numeric>

#include "codegen/llvm/emitter.h"
#include "support/check.h"

namespace pruner {

namespace {

// a + factor * b, of pairs that ascend by their first member.
template <typename Pairs>
Pairs sum_of(const Pairs& a, const Pairs& b, int64_t factor) {
  Pairs sum;
  auto i = a.begin();
  auto j = b.begin();
  while (i != a.end() || j != b.end()) {
    if (j == b.end() || (i != a.end() && i->first < j->first)) {
      sum.push_back(*i++);
    } else if (i == a.end() || j->first < i->first) {
      sum.push_back({j->first, j->second * factor});
      ++j;
    } else {
      const int64_t coefficient = i->second + j->second * factor;
      if (coefficient != 0) sum.push_back({i->first, coefficient});
      ++i;
      ++j;
    }
  }
  return sum;
}

}  // namespace

void LaneIndex::add(const LaneIndex& other, int64_t factor) {
  if (factor == 0) return;
  constant += other.constant * factor;
  lane += other.lane * factor;
  if (!other.terms.empty()) terms = sum_of(terms, other.terms, factor);
  if (!other.steps.empty()) steps = sum_of(steps, other.steps, factor);
}

int64_t LaneIndex::of_lane(int64_t i) const {
  int64_t sum = lane * i;
  for (const auto& [divisor, coefficient] : steps) sum += coefficient * (i / divisor);
  return sum;
}

namespace {

int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

bool is_power_of_two(int64_t v) { return v > 0 && (v & (v - 1)) == 0; }

// The part of `a` (constant and lanes) that is at least 0 and less than what divides all the rest
// of it and the divisor: a / divisor is (a - part) / divisor, and a % divisor that much more than
// (a - part) % divisor. Zero where there is none.
LaneIndex below_divisor(const LaneIndex& a, int64_t divisor, int64_t lanes) {
  if (!a.steps.empty()) return {};
  int64_t step = divisor;
  for (const auto& [atom, coefficient] : a.terms) step = std::gcd(step, coefficient);
  const int64_t first = a.constant - floor_quotient(a.constant, step) * step;
  const int64_t last = first + a.lane * (lanes - 1);
  return last >= 0 && last < step ? LaneIndex{first, a.lane, {}} : LaneIndex{};
}

}  // namespace

// A value as an atom of the scope of that depth; the same value has one number.
LaneIndex Emitter::as_linear(Value* value, int depth) {
  if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value)) {
    return {constant->getSExtValue(), 0, {}};
  }
  std::vector<Value*>& atoms = scopes_[depth].atoms;
  const auto place = std::find(atoms.begin(), atoms.end(), value);
  const auto number = static_cast<int>(place - atoms.begin());
  if (place == atoms.end()) atoms.push_back(value);
  return {0, 0, {{depth * kAtoms + number, 1}}};
}

// The innermost scope that `form` needs.
int Emitter::depth_of(const LaneIndex& form) const {
  if (varies_by_lane(form)) return depth();
  return form.terms.empty() ? 0 : form.terms.back().first / kAtoms;
}

// op(a, b), made once and where its operands are known: outside of inner loops.
llvm::Value* Emitter::once(BinaryOp op,
                           const LaneIndex& a,
                           const LaneIndex& b,
                           const std::function<Value*()>& make) {
  const int level = std::max(depth_of(a), depth_of(b));
  auto& known = scopes_[level].indices;
  const auto key = std::tuple(op, varies_by_lane(a) || varies_by_lane(b) ? lanes_ : 1, a, b);
  if (const auto it = known.find(key); it != known.end()) return it->second;
  return known[key] = at_depth(level, make);
}

// Sums and multiples by constants stay forms; what else there is becomes an atom.
LaneIndex Emitter::linear(const Expr& e) {
  if (const int64_t* constant = as_int(e)) return {*constant, 0, {}};
  if (const Var* var = as<Var>(e)) return vars_[var->id.value];
  const Binary* n = as<Binary>(e);
  if (!n) return as_linear(marked(e, expr(e)), depth());
  LaneIndex a = linear(n->a);
  const LaneIndex b = linear(n->b);
  switch (n->op) {
    case BinaryOp::kAdd: a.add(b, 1); return a;
    case BinaryOp::kSub: a.add(b, -1); return a;
    case BinaryOp::kMul: {
      LaneIndex product;
      if (b.is_constant()) return product.add(a, b.constant), product;
      if (a.is_constant()) return product.add(b, a.constant), product;
      break;
    }
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod: {
      if (a.is_constant() && b.is_constant() && b.constant != 0) {
        const int64_t quotient = floor_quotient(a.constant, b.constant);
        if (n->op == BinaryOp::kFloorDiv) return {quotient, 0, {}};
        return {a.constant - quotient * b.constant, 0, {}};
      }
      if (!b.is_constant() || b.constant <= 0) break;
      const LaneIndex low = below_divisor(a, b.constant, lanes_);
      a.add(low, -1);
      LaneIndex high = divided(n->op, a, b, bounds(n->a, ranges_));
      if (n->op == BinaryOp::kFloorMod) high.add(low, 1);
      return high;
    }
    case BinaryOp::kMin:
    case BinaryOp::kMax: {
      const Range difference = may_wrap(n->a, n->b) ? kUnbounded : bounds(n->a - n->b, ranges_);
      const bool min = n->op == BinaryOp::kMin;
      if (difference.second <= 0) return min ? a : b;
      if (difference.first >= 0) return min ? b : a;
      break;
    }
    default: break;
  }
  Value* result = once(n->op, a, b, [&]() -> Value* {
    Value *x = value(a), *y = value(b);
    unify(x, y);
    const bool division = n->op == BinaryOp::kFloorDiv || n->op == BinaryOp::kFloorMod;
    if (!division) return arithmetic(n->op, DType::kInt64, x, y);
    return floor_division(n->op, x, y, bounds(n->a, ranges_), bounds(n->b, ranges_));
  });
  return as_linear(marked(e, result), std::max(depth_of(a), depth_of(b)));
}

// Whether a - b may wrap around, so that it does not tell which is less.
bool Emitter::may_wrap(const Expr& a, const Expr& b) {
  bool reads = false;
  const auto note = [&](const Expr& part) { reads |= as<Load>(part) != nullptr; };
  visit(a, note);
  visit(b, note);
  return reads && (is_any_number(a) || is_any_number(b));
}

// Enters the value of `e` as one whose sums may wrap around, where it is no index.
llvm::Value* Emitter::marked(const Expr& e, Value* value) {
  if (is_any_number(e)) wrapping_.insert(value);
  return value;
}

// a OP b for a division or a remainder by a constant.
LaneIndex Emitter::divided(BinaryOp op, const LaneIndex& a, const LaneIndex& b, Range range_a) {
  LaneIndex quotient{a.constant / b.constant, 0, a.terms};
  // All divisible, but for the numbers of the lanes: the quotient is a form again.
  bool whole = (a.lane == 0 || a.lane == 1) && a.steps.empty() && a.constant % b.constant == 0;
  for (auto& [atom, coefficient] : quotient.terms) {
    whole = whole && coefficient % b.constant == 0;
    coefficient /= b.constant;
  }
  if (whole) {
    LaneIndex remainder{0, a.lane, {}};
    if (a.lane == 1) {
      quotient.steps.push_back({b.constant, 1});
      remainder.steps.push_back({b.constant, -b.constant});
    }
    return op == BinaryOp::kFloorDiv ? quotient : remainder;
  }
  Value* result = once(op, a, b, [&]() -> Value* {
    Value *x = value(a), *y = value(b);
    unify(x, y);
    return floor_division(op, x, y, range_a, {b.constant, b.constant});
  });
  return as_linear(result, std::max(depth_of(a), depth_of(b)));
}

// The sum as code: uniform terms first, as scalars, then what differs between lanes.
llvm::Value* Emitter::value(const LaneIndex& form) {
  Value* uniform = nullptr;
  Value* varying = nullptr;
  const bool exact = std::ranges::none_of(
      form.terms, [&](const auto& term) { return wrapping_.contains(atom(term.first)); });
  const auto append = [&](Value*& sum, Value* term) {
    if (sum) unify(sum, term);
    sum = sum ? b_.CreateAdd(sum, term, "", false, exact) : term;
  };
  for (const auto& [id, coefficient] : form.terms) {
    Value* term = atom(id);
    if (coefficient != 1) {
      term = b_.CreateMul(
          term, llvm::ConstantInt::getSigned(term->getType(), coefficient), "", false, exact);
    }
    append(term->getType()->isVectorTy() ? varying : uniform, term);
  }
  if (form.constant != 0 || !uniform) append(uniform, int64(form.constant));
  if (form.counts_lanes()) {
    std::vector<llvm::Constant*> ramp;
    for (int64_t i = 0; i < lanes_; ++i) {
      ramp.push_back(llvm::ConstantInt::getSigned(b_.getInt64Ty(), form.of_lane(i)));
    }
    append(varying, llvm::ConstantVector::get(ramp));
  }
  if (!varying) return uniform;
  append(varying, uniform);
  return varying;
}

// In elements; row-major, or by the strides of the tensor that the buffer is a box of.
LaneIndex Emitter::flatten(TensorId buffer, const std::vector<Expr>& indices) {
  const std::vector<Expr>& strides = kernel_.strides[buffer.value];
  LaneIndex place;
  for (size_t d = 0; d < indices.size(); ++d) {
    const LaneIndex stride = linear(strides[d]);
    if (stride.is_constant()) {
      place.add(linear(indices[d]), stride.constant);
    } else {
      place.add(multiplied(linear(indices[d]), stride), 1);
    }
  }
  return place;
}

// Term by term, so that what is a constant apart, as rows of a tile are, is one multiple apart.
LaneIndex Emitter::multiplied(const LaneIndex& a, const LaneIndex& b) {
  LaneIndex product;
  product.add(b, a.constant);
  LaneIndex lanes{0, a.lane, {}, a.steps};
  const auto add = [&](const LaneIndex& factor, int64_t coefficient) {
    Value* made = once(BinaryOp::kMul, factor, b, [&] {
      Value *x = value(factor), *y = value(b);
      unify(x, y);
      return arithmetic(BinaryOp::kMul, DType::kInt64, x, y);
    });
    product.add(as_linear(made, std::max(depth_of(factor), depth_of(b))), coefficient);
  };
  for (const auto& [id, coefficient] : a.terms) add({0, 0, {{id, 1}}}, coefficient);
  if (lanes.counts_lanes()) add(lanes, 1);
  return product;
}

// Rounding down, of scalars or vectors; unsigned, and in 32 bits where the bounds allow it, since
// there is no vector instruction for the rest.
llvm::Value* Emitter::floor_division(
    BinaryOp op, Value* a, Value* b, Range range_a, Range range_b) {
  const bool div = op == BinaryOp::kFloorDiv;
  if (range_b.first == range_b.second && is_power_of_two(range_b.first)) {
    const auto constant = [&](int64_t v) { return llvm::ConstantInt::getSigned(a->getType(), v); };
    if (!div) return b_.CreateAnd(a, constant(range_b.first - 1));
    return b_.CreateAShr(a, constant(__builtin_ctzll(static_cast<uint64_t>(range_b.first))));
  }
  // x // 0 is x, and the least number by -1 itself: a processor stops at both.
  llvm::Type* type = b->getType();
  Value* const one = llvm::ConstantInt::get(type, 1);
  Value* negates = nullptr;
  if (range_b.first < 0) {
    negates = b_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(type));
    b = b_.CreateSelect(b_.CreateOr(b_.CreateIsNull(b), negates), one, b);
  } else if (range_b.first == 0 || !llvm::isa<llvm::Constant>(b)) {  // or of an idle lane
    b = b_.CreateSelect(b_.CreateIsNull(b), one, b);
    range_b.first = std::max<int64_t>(range_b.first, 1);
  }
  if (range_a.first >= 0 && range_b.first > 0) {
    llvm::Type* wide = a->getType();
    if (std::max(range_a.second, range_b.second) <= INT32_MAX) {
      llvm::Type* narrow = wide->getWithNewBitWidth(32);
      a = b_.CreateZExtOrTrunc(a, narrow);
      b = b_.CreateZExtOrTrunc(b, narrow);
    }
    return b_.CreateZExtOrTrunc(div ? b_.CreateUDiv(a, b) : b_.CreateURem(a, b), wide);
  }
  Value* zero = llvm::Constant::getNullValue(a->getType());
  Value* remainder = b_.CreateSRem(a, b);
  Value* down = b_.CreateAnd(b_.CreateICmpNE(remainder, zero),
                             b_.CreateICmpSLT(b_.CreateXor(remainder, b), zero));
  if (!div) return b_.CreateAdd(remainder, b_.CreateSelect(down, b, zero));
  Value* quotient = b_.CreateAdd(b_.CreateSDiv(a, b), b_.CreateSExt(down, a->getType()));
  return negates ? b_.CreateSelect(negates, b_.CreateSub(zero, a), quotient) : quotient;
}

// Returns for each lane whether the lane's number is below `end`.
llvm::Value* Emitter::lanes_below(const LaneIndex& end) {
  const LaneIndex lane = {0, 1, {}};
  const auto key = std::tuple(BinaryOp::kLt, lanes_, lane, end);
  const int level = depth_of(end);
  auto& known = scopes_[level].indices;
  if (const auto it = known.find(key); it != known.end()) return it->second;
  return known[key] = at_depth(level, [&] {
           llvm::SmallVector<llvm::Constant*, 16> numbers;
           for (int i = 0; i < lanes_; ++i)
             numbers.push_back(b_.getInt32(static_cast<uint32_t>(i)));
           Value* limit = value(end);
           // Clamped to [0, lanes], it fits the 32-bit numbers that vectors compare fastest.
           limit = b_.CreateSelect(b_.CreateICmpSLT(limit, int64(lanes_)), limit, int64(lanes_));
           limit = b_.CreateSelect(b_.CreateICmpSGT(limit, int64(0)), limit, int64(0));
           limit = widened(b_.CreateTrunc(limit, b_.getInt32Ty()));
           return b_.CreateICmpSLT(llvm::ConstantVector::get(numbers), limit);
         });
}

namespace {

// Whether d OP 0 for all d of a range, or for none.
std::optional<bool> decided(BinaryOp op, Range d) {
  const auto if_sure = [](bool yes, bool no) {
    return yes || no ? std::optional(yes) : std::nullopt;
  };
  const bool zero = d == Range{0, 0}, apart = d.first > 0 || d.second < 0;
  switch (op) {
    case BinaryOp::kLt: return if_sure(d.second < 0, d.first >= 0);
    case BinaryOp::kLe: return if_sure(d.second <= 0, d.first > 0);
    case BinaryOp::kGt: return if_sure(d.first > 0, d.second <= 0);
    case BinaryOp::kGe: return if_sure(d.first >= 0, d.second < 0);
    case BinaryOp::kEq: return if_sure(zero, apart);
    default: return if_sure(apart, zero);
  }
}

}  // namespace

// a OP b: decided now where the bounds allow it (unrolled variables are constants here), and on
// 32-bit lane numbers if the lane counts one up or down.
llvm::Value* Emitter::compare_indices(BinaryOp op, const Expr& a, const Expr& b) {
  if (may_wrap(a, b)) {
    Value *x = value(linear(a)), *y = value(linear(b));
    unify(x, y);
    return compare(op, DType::kInt64, x, y);
  }
  LaneIndex d = linear(a);
  d.add(linear(b), -1);
  const int64_t constant = std::exchange(d.constant, 0);
  LaneIndex limit = {-constant, 0, {}};
  return once(op, d, limit, [&]() -> Value* {
    if (const std::optional<bool> known = decided(op, bounds(a - b, ranges_))) {
      return b_.getInt1(*known);
    }
    const bool ordered = op != BinaryOp::kEq && op != BinaryOp::kNe;
    LaneIndex uniform = d;
    uniform.lane = 0;
    if (ordered && !varies_by_lane(uniform) && (d.lane == 1 || d.lane == -1)) {
      // The comparison becomes lane < end or its opposite. E.g. lane + u <= 0 is lane < 1 - u, and
      // lane + u > 0 is the opposite.
      const bool up = d.lane == 1;
      const bool below = (op == BinaryOp::kLt || op == BinaryOp::kLe) == up;
      const bool equal = op == BinaryOp::kLe || op == BinaryOp::kGe;
      uniform.constant = constant;
      LaneIndex end;
      end.add(uniform, up ? -1 : 1);
      if (below == equal) end.constant += 1;
      Value* result = lanes_below(end);
      return below ? result : b_.CreateNot(result);
    }
    Value *part = value(d), *against = value(limit);
    unify(part, against);
    return compare(op, DType::kInt64, part, against);
  });
}

}  // namespace pruner
