#include "codegen/llvm/expand_calls.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

#include <vector>

namespace pruner {
namespace {

using llvm::Value;

/// Writes code before an instruction; `value` is a float, or a vector of them.
class Expansion {
 public:
  explicit Expansion(llvm::Instruction& at) : b_(&at) {}

  Value* rounding(llvm::Intrinsic::ID function, Value* x) {
    llvm::Type* const type = x->getType();
    const auto real = [&](double v) { return llvm::ConstantFP::get(type, v); };
    const bool wide = type->getScalarType()->isDoubleTy();
    // All floats from this one on are integers.
    Value* const whole = real(wide ? 0x1p52 : 0x1p23);
    Value* const size = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
    Value* rounded = b_.CreateFSub(b_.CreateFAdd(size, whole), whole);
    const auto one_where = [&](Value* counts) { return b_.CreateSelect(counts, real(1), real(0)); };
    if (function == llvm::Intrinsic::trunc) {
      rounded = b_.CreateFSub(rounded, one_where(b_.CreateFCmpOGT(rounded, size)));
    } else if (function != llvm::Intrinsic::roundeven) {
      rounded = b_.CreateCopySign(rounded, x);
      rounded = function == llvm::Intrinsic::floor
                    ? b_.CreateFSub(rounded, one_where(b_.CreateFCmpOGT(rounded, x)))
                    : b_.CreateFAdd(rounded, one_where(b_.CreateFCmpOLT(rounded, x)));
    }
    // A number that becomes 0 keeps its sign.
    return b_.CreateSelect(b_.CreateFCmpOLT(size, whole), b_.CreateCopySign(rounded, x), x);
  }

  Value* from_half(Value* half, llvm::Type* to) {
    llvm::Type* const words = half->getType()->getWithNewType(b_.getInt32Ty());
    llvm::Type* const floats = half->getType()->getWithNewType(b_.getFloatTy());
    Value* bits = b_.CreateBitCast(half, half->getType()->getWithNewType(b_.getInt16Ty()));
    bits = b_.CreateZExt(bits, words);
    Value* const sign = b_.CreateShl(b_.CreateAnd(bits, word(words, 0x8000)), word(words, 16));
    Value* const size = b_.CreateAnd(bits, word(words, 0x7fff));
    Value* const moved = b_.CreateShl(size, word(words, 13));
    Value* const infinite = b_.CreateICmpUGE(size, word(words, 0x7c00));  // or NaN
    Value* result = b_.CreateAdd(
        moved, b_.CreateSelect(infinite, word(words, 0x70000000), word(words, 0x38000000)));
    // Subnormal numbers are multiples of this one.
    Value* const unit = llvm::ConstantFP::get(floats, 0x1p-24);
    Value* const small =
        b_.CreateBitCast(b_.CreateFMul(b_.CreateSIToFP(size, floats), unit), words);
    result = b_.CreateSelect(b_.CreateICmpULT(size, word(words, 0x400)), small, result);
    Value* const made = b_.CreateBitCast(b_.CreateOr(result, sign), floats);
    return to == floats ? made : b_.CreateFPExt(made, to);
  }

