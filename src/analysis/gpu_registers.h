// Loop nest of a GPU -> what a thread of each kernel holds: the registers that the vendor's
// compiler will give it, and what it will not keep in registers. Closed form; the cubins of sampled
// candidates are held against it (tests/codegen/cuda/candidates_test.cpp).
//
// registers, of a contraction      24 + accumulators of the thread's tile
//                                     + elements of operands that one step of the reduction reads
//                                     + elements in flight from memory to shared memory
//            of a warp's tile      18 + sums of a lane
//                                     + fragments of a step, of two where a chunk has several
//                                     + 2 x copies of each operand in a chunk, 16 at most; 5 x if
//                                       threads and lines do not divide each other
//            of rows               12 + 4 a reduction + terms of a thread, 16 at most
//            of elements           12 + elements + terms of each, 32 at most
//
// Fixed parts are addresses and loop variables; the bounds are those up to which the compiler
// unrolls a loop over terms.
#pragma once

#include "space/loop_nest.h"

namespace pruner {

/// Registers of 4 bytes of the kernel with this root; not bounded by what a device has.
double thread_registers(const LoopNest& nest, const NestStage& root);

}  // namespace pruner
