// Mathematical functions as inline code, for floats and vectors of them of any width: no calls, no
// tables in other objects. Errors in units of the last place are those math_test measures.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "tensor/expr.h"

namespace pruner {

/// The code of `function` on float values (or float vectors) of one type.
llvm::Value* emit_math(llvm::IRBuilder<>& b, Intrinsic function, llvm::ArrayRef<llvm::Value*> args);

}  // namespace pruner
