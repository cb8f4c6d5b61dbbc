#include "graph/networks/network_builder.h"

#include <algorithm>
#include <cmath>

#include "graph/functions/body.h"
#include "graph/import_cache.h"
#include "support/check.h"

namespace pruner {

NetworkBuilder::NetworkBuilder(std::string name, bool draw_weights)
    : rng_(0), draw_weights_(draw_weights) {
  graph_.name = std::move(name);
}

void NetworkBuilder::share(std::shared_ptr<ImportCache> cache) {
  graph_.folded = folded_of(cache);
  cache_ = std::move(cache);
}

ValueId NetworkBuilder::add_value(Value value) {
  graph_.values.push_back(std::move(value));
  return ValueId{static_cast<int32_t>(graph_.values.size()) - 1};
}

ValueId NetworkBuilder::input(const std::string& name, std::vector<int64_t> shape, DType dtype) {
  graph_.inputs.push_back(add_value({name, dtype, std::move(shape), std::nullopt}));
  return graph_.inputs.back();
}

ValueId NetworkBuilder::state(const std::string& name, std::vector<int64_t> shape) {
  return input(name, std::move(shape), DType::kFloat32);
}

void NetworkBuilder::next_state(ValueId state, ValueId next, const std::string& name) {
  const auto input = std::ranges::find(graph_.inputs, state);
  CHECK(input != graph_.inputs.end()) << name << " is of no input";
  state_inputs_.push_back(static_cast<int>(input - graph_.inputs.begin()));
  state_outputs_.emplace_back(next, name);
}

ValueId NetworkBuilder::image(const NetworkOptions& options) {
  const int64_t size = options.image_size;
  return input("input", {options.batch_size, 3, size, size}, DType::kFloat32);
}

ValueId NetworkBuilder::node(const std::string& op,
                             std::vector<ValueId> inputs,
                             std::map<std::string, Attribute> attributes) {
  const std::string name = op + "_" + std::to_string(graph_.nodes.size());
  const ValueId out = add_value({name, DType::kFloat32, {}, std::nullopt});
  Node node{op, name, std::move(inputs), {out}, std::move(attributes)};
  const Result<Unit> appended = append_call(graph_, std::move(node));
  CHECK(appended.ok()) << appended.error().message();
  return out;
}

ValueId NetworkBuilder::constant(const std::string& name, Tensor tensor) {
  return add_value({name, tensor.dtype(), tensor.shape(), tensor});
}

ValueId NetworkBuilder::scalar(double value) {
  Tensor tensor(DType::kFloat32, {});
  tensor.set(0, value);
  return constant("const_" + std::to_string(graph_.values.size()), tensor);
}

ValueId NetworkBuilder::integers(const std::string& name, std::vector<int64_t> values) {
  Tensor tensor(DType::kInt64, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) tensor.set_int(static_cast<int64_t>(i), values[i]);
  return constant(name, tensor);
}

ValueId NetworkBuilder::random(const std::string& name,
                               std::vector<int64_t> shape,
                               double mean,
                               double spread) {
  if (!draw_weights_) return input(name, std::move(shape), DType::kFloat32);
  const Uniform from{mean, spread};
  if (cache_ == nullptr) return constant(name, draw(rng_, std::move(shape), from));
  const Tensor drawn = cache_->draws.draw(rng_, std::move(shape), from);
  cache_->folded.keep(drawn);
  return constant(name, drawn);
}

ValueId NetworkBuilder::weight(const std::string& name,
                               std::vector<int64_t> shape,
                               int64_t fan_in,
                               double gain) {
  return random(name, std::move(shape), 0, std::sqrt(3 * gain / static_cast<double>(fan_in)));
}

ValueId NetworkBuilder::activation(ValueId x, Nonlinearity kind) {
  switch (kind) {
    case Nonlinearity::kNone: return x;
    case Nonlinearity::kRelu: return node("Relu", {x});
    case Nonlinearity::kRelu6: return node("Clip", {x, scalar(0), scalar(6)});
    case Nonlinearity::kSilu: return node("Mul", {x, node("Sigmoid", {x})});
    case Nonlinearity::kHardSwish: return node("HardSwish", {x});
    case Nonlinearity::kSigmoid: return node("Sigmoid", {x});
    case Nonlinearity::kHardSigmoid: return node("HardSigmoid", {x}, {{"alpha", double{1.0f / 6}}});
  }
  return x;
}

// The gain of a layer that keeps the mean square 1 through its nonlinearity.
static double gain_of(const ConvLayer& layer) {
  if (layer.gain != 0) return layer.gain;
  switch (layer.then) {
    case Nonlinearity::kRelu:
    case Nonlinearity::kRelu6:
    case Nonlinearity::kSilu:
    case Nonlinearity::kHardSwish: return 2;
    default: return 1;
  }
}

ValueId NetworkBuilder::convolve(const std::string& name, ValueId x, const ConvLayer& layer) {
  const int64_t h = layer.kernel, w = layer.kernel_w == 0 ? h : layer.kernel_w;
  const int64_t in = shape(x)[1] / layer.groups, d = layer.dilation;
  const int64_t top = layer.padding >= 0 ? layer.padding : (h - 1) * d / 2;
  const int64_t left = layer.padding >= 0 ? layer.padding : (w - 1) * d / 2;
  const int64_t fan_in = in * h * w;
  std::vector<ValueId> inputs = {
      x, weight(name + ".weight", {layer.channels, in, h, w}, fan_in, gain_of(layer))};
  if (layer.bias) inputs.push_back(random(name + ".bias", {layer.channels}, 0, 0.1));
  return node("Conv",
              std::move(inputs),
              {{"dilations", std::vector<int64_t>{d, d}},
               {"group", layer.groups},
               {"kernel_shape", std::vector<int64_t>{h, w}},
               {"pads", std::vector<int64_t>{top, left, top, left}},
               {"strides", std::vector<int64_t>{layer.stride, layer.stride}}});
}

ValueId NetworkBuilder::conv(const std::string& name, ValueId x, const ConvLayer& layer) {
  return activation(convolve(name, x, layer), layer.then);
}

ValueId NetworkBuilder::norm(const std::string& name, ValueId x, double scale, double epsilon) {
  const std::vector<int64_t> channels = {shape(x)[1]};
  const ValueId weight = random(name + ".weight", channels, scale, 0.2 * scale);
  const ValueId bias = random(name + ".bias", channels, 0, 0.1);
  const ValueId mean = random(name + ".running_mean", channels, 0, 0.2);
  const ValueId variance = random(name + ".running_var", channels, 1, 0.3);
  return node("BatchNormalization", {x, weight, bias, mean, variance}, {{"epsilon", epsilon}});
}

ValueId NetworkBuilder::conv_norm(const std::string& name, ValueId x, const ConvLayer& layer) {
  const ValueId y = convolve(name, x, layer);
  return activation(norm(name + ".norm", y, layer.norm_scale, layer.epsilon), layer.then);
}

ValueId NetworkBuilder::max_pool(
    ValueId x, int64_t kernel, int64_t stride, int64_t padding, bool ceil) {
  std::map<std::string, Attribute> attributes = {
      {"kernel_shape", std::vector<int64_t>{kernel, kernel}},
      {"pads", std::vector<int64_t>(4, padding)},
      {"strides", std::vector<int64_t>{stride, stride}}};
  if (ceil) attributes["ceil_mode"] = int64_t{1};
  return node("MaxPool", {x}, std::move(attributes));
}

ValueId NetworkBuilder::average_pool(ValueId x, int64_t kernel, int64_t stride, int64_t padding) {
  return node("AveragePool",
              {x},
              {{"count_include_pad", int64_t{1}},
               {"kernel_shape", std::vector<int64_t>{kernel, kernel}},
               {"pads", std::vector<int64_t>(4, padding)},
               {"strides", std::vector<int64_t>{stride, stride}}});
}

ValueId NetworkBuilder::resize(ValueId x, int64_t height, int64_t width, bool align_corners) {
  const std::vector<int64_t> sizes = {shape(x)[0], shape(x)[1], height, width};
  const std::string mode = align_corners ? "align_corners" : "pytorch_half_pixel";
  const ValueId to = integers("sizes_" + std::to_string(graph_.values.size()), sizes);
  return node("Resize",
              {x, {}, {}, to},
              {{"coordinate_transformation_mode", mode}, {"mode", std::string("linear")}});
}

ValueId NetworkBuilder::concat(std::vector<ValueId> parts, int64_t axis) {
  return node("Concat", std::move(parts), {{"axis", axis}});
}

ValueId NetworkBuilder::dense(const std::string& name, ValueId x, int64_t out, double gain) {
  const int64_t in = shape(x)[1];
  const ValueId w = weight(name + ".weight", {out, in}, in, gain);
  const ValueId b = random(name + ".bias", {out}, 0, 0.1);
  return node("Gemm", {x, w, b}, {{"transB", int64_t{1}}});
}

ValueId NetworkBuilder::flatten(ValueId x) { return node("Flatten", {x}, {{"axis", int64_t{1}}}); }

ValueId NetworkBuilder::classifier(const std::string& name, ValueId x, int64_t classes) {
  return dense(name, flatten(node("GlobalAveragePool", {x})), classes);
}

Graph NetworkBuilder::finish(std::vector<std::pair<ValueId, std::string>> outputs) {
  for (size_t i = 0; i < state_inputs_.size(); ++i) {
    graph_.states.push_back({state_inputs_[i], static_cast<int>(outputs.size())});
    outputs.push_back(std::move(state_outputs_[i]));
  }
  for (auto& [id, name] : outputs) {
    graph_[id].name = name;
    graph_.outputs.push_back(id);
  }
  return std::move(graph_);
}

}  // namespace pruner
