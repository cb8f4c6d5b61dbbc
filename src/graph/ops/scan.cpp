// CumSum and CumProd. A compute DAG has no order among the elements of a stage, so a prefix is a
// reduction over what stands before it; blocks, and blocks of blocks, keep the terms few.
#include "graph/ops/op.h"
#include "support/ceil_div.h"

namespace pruner {

using enum Fusion;

static Types infer_scan(const OpCall& call) {
  TRY(check_index_type(call, 1, "axis"));
  const int64_t elements = element_count(call.shape(1));
  if (elements != 1) return Error("axis has ", elements, " elements, expected 1");
  const std::optional<Tensor>& axis = call.input(1).constant;
  TRY(normal_axis(axis ? axis->get_int(0) : 0, call.rank()));
  if (call.input(0).dtype == DType::kBool) return Error(call.node.op, " of bool");
  return {{call.type(0)}};
}

namespace {

// Terms of a reduction at most, about: a prefix of n elements takes kBlock terms for each factor
// kBlock of n.
constexpr int64_t kBlock = 32;

// Prefixes along one axis of a stage.
class Scan {
 public:
  /// With `whole` the axis is one block, however long it is.
  Scan(DagBuilder& dag, size_t axis, Combiner combiner, bool reverse, bool whole)
      : dag_(dag), axis_(axis), combiner_(combiner), reverse_(reverse), whole_(whole) {}

  /// Combines each element with the elements before it along the axis (behind it, when reversed);
  /// without `exclusive` the element itself counts, too.
  StageId run(StageId data, bool exclusive, const std::string& name) {
    const std::vector<int64_t> shape = dag_.shape(data);
    const int64_t n = shape[axis_];
    if (n <= 2 * kBlock || whole_) {
      return prefix(data, n, exclusive, name);
    }
    const StageId inside = prefix(data, kBlock, exclusive, name + "_block");
    const StageId before = run(totals(data, name), true, name + "_totals");
    const auto both = [&](std::span<const Expr> axes) {
      std::vector<Expr> at(axes.begin(), axes.end());
      const Expr own = dag_.at(inside, at);
      at[axis_] = floor_div(axes[axis_], kBlock);
      return combine(combiner_, dag_.at(before, at), own);
    };
    return dag_.compute(name, shape, both, "injective");
  }

 private:
  Expr at(StageId data, std::span<const Expr> axes, const Expr& place) const {
    std::vector<Expr> index(axes.begin(), axes.end());
    index[axis_] = place;
    return dag_.at(data, index);
  }
  Expr value_if(const Expr& condition, const Expr& value) const {
    return select(condition, value, combiner_identity(combiner_, value->dtype));
  }

  // Combines each element with the elements before it in its block of `block` elements.
  StageId prefix(StageId data, int64_t block, bool exclusive, const std::string& name) {
    const std::vector<int64_t> shape = dag_.shape(data);
    const BinaryOp counts = reverse_ ? (exclusive ? BinaryOp::kGt : BinaryOp::kGe)
                                     : (exclusive ? BinaryOp::kLt : BinaryOp::kLe);
    const auto body = [&](std::span<const Expr> axes, std::span<const Expr> k) {
      const Expr place = whole_ ? k[0] : floor_div(axes[axis_], block) * block + k[0];
      Expr taken = binary(counts, place, axes[axis_]);
      // The last block may be shorter. The test stands also where it is not, so that the DAG has
      // one form at all shapes of a range.
      if (reverse_) taken = taken && place < shape[axis_];
      return value_if(taken, at(data, axes, place));
    };
    return dag_.reduce(name, shape, {block}, combiner_, body, "comm_reduce");
  }

  // Combines all elements of each block.
  StageId totals(StageId data, const std::string& name) {
    std::vector<int64_t> shape = dag_.shape(data);
    const int64_t n = shape[axis_];
    shape[axis_] = ceil_div(n, kBlock);
    const auto body = [&](std::span<const Expr> axes, std::span<const Expr> k) {
      const Expr place = axes[axis_] * kBlock + k[0];
      // Also where the blocks divide the axis.
      return value_if(place < n, at(data, axes, place));
    };
    return dag_.reduce(name + "_total", shape, {kBlock}, combiner_, body, "comm_reduce");
  }

  DagBuilder& dag_;
  size_t axis_;
  Combiner combiner_;
  bool reverse_, whole_;
};

}  // namespace

// An axis that is known at run time only chooses between the prefixes along each.
static StageId lower_scan(const OpCall& call, StageSink& to) {
  const bool product = call.node.op == "CumProd";
  const std::string name = product ? "T_cumprod" : "T_cumsum";
  const auto along = [&](int64_t axis) {
    Scan scan(to.dag,
              static_cast<size_t>(axis),
              product ? Combiner::kProd : Combiner::kSum,
              call.integer("reverse", 0) != 0,
              call.graph.any_extents());
    return scan.run(to.input(call, 0), call.integer("exclusive", 0) != 0, name);
  };
  const int64_t rank = call.rank();
  if (const std::optional<Tensor>& known = call.input(1).constant)
    return along(*normal_axis(known->get_int(0), rank));
  std::vector<StageId> prefixes;
  for (int64_t d = 0; d < rank; ++d) prefixes.push_back(along(d));
  if (rank == 1) return prefixes[0];
  const StageId chosen = to.input(call, 1);
  mark_indices(call, to);
  const auto choice = [&](std::span<const Expr> axes) {
    const std::vector<Expr> at(axes.begin(), axes.end());
    const Expr raw =
        cast(DType::kInt64, to.dag.at(chosen, std::vector<Expr>(call.shape(1).size(), Expr(0))));
    Expr value = to.dag.at(prefixes[0], at);
    for (int64_t d = 1; d < rank; ++d) {
      const Expr here = binary(BinaryOp::kEq, floor_mod(raw, rank), Expr(d));
      value = select(here, to.dag.at(prefixes[d], at), value);
    }
    return value;
  };
  return to.dag.compute(name, call.shape(0), choice, "injective");
}

// The dims that an axis of the run time may name; none if there is one alone.
static std::vector<int64_t> axes_to_choose(const OpCall& call) {
  return call.rank() == 1 ? std::vector<int64_t>{} : std::vector{call.rank()};
}

static constexpr const char* kScanAttributes = "exclusive:i reverse:i";

// clang-format off
static constexpr GraphOp kScanOps[] = {
    // name, fusion, fewest and most inputs, attributes, inference, lowering
    GraphOp{"CumProd", kOpaque, 2, 2, kScanAttributes, infer_scan, lower_scan}.from(26).reads_at(1, axes_to_choose),
    GraphOp{"CumSum", kOpaque, 2, 2, kScanAttributes, infer_scan, lower_scan}.from(11).reads_at(1, axes_to_choose),
};
// clang-format on

std::span<const GraphOp> scan_ops() { return kScanOps; }

}  // namespace pruner
