// What an x86-64 CPU without SSE4.1 or F16C has no instruction for, as other instructions: LLVM
// would call functions of libm and libgcc, and a kernel refers to no function outside of it.
#pragma once

#include <llvm/IR/Module.h>

namespace pruner {

/// Which instructions of that kind a CPU has.
struct ExpandedInstructions {
  bool roundings = true;  // floor, ceil, trunc, to the nearest: SSE4.1
  bool halves = true;     // conversions of float16: F16C
};

/// Replaces what there is no instruction for. Roundings take floats and doubles below 2^23 and 2^52
/// through a sum with that number, which the CPU rounds to the nearest integer; what is greater is
/// an integer. Conversions shift the bits of the numbers; a double becomes a float16 by way of a
/// float that is rounded to odd, so that it is rounded once (Boldo and Melquiond, "Emulation of a
/// FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008). Results are
/// those of the instructions, to the bit; a NaN may have another payload.
void expand_calls(llvm::Module& module, ExpandedInstructions has);

}  // namespace pruner
