// The draft of a GPU's kernels (draft.h), our form of the analyzer: bytes and not elements,
// transactions, shared memory's banks, occupancy from registers and shared memory, integer work,
// epilogues and reductions as what they are.
#pragma once

#include <span>

#include "analysis/draft.h"
#include "analysis/gpu_registers.h"
#include "analysis/statements.h"

namespace pruner {

/// `registers`: of a thread of each kernel of our own (gpu_registers.h), which has its accumulators
/// there; without them they are judged from the statements.
Draft gpu_draft(const Statements& program,
                const Gpu& gpu,
                std::span<const double> registers = {},
                Penalties penalties = {});

}  // namespace pruner
