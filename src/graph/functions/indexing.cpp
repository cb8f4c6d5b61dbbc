// Operators that choose or place elements by means of others, and what only training makes.
#include <algorithm>

#include "graph/functions/body.h"

namespace pruner {

// Scatter is ScatterElements' name of before opset 11.
static void scatter(Body& b) {
  b.output(0,
           b.add("ScatterElements",
                 {b.input(0), b.input(1), b.input(2)},
                 {{"axis", b.call().integer("axis", 0)}}));
}

// The last opsets to have it, 7 to 9, placed and rounded in one way.
static void upsample(Body& b) {
  Term scales = b.input(1);
  if (b.call().has_attribute("scales")) {
    const auto given = std::get<std::vector<double>>(b.call().node.attributes.at("scales"));
    Tensor tensor(DType::kFloat32, {std::ssize(given)});
    std::ranges::copy(given, tensor.values<float>().begin());
    scales = b.constant(std::move(tensor));
  }
  if (!scales.valid()) return b.fail(Error("has no scales"));
  const std::string mode = b.call().text("mode", "nearest");
  b.output(0,
           b.add("Resize",
                 {b.input(0), Term{}, scales},
                 {{"mode", mode == "bilinear" ? "linear" : mode},
                  {"coordinate_transformation_mode", std::string("asymmetric")},
                  {"nearest_mode", std::string("floor")}}));
}

// 1 at the first of the largest elements along an axis; before opset 13 along all axes from one on.
static void hardmax(Body& b) {
  Term x = b.input(0);
  const std::vector<int64_t> shape = x.shape();
  const bool flat = b.opset() < 13;
  const Result<int64_t> axis = b.call().axis("axis", flat ? 1 : -1, x.rank());
  if (!axis.ok()) return b.fail(axis.error());
  if (flat) x = b.add("Flatten", {x}, {{"axis", *axis}});
  const int64_t along = flat ? 1 : *axis;
  std::vector<int64_t> line(x.shape().size(), 1), places;
  line[along] = x.extent(along);
  for (int64_t i = 0; i < x.extent(along); ++i) places.push_back(i);
  const Term largest = b.add("ArgMax", {x}, {{"axis", along}});
  const Term chosen = b.add("Equal", {b.reshape(b.integers(places), line), largest});
  b.output(0, b.reshape(b.cast(chosen, x.dtype()), shape));
}

static void eye_like(Body& b) {
  const std::vector<int64_t> shape = b.input(0).shape();
  DType dtype = b.input(0).dtype();
  if (b.call().has_attribute("dtype")) {
    const int64_t number = b.call().integer("dtype", 0);
    const auto row = std::ranges::find(kDTypes, number, &DTypeRow::onnx);
    if (row == std::end(kDTypes)) return b.fail(Error("dtype ", number, " is not supported"));
    dtype = row->dtype;
  }
  if (shape.size() != 2) return b.fail(Error("data of ", print_shape(shape), " are no matrix"));
  Tensor eye(dtype, shape);
  const int64_t k = b.call().integer("k", 0);
  for (int64_t row = std::max<int64_t>(0, -k); row < shape[0] && row + k < shape[1]; ++row)
    eye.set_int(row * shape[1] + row + k, 1);
  b.output(0, b.constant(std::move(eye)));
}

// A Dropout that is not trained drops nothing, and says so in its mask.
static void dropout(Body& b) {
  const bool trains = b.has(2) && b.call().scalar(2) != 0.0;
  if (trains && (!b.has(1) || b.call().scalar(1) != 0.0))
    return b.fail(Error("training_mode is not supported but with a ratio of 0"));
  b.output(0, b.input(0));
  if (!b.wants(1)) return;
  Tensor mask(DType::kBool, b.input(0).shape());
  for (int64_t i = 0; i < mask.num_elements(); ++i) mask.set_int(i, 1);
  b.output(1, b.constant(std::move(mask)));
}

// The places are known if the condition is. A condition without elements belongs to a network at
// other extents (graph/pipeline), and the node has to be there.
static void compress(Body& b) {
  const bool flat = !b.call().has_attribute("axis");
  const Term x = flat ? b.reshape(b.input(0), {-1}) : b.input(0);
  const Result<int64_t> axis = b.call().axis("axis", 0, x.rank());
  if (!axis.ok()) return b.fail(axis.error());
  const std::optional<Tensor>& condition = b.input(1).constant();
  if (!condition || condition->num_elements() == 0)
    return b.output(0, b.add("pruner::Compress", {x, b.input(1)}, {{"axis", *axis}}));
  std::vector<int64_t> places;
  for (int64_t i = 0; i < condition->num_elements(); ++i) {
    if (condition->get_int(i) != 0) places.push_back(i);
  }
  b.output(0, b.add("Gather", {x, b.integers(places)}, {{"axis", *axis}}));
}

static constexpr Function kIndexingFunctions[] = {
    {"Compress", 2, 2, "axis:i", compress},
    {"Dropout", 1, 3, "", dropout},
    {"EyeLike", 1, 1, "dtype:i k:i", eye_like},
    {"Hardmax", 1, 1, "axis:i", hardmax},
    {"Scatter", 3, 3, "axis:i", scatter},
    {"Upsample", 1, 2, "mode:s scales:F", upsample},
};

std::span<const Function> indexing_functions() { return kIndexingFunctions; }

}  // namespace pruner
