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
/// (space/gpu/attention.h). The GPU has the instructions and asynchronous copies, and a warp has
/// registers for the results. Padding is at most a quarter of a width. Of the 16 queries and of the
/// 16 keys that an instruction takes, at least 8 must be there.
bool has_attention_units(const AttentionHead& head, const Gpu& gpu);

}  // namespace pruner
