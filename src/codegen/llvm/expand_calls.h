// Replacements of instructions that an x86-64 CPU without SSE4.1 or F16C lacks. LLVM would call
// functions of libm and libgcc, but a kernel refers to no function outside of the kernel.
#pragma once

#include <llvm/IR/Module.h>

namespace pruner {

/// `ExpandedInstructions` says which of the instructions that can be replaced a CPU has.
struct ExpandedInstructions {
  bool roundings = true;  // floor, ceil, trunc, to the nearest: SSE4.1
  bool halves = true;     // conversions of float16: F16C
};

/// Replaces the operations that the CPU has no instruction for. Roundings add 2^23 to floats and
/// 2^52 to doubles below that number: the CPU rounds the sum to the nearest integer. Greater
/// numbers are integers. Conversions shift the bits of the numbers. A double becomes a float16 by
/// way of a float that is rounded to odd, so that the value is rounded once (Boldo and Melquiond,
/// "Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
/// Results equal the results of the instructions, to the bit; a NaN may have another payload.
void expand_calls(llvm::Module& module, ExpandedInstructions has);

}  // namespace pruner
