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

struct ThreadResources {
  double registers = 0;    // of 4 bytes; not bounded by what a device has
  double local_bytes = 0;  // accumulators in local memory, by way of the L1
};

/// Of the kernel with this root. Accumulators stay out of registers where the loops over them are
/// not unrolled: an index known at run time needs an address.
ThreadResources thread_resources(const LoopNest& nest, const NestStage& root);

}  // namespace pruner
