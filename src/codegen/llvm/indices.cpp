// Index arithmetic on Linear forms, and its values.
#include "codegen/llvm/emitter.h"
#include "support/check.h"

namespace pruner {

void Linear::add(const Linear& other, int64_t factor) {
  if (factor == 0) return;
  constant += other.constant * factor;
  lane += other.lane * factor;
  if (other.terms.empty()) return;
  Terms sum;
  auto i = terms.begin();
  auto j = other.terms.begin();
  while (i != terms.end() || j != other.terms.end()) {
    if (j == other.terms.end() || (i != terms.end() && i->first < j->first)) {
      sum.push_back(*i++);
    } else if (i == terms.end() || j->first < i->first) {
      sum.push_back({j->first, j->second * factor});
      ++j;
    } else {
      const int64_t coefficient = i->second + j->second * factor;
      if (coefficient != 0) sum.push_back({i->first, coefficient});
      ++i;
      ++j;
    }
  }
  terms = std::move(sum);
}

namespace {

int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

bool is_power_of_two(int64_t v) { return v > 0 && (v & (v - 1)) == 0; }

}  // namespace

Linear Emitter::as_linear(Value* value) {
  if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value)) {
    return {constant->getSExtValue(), 0, {}};
  }
  const auto same = [&](const Atom& atom) { return atom.value == value; };
  auto atom = std::find_if(atoms_.begin(), atoms_.end(), same);
  if (atom == atoms_.end()) atom = atoms_.insert(atom, {value, depth()});
  return {0, 0, {{static_cast<int>(atom - atoms_.begin()), 1}}};
}

Linear Emitter::linear(const Expr& e) {
  if (const int64_t* constant = as_int(e)) return {*constant, 0, {}};
  if (const Var* var = as<Var>(e)) return vars_[static_cast<size_t>(var->id.value)];
  const Binary* n = as<Binary>(e);
  if (!n) return as_linear(expr(e));
  Linear a = linear(n->a);
  const Linear b = linear(n->b);
  switch (n->op) {
    case BinaryOp::kAdd: a.add(b, 1); return a;
    case BinaryOp::kSub: a.add(b, -1); return a;
    case BinaryOp::kMul: {
      Linear product;
      if (b.is_constant()) return product.add(a, b.constant), product;
      if (a.is_constant()) return product.add(b, a.constant), product;
      break;
    }
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod: {
      if (!a.is_constant() || !b.is_constant() || b.constant == 0) break;
      const int64_t quotient = floor_quotient(a.constant, b.constant);
      if (n->op == BinaryOp::kFloorDiv) return {quotient, 0, {}};
      return {a.constant - quotient * b.constant, 0, {}};
    }
    default: break;
  }
  const auto key = std::tuple(n->op, a, b);
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto it = scope->indices.find(key); it != scope->indices.end()) return it->second;
  }
  Value *x = value(a), *y = value(b);
  unify(x, y);
  const bool division = n->op == BinaryOp::kFloorDiv || n->op == BinaryOp::kFloorMod;
  Value* result = division
                      ? floor_division(n->op, x, y, bounds(n->a, ranges_), bounds(n->b, ranges_))
                      : arithmetic(n->op, x, y);
  return scopes_.back().indices[key] = as_linear(result);
}

llvm::Value* Emitter::value(const Linear& form) {
  Value* uniform = nullptr;
  Value* varying = nullptr;
  const auto append = [&](Value*& sum, Value* term) {
    if (sum) unify(sum, term);
    sum = sum ? b_.CreateAdd(sum, term, "", false, true) : term;
  };
  for (const auto& [atom, coefficient] : form.terms) {
    Value* term = atoms_[static_cast<size_t>(atom)].value;
    if (coefficient != 1) {
      term = b_.CreateMul(
          term, llvm::ConstantInt::getSigned(term->getType(), coefficient), "", false, true);
    }
    append(term->getType()->isVectorTy() ? varying : uniform, term);
  }
  if (form.constant != 0 || !uniform) append(uniform, int64(form.constant));
  if (form.lane != 0) {
    std::vector<llvm::Constant*> ramp;
    for (int64_t i = 0; i < lanes_; ++i) {
      ramp.push_back(llvm::ConstantInt::getSigned(b_.getInt64Ty(), i * form.lane));
    }
    append(varying, llvm::ConstantVector::get(ramp));
  }
  if (!varying) return uniform;
  append(varying, uniform);
  return varying;
}

