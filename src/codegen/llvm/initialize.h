// Target -> LLVM's triple, its instruction set registered.
#pragma once

#include <string>

#include "target/target.h"

namespace pruner {

/// Makes LLVM ready for the target's instruction set; returns its triple.
std::string initialize_llvm(const Target& target);

}  // namespace pruner
