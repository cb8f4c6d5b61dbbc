// The compute DAG of a task: stages in an order in which producers come before consumers. A stage
// is a placeholder (an input) or a compute stage: for every point of its spatial axes, the body,
// folded over the reduce axes by the combiner when there are any (Ansor's compute DAG).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "support/json.h"
#include "support/result.h"
#include "tensor/expr.h"
#include "tensor/transform.h"

namespace pruner {

using StageId = TensorId;  // a stage is named by the tensor it makes

/// An axis: it runs from 0 to extent - 1.
struct Iterator {
  std::string name;
  int64_t extent;
  bool open = false;  // the extent is one of a range, so its divisors must not decide anything
};

/// The operation that folds the terms of a reduction; kNone: the stage reduces nothing.
enum class Combiner : uint8_t { kNone, kSum, kProd, kMax, kMin };

struct Stage {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<Iterator> axes;         // spatial; the stage's shape
  std::vector<Iterator> reduce_axes;  // empty when combiner is kNone
  Combiner combiner = Combiner::kNone;
  Expr body;        // empty for a placeholder; variables: axes, then reduce axes
  std::string tag;  // "conv2d_nhwc", "elemwise", ... : what made it, for printing and keys
  bool output = false;
  bool constant = false;             // placeholder whose value is known when the code is built
  std::vector<StageId> layout_free;  // constant operands of this stage that may be repacked
  Transform transform = {};          // placeholder: what it holds in place of the task's constant
  /// (axis, extent) of the tile that is computed at once with its places known in the code, because
  /// the body selects by them; the axis is walked in such tiles (the Winograd transforms).
  std::vector<std::pair<int, int64_t>> unrolled;
  std::vector<std::string> const_index_axes;  // they index small constant matrices (Winograd)
  int64_t index_bound = 0;  // integer placeholder used as an index: values in [0, bound)
  /// Integer placeholder: its elements, in turn, are places along dims of these extents; one below
  /// 0 counts from the end. What runs the DAG checks them. No part of the key.
  std::vector<int64_t> read_at;
  bool reads_from_end = true;  // `read_at`: false: one below 0 is refused

  bool is_placeholder() const { return !body; }
  bool is_reduction() const { return combiner != Combiner::kNone; }
  std::vector<int64_t> shape() const;
  int64_t num_elements() const;  // elements of the tensor that the stage makes
  int64_t reduce_size() const;   // terms of one element; 1 without reduce axes
  int64_t tile(int axis) const;  // extent of the tile in `unrolled` along an axis; 1: no tile
};

struct ComputeDag {
  std::vector<Stage> stages;

  const Stage& operator[](StageId id) const { return stages[id.value]; }
  Stage& operator[](StageId id) { return stages[id.value]; }
  int size() const { return static_cast<int>(stages.size()); }
  std::vector<StageId> inputs() const;  // placeholders, in order
  std::vector<StageId> outputs() const;
  /// Stages that read `id`, ascending.
  std::vector<StageId> consumers(StageId id) const;
  /// Distinct stages that `id` reads, ascending.
  std::vector<StageId> producers(StageId id) const;
};

/// An error where a stage has more elements (1e11) or terms of its reductions (1e17) than we work
/// on: products of extents beyond that overflow.
Result<Unit> check_sizes(const ComputeDag& dag);

/// The neutral element that a reduction starts from.
Expr combiner_identity(Combiner combiner, DType dtype);
/// combine(a, b), e.g. a + b.
Expr combine(Combiner combiner, Expr a, Expr b);

/// FLOPs of the DAG as the reference counts them (Ansor's FLOP estimator); -1 when unknown.
double flop_count(const ComputeDag& dag);
/// Bytes that must come from and go to memory: each input once, or as much of it as is loaded (a
/// gather reads a few rows of its table), and each output once.
double traffic_bytes(const ComputeDag& dag);

/// One line a stage, as TVM prints a DAG: the text that the workload key hashes.
std::string print(const ComputeDag& dag);
/// The key: `["<32 hex digits>", dims of all inputs and outputs...]` (Ansor's flat form). The hash
/// covers dtypes, layouts and whether inputs are constant.
std::string workload_key(const ComputeDag& dag);

/// The form of a DAG file (list of {"op","kind","axis","reduce_axis","body",...}); bodies are
/// parsed.
Result<ComputeDag> dag_from_json(const Json& dag);
Json dag_to_json(const ComputeDag& dag);

}  // namespace pruner