  Value* to_half(Value* x, llvm::Type* to) {
    llvm::Type* const words = to->getWithNewType(b_.getInt32Ty());
    llvm::Type* const floats = to->getWithNewType(b_.getFloatTy());
    if (x->getType() != floats) x = rounded_to_odd(x, floats, words);
    Value* const bits = b_.CreateBitCast(x, words);
    Value* const sign = b_.CreateAnd(b_.CreateLShr(bits, word(words, 16)), word(words, 0x8000));
    Value* const size = b_.CreateAnd(bits, word(words, 0x7fffffff));
    // To the nearest, of two as near to the even one; what is rounded up may become infinite.
    Value* const even = b_.CreateAnd(b_.CreateLShr(size, word(words, 13)), word(words, 1));
    Value* const sum = b_.CreateAdd(b_.CreateAdd(size, word(words, 0xfff)), even);
    Value* half = b_.CreateLShr(b_.CreateSub(sum, word(words, 0x38000000)), word(words, 13));
    // Below 2^-14 the CPU rounds a sum whose last bit is 2^-24.
    Value* const point = llvm::ConstantFP::get(floats, 0.5);
    Value* const small =
        b_.CreateSub(b_.CreateBitCast(b_.CreateFAdd(b_.CreateBitCast(size, floats), point), words),
                     word(words, 0x3f000000));
    half = b_.CreateSelect(b_.CreateICmpULT(size, word(words, 0x38800000)), small, half);
    half =
        b_.CreateSelect(b_.CreateICmpUGE(size, word(words, 0x47800000)), word(words, 0x7c00), half);
    half =
        b_.CreateSelect(b_.CreateICmpUGT(size, word(words, 0x7f800000)), word(words, 0x7e00), half);
    Value* const narrow =
        b_.CreateTrunc(b_.CreateOr(half, sign), to->getWithNewType(b_.getInt16Ty()));
    return b_.CreateBitCast(narrow, to);
  }

 private:
  static llvm::Constant* word(llvm::Type* words, uint32_t value) {
    return llvm::ConstantInt::get(words, value);
  }

  /// A double as the float towards 0 whose last bit says that there was a rest.
  Value* rounded_to_odd(Value* x, llvm::Type* floats, llvm::Type* words) {
    Value* const near = b_.CreateFPTrunc(x, floats);
    Value* const back = b_.CreateFPExt(near, x->getType());
    Value* const bits = b_.CreateBitCast(near, words);
    const auto size = [&](Value* v) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v); };
    Value* const greater = b_.CreateFCmpOGT(size(back), size(x));
    Value* const down = b_.CreateSelect(greater, b_.CreateSub(bits, word(words, 1)), bits);
    Value* const odd = b_.CreateOr(down, word(words, 1));
    Value* const rest = b_.CreateFCmpONE(back, x);
    return b_.CreateBitCast(b_.CreateSelect(rest, odd, bits), floats);
  }

  llvm::IRBuilder<> b_;
};

bool is_half(const llvm::Type* type) { return type->getScalarType()->isHalfTy(); }

/// Returns the value that replaces an instruction; null: the instruction stays.
Value* expanded(llvm::Instruction& instruction, ExpandedInstructions has) {
  Value* const operand = instruction.getNumOperands() > 0 ? instruction.getOperand(0) : nullptr;
  llvm::Type* const type = instruction.getType();
  if (!has.halves && llvm::isa<llvm::FPExtInst>(instruction) && is_half(operand->getType()))
    return Expansion(instruction).from_half(operand, type);
  if (!has.halves && llvm::isa<llvm::FPTruncInst>(instruction) && is_half(type))
    return Expansion(instruction).to_half(operand, type);
  const auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  if (has.roundings || call == nullptr) return nullptr;
  switch (call->getIntrinsicID()) {
    case llvm::Intrinsic::floor:
    case llvm::Intrinsic::ceil:
    case llvm::Intrinsic::trunc:
    case llvm::Intrinsic::roundeven:
      return Expansion(instruction).rounding(call->getIntrinsicID(), operand);
    default: return nullptr;
  }
}

}  // namespace

void expand_calls(llvm::Module& module, ExpandedInstructions has) {
  if (has.roundings && has.halves) return;
  for (llvm::Function& function : module) {
    std::vector<llvm::Instruction*> all;
    for (llvm::Instruction& instruction : llvm::instructions(function)) all.push_back(&instruction);
    for (llvm::Instruction* const instruction : all) {
      Value* const made = expanded(*instruction, has);
      if (made == nullptr) continue;
      instruction->replaceAllUsesWith(made);
      instruction->eraseFromParent();
    }
  }
}

}  // namespace pruner
