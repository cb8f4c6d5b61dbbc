#include "graph/networks/network_builder.h"

#include <cmath>

#include "support/check.h"

namespace pruner {

NetworkBuilder::NetworkBuilder(std::string name) : rng_(0) { graph_.name = std::move(name); }

ValueId NetworkBuilder::add_value(Value value) {
  graph_.values.push_back(std::move(value));
  return ValueId{static_cast<int32_t>(graph_.values.size()) - 1};
}

ValueId NetworkBuilder::input(const std::string& name, std::vector<int64_t> shape, DType dtype) {
  graph_.inputs.push_back(add_value({name, dtype, std::move(shape), std::nullopt}));
  return graph_.inputs.back();
}

ValueId NetworkBuilder::node(const std::string& op,
                             std::vector<ValueId> inputs,
                             std::map<std::string, Attribute> attributes) {
  const std::string name = op + "_" + std::to_string(graph_.nodes.size());
  const ValueId out = add_value({name, DType::kFloat32, {}, std::nullopt});
  Node node{op, name, std::move(inputs), {out}, std::move(attributes)};
  const Result<Unit> inferred = infer_node(graph_, node);
  CHECK(inferred.ok()) << inferred.error().message();
  graph_.nodes.push_back(std::move(node));
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
  Tensor tensor(DType::kFloat32, std::move(shape));
  for (float& x : tensor.values<float>()) {
    x = static_cast<float>(mean + spread * (2 * rng_.uniform() - 1));
  }
  return constant(name, tensor);
}

ValueId NetworkBuilder::weight(const std::string& name,
                               std::vector<int64_t> shape,
                               int64_t fan_in,
                               double gain) {
  return random(name, std::move(shape), 0, std::sqrt(3 * gain / static_cast<double>(fan_in)));
}

ValueId NetworkBuilder::conv_norm(const std::string& name, ValueId x, const ConvNorm& conv) {
  const int64_t k = conv.kernel, pad = (k - 1) / 2, in = shape(x)[1] / conv.groups;
  const ValueId w = weight(name + ".weight", {conv.channels, in, k, k}, in * k * k, conv.gain);
  const ValueId y = node("Conv",
                         {x, w},
                         {{"group", conv.groups},
                          {"kernel_shape", std::vector<int64_t>{k, k}},
                          {"pads", std::vector<int64_t>{pad, pad, pad, pad}},
                          {"strides", std::vector<int64_t>{conv.stride, conv.stride}}});
  const std::string bn = name + ".norm";
  const ValueId scale = random(bn + ".weight", {conv.channels}, conv.scale, 0.2 * conv.scale);
  const ValueId bias = random(bn + ".bias", {conv.channels}, 0, 0.1);
  const ValueId mean = random(bn + ".running_mean", {conv.channels}, 0, 0.2);
  const ValueId variance = random(bn + ".running_var", {conv.channels}, 1, 0.3);
  return node("BatchNormalization", {y, scale, bias, mean, variance}, {{"epsilon", 1e-5}});
}

ValueId NetworkBuilder::classifier(const std::string& name, ValueId x, int64_t classes) {
  const ValueId flat = node("Flatten", {node("GlobalAveragePool", {x})}, {{"axis", int64_t{1}}});
  const int64_t in = shape(flat)[1];
  const ValueId w = weight(name + ".weight", {classes, in}, in, 1);
  const ValueId b = random(name + ".bias", {classes}, 0, 0.1);
  return node("Gemm", {flat, w, b}, {{"transB", int64_t{1}}});
}

Graph NetworkBuilder::finish(std::vector<std::pair<ValueId, std::string>> outputs) {
  for (auto& [id, name] : outputs) {
    graph_[id].name = name;
    graph_.outputs.push_back(id);
  }
  return std::move(graph_);
}

}  // namespace pruner