Linear Emitter::flatten(TensorId buffer, const std::vector<Expr>& indices) {
  const std::vector<int64_t>& strides = kernel_.strides[static_cast<size_t>(buffer.value)];
  Linear place;
  for (size_t d = 0; d < indices.size(); ++d) place.add(linear(indices[d]), strides[d]);
  return place;
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
  if (!llvm::isa<llvm::Constant>(b)) {  // of a lane that does not count
    b = b_.CreateSelect(b_.CreateIsNull(b), llvm::ConstantInt::get(b->getType(), 1), b);
  }
  if (range_a.first >= 0 && range_b.first > 0) {
    llvm::Type* wide = a->getType();
    if (std::max(range_a.second, range_b.second) <= INT32_MAX) {
      llvm::Type* narrow = wide->getWithNewBitWidth(32);
      a = b_.CreateTrunc(a, narrow);
      b = b_.CreateTrunc(b, narrow);
    }
    return b_.CreateZExtOrTrunc(div ? b_.CreateUDiv(a, b) : b_.CreateURem(a, b), wide);
  }
  Value* zero = llvm::Constant::getNullValue(a->getType());
  Value* remainder = b_.CreateSRem(a, b);
  Value* down = b_.CreateAnd(b_.CreateICmpNE(remainder, zero),
                             b_.CreateICmpSLT(b_.CreateXor(remainder, b), zero));
  if (!div) return b_.CreateAdd(remainder, b_.CreateSelect(down, b, zero));
  return b_.CreateAdd(b_.CreateSDiv(a, b), b_.CreateSExt(down, a->getType()));
}

// Of each lane: whether its number is below `end`.
llvm::Value* Emitter::lanes_below(Value* end) {
  llvm::SmallVector<llvm::Constant*, 16> numbers;
  for (int i = 0; i < lanes_; ++i) numbers.push_back(b_.getInt32(static_cast<uint32_t>(i)));
  Value* clamped = b_.CreateSelect(b_.CreateICmpSLT(end, int64(lanes_)), end, int64(lanes_));
  clamped = b_.CreateSelect(b_.CreateICmpSGT(clamped, int64(0)), clamped, int64(0));
  return b_.CreateICmpSLT(llvm::ConstantVector::get(numbers),
                          widened(b_.CreateTrunc(clamped, b_.getInt32Ty())));
}

// a OP b, decided now if the difference is constant, and on 32-bit lane numbers if the lane counts
// one up or down.
llvm::Value* Emitter::compare_indices(BinaryOp op, const Expr& a, const Expr& b) {
  Linear d = linear(a);
  d.add(linear(b), -1);
  const bool ordered = op != BinaryOp::kEq && op != BinaryOp::kNe;
  bool scalar_atoms = true;
  for (const auto& [atom, coefficient] : d.terms) {
    scalar_atoms &= !atoms_[static_cast<size_t>(atom)].value->getType()->isVectorTy();
  }
  if (ordered && scalar_atoms && (d.lane == 1 || d.lane == -1)) {
    // As lane < end or its opposite: lane + u <= 0 is lane < 1 - u, lane + u > 0 is not, and so on.
    const bool up = d.lane == 1;
    const bool below = (op == BinaryOp::kLt || op == BinaryOp::kLe) == up;
    const bool equal = op == BinaryOp::kLe || op == BinaryOp::kGe;
    Linear end;
    d.lane = 0;
    end.add(d, up ? -1 : 1);
    if (below == equal) end.constant += 1;
    Value* result = lanes_below(value(end));
    return below ? result : b_.CreateNot(result);
  }
  // The variable part against a constant.
  Value* limit = int64(-d.constant);
  d.constant = 0;
  Value* part = value(d);
  unify(part, limit);
  return compare(op, part, limit);
}

}  // namespace pruner
