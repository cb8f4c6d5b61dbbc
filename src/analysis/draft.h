// The Symbol-based Analyzer for CPUs, first version (design: the structure of Pruner's analyzer with
// CPU meanings): closed-form symbols of a loop nest, a penalty at each level, a latency.
#pragma once

#include "space/loop_nest.h"
#include "target/target.h"

namespace pruner {

/// Seconds that the analyzer predicts for a nest. About 10 microseconds a call at most.
double draft_latency_s(const LoopNest& nest, const Target& target);

}  // namespace pruner
