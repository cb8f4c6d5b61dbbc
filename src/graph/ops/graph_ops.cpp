// All operators: the rows of the files of this folder.
#include <algorithm>

#include "graph/ops/op.h"

namespace pruner {

// Each in the file of its name.
using Rows = std::span<const GraphOp>();
Rows attention_ops, bitwise_ops, codes_ops, col2im_ops, convolution_ops, determinant_ops,
    elementwise_ops, indexing_ops, loop_ops, matmul_ops, movement_ops, pooling_ops, recurrence_ops,
    reduce_ops, resize_ops, sampling_ops, scan_ops, scatter_ops, shape_ops, sorting_ops;

static constexpr Rows* kFiles[] = {attention_ops,   bitwise_ops,     codes_ops,       col2im_ops,
                                   convolution_ops, determinant_ops, elementwise_ops, indexing_ops,
                                   loop_ops,        matmul_ops,      movement_ops,    pooling_ops,
                                   recurrence_ops,  reduce_ops,      resize_ops,      sampling_ops,
                                   scan_ops,        scatter_ops,     shape_ops,       sorting_ops};

std::span<const GraphOp> graph_ops() {
  static const std::vector<GraphOp> all = [] {
    std::vector<GraphOp> ops;
    for (Rows* const rows : kFiles) ops.insert(ops.end(), rows().begin(), rows().end());
    std::ranges::sort(ops, {}, &GraphOp::name);
    return ops;
  }();
  return all;
}

}  // namespace pruner
