// Loops over the terms of a sum that one instruction of the CPU adds.
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>

#include "codegen/llvm/emitter.h"
#include "space/dot.h"

namespace pruner {

// LLVM's function of a dot instruction on so many sums.
struct DotIntrinsic {
  std::string_view name;
  int sums;
  llvm::Intrinsic::ID id;
};
static constexpr DotIntrinsic kDotIntrinsics[] = {
    {"vdpbf16ps", 4, llvm::Intrinsic::x86_avx512bf16_dpbf16ps_128},
    {"vdpbf16ps", 8, llvm::Intrinsic::x86_avx512bf16_dpbf16ps_256},
    {"vdpbf16ps", 16, llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512},
    {"vpdpbusd", 4, llvm::Intrinsic::x86_avx512_vpdpbusd_128},
    {"vpdpbusd", 8, llvm::Intrinsic::x86_avx512_vpdpbusd_256},
    {"vpdpbusd", 16, llvm::Intrinsic::x86_avx512_vpdpbusd_512},
    {"bfdot", 2, llvm::Intrinsic::aarch64_neon_bfdot},
    {"bfdot", 4, llvm::Intrinsic::aarch64_neon_bfdot},
    {"usdot", 2, llvm::Intrinsic::aarch64_neon_usdot},
    {"usdot", 4, llvm::Intrinsic::aarch64_neon_usdot},
    {"sdot", 2, llvm::Intrinsic::aarch64_neon_sdot},
    {"sdot", 4, llvm::Intrinsic::aarch64_neon_sdot},
    {"udot", 2, llvm::Intrinsic::aarch64_neon_udot},
    {"udot", 4, llvm::Intrinsic::aarch64_neon_udot},
    {"bfmmla", 4, llvm::Intrinsic::aarch64_neon_bfmmla},
    {"usmmla", 4, llvm::Intrinsic::aarch64_neon_usmmla},
    {"smmla", 4, llvm::Intrinsic::aarch64_neon_smmla},
    {"ummla", 4, llvm::Intrinsic::aarch64_neon_ummla},
};

// Null: there is none that adds to so many sums; each operand has `terms` elements.
llvm::Function* Emitter::dot_function(const DotInstruction& dot, int sums, int terms) {
  const auto found = std::ranges::find_if(kDotIntrinsics, [&](const DotIntrinsic& row) {
    return row.name == dot.name && row.sums == sums;
  });
  if (found == std::end(kDotIntrinsics)) return nullptr;
  llvm::SmallVector<llvm::Type*, 2> types;
  if (llvm::Intrinsic::isOverloaded(found->id)) {
    llvm::Type* term = is_float(dot.a) ? b_.getBFloatTy() : b_.getInt8Ty();
    types = {at_width(value_type(dot.sum), sums), at_width(term, terms)};
  }
  return llvm::Intrinsic::getDeclaration(&kernel_.module, found->id, types);
}

// Neighbouring elements of a buffer: in each lane `terms` of them, or the same in all.
struct Emitter::DotOperand {
  DType dtype;
  TensorId buffer;
  LaneIndex place;        // place of the first term of lane 0
  bool by_lane = false;   // a lane's terms follow those of the lane before
  Expr condition = {};    // null: none
  int64_t otherwise = 0;  // the bits of an element where the condition does not hold
};

// A factor that is cast from a narrow type, if its terms lie next to each other: an element of a
// buffer, or of a padded one (select(inside, element, a constant)).
std::optional<Emitter::DotOperand> Emitter::dot_operand(const Expr& e, VarId term, int64_t terms) {
  if (const Select* choice = as<Select>(e)) {
    const FloatImm* real = as<FloatImm>(choice->b);
    const IntImm* whole = as<IntImm>(choice->b);
    const bool known = whole != nullptr || (real != nullptr && real->value == 0);
    const bool differs = reads(choice->condition, term);  // between terms
    const Load* element = as<Load>(choice->a);
    if (element != nullptr && place_is_loaded(*element)) return std::nullopt;
    std::optional<DotOperand> operand = dot_operand(choice->a, term, terms);
    if (!known || differs || !operand || operand->condition || operand->by_lane)
      return std::nullopt;
    operand->condition = choice->condition;
    operand->otherwise = whole != nullptr ? whole->value : 0;
    return operand;
  }
  const Load* load = as<Load>(e);
  if (load == nullptr || program_[load->tensor].scope == pruner::Scope::kRegister)
    return std::nullopt;
  const auto place_of = [&](int64_t i) {
    bind(term, LaneIndex{i, 0, {}}, {i, i});
    return flatten(load->tensor, load->indices);
  };
  DotOperand operand{e->dtype, load->tensor, place_of(0)};
  for (int64_t i = 1; i < terms; ++i) {
    LaneIndex next = operand.place;
    next.constant += i;
    if (!(place_of(i) == next)) return std::nullopt;
  }
  operand.by_lane = operand.place.lane == terms;
  LaneIndex first = operand.place;
  first.lane = 0;
  if (varies_by_lane(first) || (operand.place.lane != 0 && !operand.by_lane)) return std::nullopt;
  operand.place = first;
  return operand;
}

// The terms of each lane as one integer, a vector of them.
llvm::Value* Emitter::load_terms(const DotOperand& operand, int64_t terms) {
  const auto bytes = static_cast<uint64_t>(dtype_bytes(operand.dtype));
  llvm::Type* together =
      b_.getIntNTy(static_cast<unsigned>(8 * bytes) * static_cast<unsigned>(terms));
  llvm::Type* type = at_width(together, operand.by_lane ? lanes_ : 1);
  Value* from = address(operand.buffer, operand.place);
  if (operand.condition) {
    Value* condition = expr(operand.condition);
    const llvm::APInt element(
        static_cast<unsigned>(8 * bytes), static_cast<uint64_t>(operand.otherwise), true);
    llvm::Constant* padding = llvm::ConstantInt::get(
        together, llvm::APInt::getSplat(together->getIntegerBitWidth(), element));
    from = b_.CreateSelect(condition, from, kernel_.splat_in_memory(padding, 1));
  }
  const llvm::Align align(bytes);
  if (operand.by_lane && active_) return masked_load(operand.buffer, type, from, active_);
  return widened(annotate(b_.CreateAlignedLoad(type, from, align), operand.buffer));
}

// A body that is no sum of products, or whose terms lie apart, is copied.
void Emitter::dot(const For& n) {
  const int64_t terms = *as_int(n.extent);
  const Store* store = std::get_if<Store>(&n.body->op);
  const Binary* sum = store != nullptr ? as<Binary>(store->value) : nullptr;
  if (sum == nullptr || sum->op != BinaryOp::kAdd || predicate_.lanes || predicate_.uniform)
    return unrolled(n);
  const std::optional<NarrowProduct> factors = narrow_product(sum->b);
  if (!factors) return unrolled(n);
  const Expr &a = factors->a->value, &b = factors->b->value;
  const DotInstruction* instruction =
      find_dot_instruction(kernel_.isa, a->dtype, b->dtype, store->value->dtype, false);
  if (instruction == nullptr || instruction->terms != terms) return unrolled(n);
  std::optional<DotOperand> left = dot_operand(a, n.var, terms);
  std::optional<DotOperand> right = dot_operand(b, n.var, terms);
  llvm::Function* function = dot_function(*instruction, lanes_, lanes_ * instruction->terms);
  if (!left || !right || function == nullptr) return unrolled(n);
  if (left->dtype != instruction->a) std::swap(left, right);
  bind(n.var, {}, {0, 0});
  Value*& slot = register_slot(store->buffer, flatten(store->buffer, store->indices));
  const auto operand = [&](const DotOperand& of, unsigned i) {
    return b_.CreateBitCast(load_terms(of, terms), function->getFunctionType()->getParamType(i));
  };
  Value *x = operand(*left, 1), *y = operand(*right, 2);
  slot = b_.CreateCall(function, {slot, x, y});
}

}  // namespace pruner
