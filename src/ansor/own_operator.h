// A record's workload as an operator of ours: the convolution, product or pooling that its DAG
// computes, whatever the layout (NCHW, blocks of channels), and which of its axes are which of
// ours. So a schedule for [n, c / 8, h, w, 8] is one for [n, h, w, c].
#pragma once

#include <optional>

#include "ansor/structure.h"
#include "ansor/wanted_point.h"

namespace pruner::ansor {

/// AxisRole says what an axis of a contraction or a window stands for. OwnOperator::axes lists the
/// iterators of each role, outermost first.
enum class AxisRole : uint8_t {
  kRows,     // axes of the data alone: rows of a product, images
  kShared,   // axes of both operands: batches of a product, channels of a window
  kColumns,  // axes of the other operand alone: columns, output channels
  kHeight,
  kWidth,
  kWindowHeight,
  kWindowWidth,
  kInner,  // reduce axes that both operands have
};
inline constexpr size_t kAxisRoles = 8;

struct OwnOperator {
  std::string text;  // input of parse_operator(): "conv2d 1 64 56 56 64 3 3 padding=1,1,1,1 +relu"
  std::string name;  // name of the task, as networks have it
  std::string anchor;                  // the contraction's stage
  std::string data, weight;            // ... what it reads; a window has no weight
  std::string root;                    // the last stage
  std::vector<std::vector<int>> axes;  // iterators of the anchor, one list per role
};

/// Returns the operator that `dag` computes, or nullopt if the DAG computes something else or
/// several operators.
std::optional<OwnOperator> own_operator(const ComputeDag& dag);

/// A sketch of `ours`, the operator that own_operator() found for `record`, both analysed: the
/// record's stages and axes in it.
PointMatch match_operator(SketchId id,
                          const Sketch& sketch,
                          const OwnOperator& ours,
                          const OwnOperator& record,
                          const Structure& structure);

}  // namespace pruner::ansor
