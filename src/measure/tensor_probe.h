// Probes what tensor cores do in a clock: kernels of products alone, timed by a multiprocessor's
// own clock. What the device's clock is, and whether it changes, does not count.
#pragma once

#include <string>

#include "runtime/gpu_context.h"
#include "support/result.h"
#include "target/target.h"

namespace pruner {

/// The rates of a CUDA device; 0 where its arch has no instruction. Each takes about `seconds`.
/// Errors: what the compiler or the driver says.
Result<TensorRates> probe_tensor_rates(GpuContext& context, const Target& target, double seconds);

/// CUDA C with a kernel for each rate that devices of `gpu`'s arch have; empty: they have none.
std::string tensor_probe_source(const Gpu& gpu);

}  // namespace pruner
