// Operators that write to places that the data name, by routines.
#include "graph/ops/op.h"
#include "graph/routines/routines.h"

namespace pruner {

using enum Fusion;

static Result<int64_t> update_of(const OpCall& call) {
  static constexpr std::pair<std::string_view, PrunerUpdate> kUpdates[] = {
      {"none", kReplace}, {"add", kAdd}, {"mul", kMultiply}, {"max", kLarger}, {"min", kSmaller}};
  const std::string reduction = call.text("reduction", "none");
  for (const auto& [name, update] : kUpdates) {
    if (name == reduction) return update;
  }
  return Error("reduction is \"", reduction, "\", expected none, add, mul, max or min");
}

static Result<Unit> check_operands(const OpCall& call) {
  TRY(update_of(call));
  TRY(check_index_type(call, 1, "indices"));
  if (call.input(2).dtype == call.input(0).dtype) return Unit{};
  return Error("updates are ",
               dtype_name(call.input(2).dtype),
               ", the data ",
               dtype_name(call.input(0).dtype));
}

static Types infer_scatter_elements(const OpCall& call) {
  TRY(check_operands(call));
  TRY_ASSIGN(const int64_t axis, call.axis("axis", 0, call.rank()));
  const std::vector<int64_t>&data = call.shape(0), &indices = call.shape(1);
  bool fits = indices.size() == data.size() && call.shape(2) == indices;
  for (size_t d = 0; fits && d < data.size(); ++d) {
    fits = static_cast<int64_t>(d) == axis || indices[d] <= data[d];
  }
  if (fits) return {{call.type(0)}};
  return Error("indices of ",
               print_shape(indices),
               " and updates of ",
               print_shape(call.shape(2)),
               " for data of ",
               print_shape(data),
               ": only axis ",
               axis,
               " may be longer");
}

static std::vector<int64_t> scatter_elements_parameters(const OpCall& call) {
  std::vector<int64_t> p = {static_cast<int64_t>(call.input(0).dtype),
                            static_cast<int64_t>(call.input(1).dtype),
                            *update_of(call),
                            *call.axis("axis", 0, call.rank()),
                            call.rank()};
  for (const size_t i : {0, 1}) p.insert(p.end(), call.shape(i).begin(), call.shape(i).end());
  return p;
}

// updates: indices without their last dimension, then the data without the dimensions that an index
// has.
static Types infer_scatter_nd(const OpCall& call) {
  TRY(check_operands(call));
  if (call.input(1).dtype != DType::kInt64) return Error("indices are int32, expected int64");
  const std::vector<int64_t>&data = call.shape(0), &indices = call.shape(1);
  if (indices.empty() || indices.back() < 1 || indices.back() > call.rank()) {
    return Error("indices of ", print_shape(indices), " for data of ", print_shape(data));
  }
  std::vector<int64_t> expected(indices.begin(), indices.end() - 1);
  expected.insert(expected.end(), data.begin() + indices.back(), data.end());
  if (call.shape(2) == expected) return {{call.type(0)}};
  return Error("updates are ", print_shape(call.shape(2)), ", expected ", print_shape(expected));
}

static std::vector<int64_t> scattered_extents(const OpCall& call) {
  return {call.shape(0).begin(), call.shape(0).begin() + call.shape(1).back()};
}

static std::vector<int64_t> scatter_nd_parameters(const OpCall& call) {
  const std::vector<int64_t>&data = call.shape(0), &indices = call.shape(1);
  const auto depth = static_cast<size_t>(indices.back());
  std::vector<int64_t> p = {static_cast<int64_t>(call.input(0).dtype),
                            *update_of(call),
                            element_count(data),
                            element_count(indices) / indices.back(),
                            indices.back(),
                            element_count(std::span(data).subspan(depth))};
  p.insert(p.end(), data.begin(), data.begin() + indices.back());
  return p;
}

static constexpr Routine kScatterElements = {
    "pruner_scatter_elements", pruner_scatter_elements, 3, scatter_elements_parameters};
static constexpr Routine kScatterNd = {
    "pruner_scatter_nd", pruner_scatter_nd, 3, scatter_nd_parameters};

// clang-format off
static constexpr GraphOp kScatterOps[] = {
    // name, fusion, fewest and most inputs, attributes, inference, lowering
    GraphOp{"ScatterElements", kOpaque, 3, 3, "axis:i reduction:s", infer_scatter_elements, nullptr}.run_by(kScatterElements).reads_at(1, extent_of_axis),
    GraphOp{"ScatterND", kOpaque, 3, 3, "reduction:s", infer_scatter_nd, nullptr}.run_by(kScatterNd).reads_at(1, scattered_extents),
};
// clang-format on

std::span<const GraphOp> scatter_ops() { return kScatterOps; }

}  // namespace pruner
