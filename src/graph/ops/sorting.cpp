// Operators that put elements in order, or find some, by routines.
#include <algorithm>
#include <bit>

#include "graph/ops/op.h"
#include "graph/routines/routines.h"

namespace pruner {

using enum Fusion;

static Types infer_top_k(const OpCall& call) {
  TRY_ASSIGN(const int64_t axis, call.axis("axis", -1, call.rank()));
  TRY_ASSIGN(const std::vector<int64_t> k, call.constant_integers(1, "k"));
  const int64_t extent = call.shape(0)[axis];
  if (k.size() != 1) return Error("k has ", k.size(), " elements, expected 1");
  if (k[0] < 0 || k[0] > extent) return Error("k is ", k[0], " of an extent of ", extent);
  TensorType values = call.type(0);
  values.shape[axis] = k[0];
  return {{values, {DType::kInt64, values.shape}}};
}

// The result is sorted whether asked for or not.
static std::vector<int64_t> top_k_parameters(const OpCall& call) {
  const std::span<const int64_t> shape = call.shape(0);
  const auto axis = static_cast<size_t>(*call.axis("axis", -1, call.rank()));
  const int64_t outer = element_count(shape.first(axis));
  const int64_t inner = element_count(shape.subspan(axis + 1));
  const int64_t parts = std::clamp<int64_t>(outer * inner, 1, 32);
  return {static_cast<int64_t>(call.input(0).dtype),
          outer,
          shape[axis],
          inner,
          call.output().shape[axis],
          call.integer("largest", 1) != 0,
          call.output_index() == 1,
          parts};
}

static int64_t top_k_workspace(const OpCall& call) {
  const std::vector<int64_t> p = top_k_parameters(call);
  const int64_t k = p[4], parts = p.back();
  return k * parts * static_cast<int64_t>(sizeof(PrunerRanked));
}

static constexpr Routine kTopK = {
    "pruner_top_k", pruner_top_k, 1, top_k_parameters, top_k_workspace};

// Runs a routine on a call's constants for an output of `elements` numbers, to see how much of the
// output is used.
static std::vector<int64_t> found_by(PrunerKernel function,
                                     const OpCall& call,
                                     size_t tensors,
                                     std::vector<int64_t> parameters,
                                     int64_t elements,
                                     int64_t workspace_bytes) {
  std::vector<int64_t> found(static_cast<size_t>(std::max<int64_t>(elements, 1)));
  std::vector<int64_t> workspace(static_cast<size_t>(workspace_bytes / 8 + 1));
  std::vector<void*> args;
  for (size_t i = 0; i < tensors; ++i)
    args.push_back(const_cast<void*>(call.input(i).constant->data()));
  args.insert(args.end(), {parameters.data(), found.data()});
  function(args.data(), workspace.data(), nullptr);
  found.resize(static_cast<size_t>(elements));
  return found;
}

static bool is_known(const OpCall& call, size_t tensors) {
  for (size_t i = 0; i < tensors; ++i) {
    if (!call.input(i).constant) return false;
  }
  return true;
}

static std::vector<int64_t> non_zero_parameters_for(const OpCall& call, int64_t room) {
  const Value& data = call.input(0);
  std::vector<int64_t> p = {static_cast<int64_t>(data.dtype),
                            is_float(data.dtype),
                            element_count(data.shape),
                            room,
                            call.rank()};
  p.insert(p.end(), data.shape.begin(), data.shape.end());
  return p;
}

static std::vector<int64_t> non_zero_parameters(const OpCall& call) {
  return non_zero_parameters_for(call, call.output().shape[1]);
}

// The places of the elements that are not 0, a column each. Of a scalar they have no dimensions.
static Types infer_non_zero(const OpCall& call) {
  const Value& data = call.input(0);
  int64_t room = element_count(data.shape);
  if (call.rank() == 0) return Error("data have no dimensions");
  if (is_known(call, 1)) {
    int64_t count = 0;
    for (int64_t i = 0; i < room; ++i)
      count += is_float(data.dtype) ? data.constant->get(i) != 0 : data.constant->get_int(i) != 0;
    room = count;
  }
  return {{{DType::kInt64, {call.rank(), room}}}};
}

static std::vector<int64_t> compress_parameters(const OpCall& call) {
  const std::span<const int64_t> shape = call.shape(0);
  const auto axis = static_cast<size_t>(*call.axis("axis", 0, call.rank()));
  return {static_cast<int64_t>(call.input(0).dtype),
          element_count(shape.first(axis)),
          shape[axis],
          element_count(shape.subspan(axis + 1)),
          element_count(call.shape(1)),
          call.output().shape[axis]};
}

// The slices whose condition is true, known at run time only: room for as many as there are.
static Types infer_compress(const OpCall& call) {
  TRY_ASSIGN(const int64_t axis, call.axis("axis", 0, call.rank()));
  const Value& condition = call.input(1);
  TensorType out = call.type(0);
  int64_t& extent = out.shape[axis];
  const int64_t length = element_count(condition.shape);
  if (condition.dtype != DType::kBool || condition.shape.size() != 1 || length > extent) {
    return Error("the condition is ",
                 dtype_name(condition.dtype),
                 " ",
                 print_shape(condition.shape),
                 ", expected bool of at most ",
                 extent);
  }
  extent = length;
  return {{out}};
}

namespace {

// The slices that Unique tells apart: along an axis, or all elements.
struct UniqueSlices {
  int64_t outer = 1, extent = 1, inner = 1;
};

}  // namespace

static Result<UniqueSlices> unique_slices(const OpCall& call) {
  const std::span<const int64_t> shape = call.shape(0);
  if (!call.has_attribute("axis")) return UniqueSlices{1, element_count(shape), 1};
  TRY_ASSIGN(const int64_t axis, call.axis("axis", 0, call.rank()));
  const auto d = static_cast<size_t>(axis);
  return UniqueSlices{element_count(shape.first(d)), shape[d], element_count(shape.subspan(d + 1))};
}

static std::vector<int64_t> unique_parameters_for(const OpCall& call,
                                                  int64_t output,
                                                  int64_t room) {
  const UniqueSlices s = *unique_slices(call);
  return {static_cast<int64_t>(call.input(0).dtype),
          s.outer,
          s.extent,
          s.inner,
          call.integer("sorted", 1) != 0,
          output,
          room};
}

static std::vector<int64_t> unique_parameters(const OpCall& call) {
  const auto output = static_cast<int64_t>(call.output_index());
  const std::vector<int64_t>& shape = call.output().shape;
  const bool values = output == 0 && call.has_attribute("axis");
  const int64_t room = shape[values ? *call.axis("axis", 0, call.rank()) : 0];
  return unique_parameters_for(call, output, room);
}

static int64_t unique_workspace(const OpCall& call) {
  return 5 * unique_slices(call)->extent * static_cast<int64_t>(sizeof(int64_t));
}

static Types infer_unique(const OpCall& call) {
  TRY_ASSIGN(const UniqueSlices s, unique_slices(call));
  int64_t room = s.extent;
  if (is_known(call, 1) && element_count(call.shape(0)) > 0) {
    const std::vector<int64_t> counts = found_by(pruner_unique,
                                                 call,
                                                 1,
                                                 unique_parameters_for(call, 3, s.extent),
                                                 s.extent,
                                                 unique_workspace(call));
    room = std::ranges::count_if(counts, [](int64_t times) { return times > 0; });
  }
  TensorType values{call.input(0).dtype, {room}};
  if (call.has_attribute("axis")) {
    values.shape = call.shape(0);
    values.shape[*call.axis("axis", 0, call.rank())] = room;
  }
  const TensorType found{DType::kInt64, {room}}, all{DType::kInt64, {s.extent}};
  return {{values, found, all, found}};
}

// A threshold or a limit; an error when it is no constant.
static Result<double> nms_constant(const OpCall& call, size_t i, const char* what) {
  if (!call.has(i)) return 0.0;
  const std::optional<double> value = call.scalar(i);
  if (!value) return Error(what, " is computed at run time; it has to be a constant");
  return *value;
}

static Result<int64_t> nms_most(const OpCall& call) {
  TRY_ASSIGN(const double most, nms_constant(call, 2, "max_output_boxes_per_class"));
  return static_cast<int64_t>(std::clamp(most, 0.0, static_cast<double>(call.shape(0)[1])));
}

static std::vector<int64_t> nms_parameters_for(const OpCall& call, int64_t room) {
  const std::vector<int64_t>& scores = call.shape(1);
  return {static_cast<int64_t>(call.input(0).dtype),
          scores[0],
          scores[1],
          scores[2],
          *nms_most(call),
          call.integer("center_point_box", 0) != 0,
          call.has(4),
          std::bit_cast<int64_t>(*nms_constant(call, 3, "iou_threshold")),
          std::bit_cast<int64_t>(*nms_constant(call, 4, "score_threshold")),
          room};
}

static std::vector<int64_t> nms_parameters(const OpCall& call) {
  return nms_parameters_for(call, call.output().shape[0]);
}

static int64_t nms_workspace(const OpCall& call) {
  // A heap of all boxes, and four coordinates and an area of those that are chosen.
  return call.shape(1)[2] * static_cast<int64_t>(sizeof(PrunerRanked) + 5 * sizeof(double));
}

static Types infer_nms(const OpCall& call) {
  const std::vector<int64_t>&boxes = call.shape(0), &scores = call.shape(1);
  const DType dtype = call.input(0).dtype;
  const bool fits = boxes.size() == 3 && scores.size() == 3 && boxes[0] == scores[0] &&
                    boxes[1] == scores[2] && boxes[2] == 4;
  if (!fits || !is_float(dtype) || call.input(1).dtype != dtype) {
    return Error("boxes ", print_shape(boxes), " and scores ", print_shape(scores), " do not fit");
  }
  TRY_ASSIGN(const int64_t most, nms_most(call));
  TRY(nms_constant(call, 3, "iou_threshold"));
  TRY(nms_constant(call, 4, "score_threshold"));
  int64_t room = scores[0] * scores[1] * most;
  if (is_known(call, 2)) {
    const std::vector<int64_t> rows = found_by(pruner_non_max_suppression,
                                               call,
                                               2,
                                               nms_parameters_for(call, room),
                                               3 * room,
                                               nms_workspace(call));
    room = std::ranges::count_if(rows, [](int64_t value) { return value >= 0; }) / 3;
  }
  return {{{DType::kInt64, {room, 3}}}};
}

static constexpr Routine kNonZero = {"pruner_non_zero", pruner_non_zero, 1, non_zero_parameters};
static constexpr Routine kCompress = {"pruner_compress", pruner_compress, 2, compress_parameters};
static constexpr Routine kUnique = {
    "pruner_unique", pruner_unique, 1, unique_parameters, unique_workspace};
static constexpr Routine kNms = {
    "pruner_non_max_suppression", pruner_non_max_suppression, 2, nms_parameters, nms_workspace};

// clang-format off
static constexpr GraphOp kSortingOps[] = {
    // name, fusion, fewest and most inputs, attributes, inference, lowering
    GraphOp{"NonMaxSuppression", kOpaque, 2, 5, "center_point_box:i", infer_nms, nullptr}.run_by(kNms).with(kIsAsLongAsFound),
    GraphOp{"NonZero", kOpaque, 1, 1, "", infer_non_zero, nullptr}.run_by(kNonZero).with(kIsAsLongAsFound),
    GraphOp{"TopK", kOpaque, 2, 2, "axis:i largest:i sorted:i", infer_top_k, nullptr}.moved("k:1").run_by(kTopK),
    GraphOp{"Unique", kOpaque, 1, 1, "axis:i sorted:i", infer_unique, nullptr}.run_by(kUnique).with(kIsAsLongAsFound),
    GraphOp{"pruner::Compress", kOpaque, 2, 2, "axis:i", infer_compress, nullptr}.run_by(kCompress).with(kIsAsLongAsFound | kTakesCodes | kOwn),
};
// clang-format on

std::span<const GraphOp> sorting_ops() { return kSortingOps; }

}  // namespace pruner
