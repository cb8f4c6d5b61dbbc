// may_hold_operand() says whether a kernel of a GPU's matrix instructions may compute the first
// operand of a product itself. The graph asks before it joins what makes the operand with the
// product.
#pragma once

#include "target/target.h"

namespace pruner {

/// The product of `rows` x `terms` numbers of 16 bits with `terms` x `columns`.
struct HeldOperand {
  int64_t rows, columns, terms;
};

/// Whether each block of the product can hold its rows of the operand whole in shared memory, and
/// whether it is cheap enough that each block of columns computes them again. What the blocks read
/// more than one kernel would has to take less time than the launch that is saved.
bool may_hold_operand(const HeldOperand& product, const Gpu& gpu);

/// Rotations of queries and keys by the kernel of the attention that reads them.
struct RotatedHeads {
  int64_t heads, queries, keys, width;
};

/// Whether it takes less time than a launch that each block of queries rotates all of its keys
/// again.
bool may_rotate_heads(const RotatedHeads& heads, const Gpu& gpu);

}  // namespace pruner
