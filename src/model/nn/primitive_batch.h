// Programs' sequences of primitives → what a TLP network reads: the distinct rows of the programs'
// matrices, and for each program the rows that it has. The rows that fill a matrix up are equal,
// and stand as one token that weighs as many steps as they are; attention sees them so (its softmax
// has the weight as a factor), and the sum over the steps does. Nothing is lost: TLP's network
// knows no position.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/features.h"
#include "analysis/primitives.h"

namespace pruner {

struct PrimitiveBatch {
  int64_t programs = 0;
  int64_t tokens = 0;                // of each program
  std::vector<float> rows = {};      // (distinct rows, form.width); the first is 0
  std::vector<int64_t> row_of = {};  // (programs, tokens)
  std::vector<float> weight = {};    // (programs, tokens): steps that the token stands for; after a
                                     // program's last token 0
};

PrimitiveBatch make_primitive_batch(std::span<const ProgramFeatures* const> programs,
                                    const PrimitiveForm& form);

}  // namespace pruner
