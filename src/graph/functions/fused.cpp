// The operators that ONNX Runtime's optimizer writes for chains of ONNX's operators: products,
// convolutions and activations, each joined with the operators before and after it.
#include <algorithm>
#include <array>
#include <numeric>

#include "graph/functions/body.h"

namespace pruner {

namespace {

// The name of an operator of ours, and of the attributes that are its parameters, in order.
struct Activation {
  std::string_view name;
  std::array<const char*, 2> parameters;
};

}  // namespace

static constexpr Activation kActivations[] = {
    {"Clip", {"min", "max"}},
    {"Elu", {"alpha", nullptr}},
    {"HardSigmoid", {"alpha", "beta"}},
    {"LeakyRelu", {"alpha", nullptr}},
    {"Relu", {nullptr, nullptr}},
    {"Selu", {"alpha", "gamma"}},
    {"Sigmoid", {nullptr, nullptr}},
    {"Softplus", {nullptr, nullptr}},
    {"Softsign", {nullptr, nullptr}},
    {"Tanh", {nullptr, nullptr}},
    {"ThresholdedRelu", {"alpha", nullptr}},
};

// The activation that the call names, of x. `parameter` gives number i, of a name; nothing where
// the operator's own holds.
static Term activated(Body& b,
                      Term x,
                      const std::function<std::optional<double>(size_t, const char*)>& parameter) {
  const std::string name = b.call().text("activation", "");
  if (name.empty()) return x;
  const auto row = std::ranges::find(kActivations, name, &Activation::name);
  if (row == std::end(kActivations)) {
    b.fail(Error("activation ", name, " is not supported"));
    return x;
  }
  std::vector<Term> inputs = {x};
  Attributes attributes;
  for (size_t i = 0; i < row->parameters.size() && row->parameters[i] != nullptr; ++i) {
    const std::optional<double> value = parameter(i, row->parameters[i]);
    if (name == "Clip") {
      inputs.push_back(value ? b.scalar(*value, x.dtype()) : Term{&b, {}});
    } else if (value) {
      attributes.emplace(row->parameters[i], *value);
    }
  }
  return b.add(name, inputs, attributes);
}

// The call's attributes without the activation's.
static Attributes without_activation(const OpCall& call) {
  Attributes attributes = call.node.attributes;
  std::erase_if(attributes, [](const auto& of) { return of.first.starts_with("activation"); });
  return attributes;
}

// Numbers in activation_params; what is added comes before the activation.
static void fused_conv(Body& b) {
  std::vector<double> given;
  const auto it = b.call().node.attributes.find("activation_params");
  if (it != b.call().node.attributes.end()) given = std::get<std::vector<double>>(it->second);
  std::vector<Term> inputs = {b.input(0), b.input(1)};
  if (b.has(2)) inputs.push_back(b.input(2));
  Term y = b.add("Conv", inputs, without_activation(b.call()));
  if (b.has(3)) y = y + b.input(3);
  b.output(0, activated(b, y, [&](size_t i, const char*) {
             return i < given.size() ? std::optional(given[i]) : std::nullopt;
           }));
}

// Numbers in attributes of their own, activation_alpha and so on.
static void fused_gemm(Body& b) {
  std::vector<Term> inputs = {b.input(0), b.input(1)};
  if (b.has(2)) inputs.push_back(b.input(2));
  const Term y = b.add("Gemm", inputs, without_activation(b.call()));
  b.output(0, activated(b, y, [&](size_t, const char* name) -> std::optional<double> {
             const std::string attribute = std::string("activation_") + name;
             if (!b.call().has_attribute(attribute.c_str())) return std::nullopt;
             return b.call().number(attribute.c_str(), 0);
           }));
}

// An operand as MatMul takes it: [rows, batch..., columns] with transBatch, the last two exchanged
// with trans.
static Term matrices(Body& b, Term x, bool batch, bool exchange) {
  if (x.rank() < 2) return x;
  std::vector<int64_t> order(static_cast<size_t>(x.rank()));
  std::iota(order.begin(), order.end(), 0);
  if (batch) std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  if (exchange) std::swap(order[order.size() - 1], order[order.size() - 2]);
  return std::ranges::is_sorted(order) ? x : b.transpose(x, order);
}

static void fused_matmul(Body& b) {
  const auto is_set = [&](const char* name) { return b.call().integer(name, 0) != 0; };
  const Term x = matrices(b, b.input(0), is_set("transBatchA"), is_set("transA"));
  const Term y = matrices(b, b.input(1), is_set("transBatchB"), is_set("transB"));
  const double alpha = b.call().number("alpha", 1);
  const Term product = b.add("MatMul", {x, y});
  b.output(0, alpha == 1 ? product : product * alpha);
}

// Gelu of the sum of all inputs.
static Term gelu_of_sum(Body& b, const char* approximate) {
  const Term x = b.has(1) ? b.input(0) + b.input(1) : b.input(0);
  return b.add("Gelu", {x}, {{"approximate", std::string(approximate)}});
}

static void exact_gelu(Body& b) { b.output(0, gelu_of_sum(b, "none")); }
static void fast_gelu(Body& b) { b.output(0, gelu_of_sum(b, "tanh")); }

static void quick_gelu(Body& b) {
  b.output(0, b.add("Swish", {b.input(0)}, {{"alpha", b.call().number("alpha", 1.702)}}));
}

// The softmax of data + bias over the dimensions from `axis` on. The bias lacks the dimensions
// before `axis`, or with is_inner_broadcast some right before it.
static void bias_softmax(Body& b) {
  const Term x = b.input(0);
  const Result<int64_t> axis = b.call().axis("axis", 1, x.rank());
  if (!axis.ok()) return b.fail(axis.error());
  const Term sum = x + b.input(1);
  int64_t rows = 1;
  for (int64_t d = 0; d < *axis; ++d) rows *= x.extent(d);
  const Term flat = b.reshape(sum, {rows, -1});
  b.output(0, b.reshape(b.add("Softmax", {flat}, {{"axis", int64_t{-1}}}), x.shape()));
}

static constexpr std::string_view kMatMul = "alpha:f transA:i transB:i transBatchA:i transBatchB:i";

// clang-format off
static constexpr Function kFusedFunctions[] = {
    {"com.microsoft::BiasGelu", 2, 2, "", exact_gelu},
    {"com.microsoft::BiasSoftmax", 2, 2, "axis:i is_inner_broadcast:i", bias_softmax},
    {"com.microsoft::FastGelu", 1, 2, "", fast_gelu},
    {"com.microsoft::FusedConv", 2, 4, "activation:s activation_params:F auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I", fused_conv},
    {"com.microsoft::FusedGemm", 2, 3, "activation:s activation_alpha:f activation_beta:f activation_gamma:f alpha:f beta:f transA:i transB:i", fused_gemm},
    {"com.microsoft::FusedMatMul", 2, 2, kMatMul, fused_matmul},
    {"com.microsoft::Gelu", 1, 1, "", exact_gelu},
    {"com.microsoft::QuickGelu", 1, 1, "alpha:f", quick_gelu},
    {"com.microsoft::TransposeMatMul", 2, 2, kMatMul, fused_matmul},
};
// clang-format on

std::span<const Function> fused_functions() { return kFusedFunctions; }

}  // namespace pruner
