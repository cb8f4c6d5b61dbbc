// has_attention_units() says whether a GPU's matrix instructions compute a head of attention in one
// kernel. The graph asks before it fuses a network's attention, the schedule space before it makes
// the kernel.
#pragma once

#include "target/target.h"

namespace pruner {

/// One head of attention: softmax(query * key^T) * value, with `terms` elements in each query and
/// key, and `width` elements in each value.
struct AttentionHead {
  int64_t queries, keys, terms, width;
};

/// Whether instructions of 16 x 8 x 16 compute such heads of 16-bit operands
/// (space/gpu/attention.h): the GPU has the instructions and asynchronous copies, little of the
/// instructions is padding, and a warp has registers for the results. Half of the first rows and of
/// the first keys may be padding.
bool has_attention_units(const AttentionHead& head, const Gpu& gpu);

}  // namespace pruner
