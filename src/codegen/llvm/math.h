// Mathematical functions as inline code, for floats and vectors of them of any width: no calls.
// Over all floats the worst errors are, in units of the last place: exp 0.87, log 0.77, rsqrt 1.5,
// tanh 1.3, sigmoid 2.4, erf 1.9, sin and cos 1.5, pow and sqrt 0.5, expm1 1.5, log1p 1.1, the
// normal distribution 4 (without FMA 5.2), the other functions of angles and hyperbolas 4
// (math_test); special values and the signs of zeros are those of IEEE 754. For doubles: exp 0.95,
// log 0.79, rsqrt 1.5, tanh 1.3, sigmoid 2.1, erf 0.92, pow 1.1, sin and cos 2.2, expm1 and log1p
// 1.9, the normal distribution 5.5 (math_double_test).
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "tensor/expr.h"

namespace pruner {

/// `MathInstructions` says which instructions the code of mathematical functions may rely on.
struct MathInstructions {
  bool avx512 = false;  // vectors of 16 floats may use AVX-512F
  bool fma = true;      // products are not rounded before they are added
};

/// Emits the code of `function` on values (or vectors) of one type, float or double.
llvm::Value* emit_math(llvm::IRBuilder<>& b,
                       Intrinsic function,
                       llvm::ArrayRef<llvm::Value*> args,
                       MathInstructions instructions);
/// Emits x % y of floats, rounding down.
llvm::Value* emit_remainder(llvm::IRBuilder<>& b, llvm::Value* x, llvm::Value* y);
/// Emits the code of `function` on doubles (or vectors of doubles).
llvm::Value* emit_double_math(llvm::IRBuilder<>& b,
                              Intrinsic function,
                              llvm::ArrayRef<llvm::Value*> args);
/// Emits x % y of doubles that are not negative, where `counts` holds: x is finite and y is not 0.
llvm::Value* emit_double_remainder(llvm::IRBuilder<>& b,
                                   llvm::Value* x,
                                   llvm::Value* y,
                                   llvm::Value* counts);

}  // namespace pruner
