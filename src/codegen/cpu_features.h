// The instruction set extensions of a target, by LLVM's names.
#pragma once

#include <string>

#include "target/target.h"

namespace pruner {

/// "avx avx2 fma ...": what code for `target` may use; empty without LLVM.
std::string cpu_features(const Target& target);

}  // namespace pruner
