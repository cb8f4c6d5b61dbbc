// MoE and QMoE: a token goes through the k perceptrons ("experts") that a router rates highest.
// Experts are a dimension of the matrices. Where the tokens have as many experts as there are, all
// experts take all tokens and the others' results count nothing; with fewer, the matrices of each
// token's experts are gathered.
#include <algorithm>
#include <limits>

#include "graph/functions/packed_codes.h"
#include "support/ceil_div.h"

namespace pruner {

namespace {

/// One layer of all experts: [experts, outputs, inputs] and a bias [experts, outputs] or none. The
/// matrix of a QMoE is in codes, with a scale for each block of inputs: [experts, outputs, blocks].
struct Layer {
  Term matrix, bias;
  Term scales = {}, zeros = {};
  int64_t block = 0;

  int64_t outputs() const { return matrix.extent(1); }
  int64_t inputs() const { return matrix.extent(2); }
};

/// The experts of each token and what their results count: [tokens, k].
struct Routes {
  Term experts, weights;
};

}  // namespace

// The k greatest of each row, [tokens, experts]. Of equal ones the last counts as the greatest.
static Routes greatest(Term rates, int64_t k) {
  Body& b = *rates.body;
  const int64_t experts = rates.extent(1);
  const Term backwards = b.add("Slice",
                               {rates,
                                b.integers({{-1}}),
                                b.integers({{-experts - 1}}),
                                b.integers({{1}}),
                                b.integers({{-1}})});
  const std::vector<Term> found =
      b.add_many("TopK", {backwards, b.integers({{k}})}, 2, {{"axis", int64_t{1}}});
  return {static_cast<double>(experts - 1) - found[1], found[0]};
}

static Term in_parts_of_sum(Term weights) {
  Body& b = *weights.body;
  return weights / b.reduce("ReduceSum", weights, {{1}});
}

static Term softmax(Term x) { return x.body->add("Softmax", {x}, {{"axis", int64_t{1}}}); }

// MoE's weights are a softmax over all experts.
static Routes routes_of_moe(Body& b, Term rates, int64_t k) {
  Routes routes = greatest(softmax(rates), k);
  if (b.call().integer("normalize_routing_weights", 0) != 0)
    routes.weights = in_parts_of_sum(routes.weights);
  return routes;
}

// QMoE's weights are a softmax over the k experts, or come from input 14.
static Routes routes_of_qmoe(Body& b, Term rates, int64_t k) {
  Routes routes = greatest(rates, k);
  if (!b.has(14)) {
    routes.weights = softmax(routes.weights);
    return routes;
  }
  const Term given = b.cast(b.input(14), DType::kFloat32);
  routes.weights = b.add("GatherElements", {given, routes.experts}, {{"axis", int64_t{1}}});
  if (b.call().integer("normalize_routing_weights", 0) == 0) return routes;
  const Term sum = b.reduce("ReduceSum", routes.weights, {{1}});
  const Term none = b.scalar(0, DType::kFloat32);
  const Term parts = routes.weights / sum;
  routes.weights = b.add("Where", {b.add("Equal", {sum, none}), none, parts});
  return routes;
}

// The matrices of `experts`, [n], in place of all.
static Layer layer_at(const Layer& layer, Term experts) {
  Body& b = *experts.body;
  const auto gather = [&](Term x) {
    return x.valid() ? b.add("Gather", {x, experts}, {{"axis", int64_t{0}}}) : x;
  };
  return {gather(layer.matrix),
          gather(layer.bias),
          gather(layer.scales),
          gather(layer.zeros),
          layer.block};
}

// x times the layer: [experts, tokens, inputs] to [experts, tokens, outputs].
static Term applied(const Layer& layer, Term x) {
  Body& b = *x.body;
  Term matrix = layer.matrix;
  if (layer.scales.valid()) {
    matrix = b.add("DequantizeBlocks",
                   {matrix, layer.scales, layer.zeros},
                   {{"axis", int64_t{2}}, {"block_size", layer.block}});
  }
  const Term y = b.add("MatMul", {x, b.transpose(matrix, {0, 2, 1})});
  return layer.bias.valid() ? y + b.unsqueeze(layer.bias, 1) : y;
}

// g * sigmoid(alpha g) * (l + beta), where g and l lie side by side (swiglu_fusion 1) or one behind
// the other (2) and do not exceed the limit.
static Term gated(Body& b, Term x) {
  const int64_t half = x.extent(2) / 2;
  Term g, l;
  if (b.call().integer("swiglu_fusion", 0) == 1) {
    const Term pairs = b.reshape(x, {x.extent(0), x.extent(1), half, 2});
    const auto part = [&](int64_t i) {
      return b.reshape(b.slice(pairs, 3, i, i + 1), {x.extent(0), x.extent(1), half});
    };
    g = part(0), l = part(1);
  } else {
    g = b.slice(x, 2, 0, half), l = b.slice(x, 2, half, 2 * half);
  }
  if (b.call().has_attribute("swiglu_limit")) {
    const double limit = b.call().number("swiglu_limit", 0);
    g = b.add("Min", {g, b.scalar(limit, g.dtype())});
    l = b.add("Clip", {l, b.scalar(-limit, l.dtype()), b.scalar(limit, l.dtype())});
  }
  const Term gate = b.add("Sigmoid", {g * b.call().number("activation_alpha", 1)});
  return g * gate * (l + b.call().number("activation_beta", 0));
}

static Term activated(Body& b, Term x) {
  const std::string name = b.call().text("activation_type", "relu");
  if (name == "relu") return b.add("Relu", {x});
  if (name == "gelu") return b.add("Gelu", {x}, {{"approximate", std::string("tanh")}});
  if (name == "silu") return x * b.add("Sigmoid", {x});
  if (name == "swiglu") return gated(b, x);
  return x;
}

// How much each expert's result counts for each token, [experts, tokens].
static Term weights_by_expert(const Routes& routes, int64_t experts) {
  Body& b = *routes.experts.body;
  std::vector<int64_t> all;
  for (int64_t e = 0; e < experts; ++e) all.push_back(e);
  const Term number = b.reshape(b.integers(all), {experts, 1, 1});
  const Term chosen = b.add("Equal", {number, b.unsqueeze(routes.experts, 0)});
  const Term none = b.scalar(0, DType::kFloat32);
  const Term weights = b.add("Where", {chosen, b.unsqueeze(routes.weights, 0), none});
  return b.reshape(b.reduce("ReduceSum", weights, {{2}}), {experts, -1});
}

// [tokens, width] of x, [tokens, width].
static Term mixed(Body& b, Term x, const Layer& first, const Layer& second, const Routes& routes) {
  const int64_t tokens = x.extent(0), width = x.extent(1), experts = first.matrix.extent(0),
                k = routes.experts.extent(1);
  if (tokens * k < experts) {
    const Term chosen = b.reshape(routes.experts, {tokens * k});
    const Term rows = b.add("Expand", {b.unsqueeze(x, 1), b.integers({{tokens, k, width}})});
    const Term hidden = applied(layer_at(first, chosen), b.reshape(rows, {tokens * k, 1, width}));
    const Term made = applied(layer_at(second, chosen), activated(b, hidden));
    const Term parts = b.reshape(made, {tokens, k, width}) * b.unsqueeze(routes.weights, 2);
    return b.reshape(b.reduce("ReduceSum", parts, {{1}}), {tokens, width});
  }
  const Term rows = b.add("Expand", {b.unsqueeze(x, 0), b.integers({{experts, tokens, width}})});
  const Term made = applied(second, activated(b, applied(first, rows)));
  const Term weights = b.unsqueeze(weights_by_expert(routes, experts), 2);
  const Term none = b.scalar(0, DType::kFloat32);
  // A result that counts nothing may be infinite.
  const Term parts = b.add("Where", {b.add("Equal", {weights, none}), none, made * weights});
  return b.reshape(b.reduce("ReduceSum", parts, {{0}}), {tokens, width});
}

static Error misfit(const char* what, std::span<const int64_t> shape, const std::string& expected) {
  return Error(what, " is ", print_shape(shape), ", expected ", expected);
}

static Result<Unit> check_shape(Term x, const char* what, const std::vector<int64_t>& expected) {
  if (!x.valid() || x.shape() == expected) return Unit{};
  return misfit(what, x.shape(), print_shape(expected));
}

static Result<Unit> check_layers(Body& b, const Layer& first, const Layer& second) {
  const int64_t experts = b.input(1).extent(1), width = b.input(0).extent(-1);
  const bool gate = b.call().text("activation_type", "relu") == "swiglu";
  const int64_t inner = second.inputs();
  TRY(check_shape(first.matrix, "fc1_experts_weights", {experts, gate ? 2 * inner : inner, width}));
  TRY(check_shape(second.matrix, "fc2_experts_weights", {experts, width, inner}));
  TRY(check_shape(first.bias, "fc1_experts_bias", {experts, first.outputs()}));
  return check_shape(second.bias, "fc2_experts_bias", {experts, width});
}

// `second` is the matrix of the second layer, `fc3` are the inputs of a third one.
static Result<Unit> check_call(Body& b, size_t second, std::initializer_list<size_t> fc3) {
  const OpCall& call = b.call();
  if (!call.has(second)) return Error("input ", second, " (fc2_experts_weights) is missing");
  static constexpr std::string_view kKnown[] = {"gelu", "identity", "relu", "silu", "swiglu"};
  const std::string name = call.text("activation_type", "relu");
  if (std::ranges::find(kKnown, name) == std::end(kKnown))
    return Error(
        "activation_type is \"", name, "\", expected gelu, identity, relu, silu or swiglu");
  if (call.integer("use_sparse_mixer", 0) != 0) return Error("use_sparse_mixer is not supported");
  for (const size_t i : fc3) {
    if (call.has(i))
      return Error("input ", i, ", a part of FC3, is not supported; join FC3 to FC1");
  }
  const int64_t fusion = call.integer("swiglu_fusion", 0);
  if (name == "swiglu" && fusion != 1 && fusion != 2)
    return Error("swiglu_fusion is ", fusion, ", expected 1 or 2");
  const int64_t rank = call.rank(0);
  if (rank != 2 && rank != 3)
    return misfit("input", call.shape(0), "[tokens, width] or [batch, tokens, width]");
  const int64_t tokens = element_count(call.shape(0)) / std::max<int64_t>(call.shape(0).back(), 1);
  if (call.rank(1) != 2 || call.shape(1)[0] != tokens)
    return misfit("router_probs", call.shape(1), std::to_string(tokens) + " rows");
  const int64_t k = call.integer("k", 1);
  if (k >= 1 && k <= call.shape(1)[1]) return Unit{};
  return Error("k is ", k, ", expected 1 to ", call.shape(1)[1]);
}

using Routing = Routes(Body&, Term rates, int64_t k);

static void write_experts(Body& b, const Layer& first, const Layer& second, Routing routing) {
  const Result<Unit> fits = check_layers(b, first, second);
  if (!fits.ok()) return b.fail(fits.error());
  const Term x = b.cast(b.input(0), DType::kFloat32);
  const Routes routes = routing(b, b.cast(b.input(1), DType::kFloat32), b.call().integer("k", 1));
  const Term y = mixed(b, b.reshape(x, {-1, x.extent(-1)}), first, second, routes);
  b.output(0, b.cast(b.reshape(y, x.shape()), b.input(0).dtype()));
}

static Term real_input(Body& b, size_t i) {
  return b.has(i) ? b.cast(b.input(i), DType::kFloat32) : Term{};
}

static void moe(Body& b) {
  if (const Result<Unit> checked = check_call(b, 4, {6, 7}); !checked.ok())
    return b.fail(checked.error());
  write_experts(
      b, {real_input(b, 2), real_input(b, 3)}, {real_input(b, 4), real_input(b, 5)}, routes_of_moe);
}

namespace {

/// The place of a layer in a QMoE: the attribute of its bits, and its inputs.
struct Place {
  const char *bits, *weights, *steps, *zeros;
  size_t matrix, scales, bias, zero_points;
};

}  // namespace

// Returns the zero points, which lie in rows of blocks, or in a row of outputs if each output has
// one zero point.
static Result<Term> zeros_of(Body& b, const Place& at, int64_t bits) {
  const std::vector<int64_t> steps = b.input(at.scales).shape();
  const bool by_output = steps.size() == 2;
  const std::vector<int64_t> shape = {steps[0], steps[1], by_output ? 1 : steps[2]};
  if (!b.has(at.zero_points))
    return b.constant(filled(type_of_bits(bits), shape, int64_t{1} << (bits - 1)));
  const Term given = b.input(at.zero_points);
  const int64_t rows = by_output ? shape[0] : shape[0] * shape[1],
                count = by_output ? shape[1] : shape[2];
  if (!given.constant()) return computed_at_run_time(b.call().graph, given.id, at.zeros);
  std::vector<int64_t> expected = steps;
  expected.back() = packed_bytes(steps.back(), bits);
  TRY(check_shape(given, at.zeros, expected));
  return b.constant(unpacked(*given.constant(), bits, rows, count).reshaped(shape));
}

static Result<Layer> layer_of(Body& b, const Place& at) {
  const OpCall& call = b.call();
  const int64_t bits = call.integer(at.bits, call.integer("expert_weight_bits", 4));
  if (bits != 2 && bits != 4 && bits != 8)
    return Error(at.bits, " is ", bits, ", expected 2, 4 or 8");
  if (!call.has(at.scales)) return Error("input ", at.scales, " (", at.steps, ") is missing");
  const Term packed = b.input(at.matrix), scales = b.input(at.scales);
  if (!packed.constant()) return computed_at_run_time(call.graph, packed.id, at.weights);
  if (packed.rank() != 3 || packed.dtype() != DType::kUInt8)
    return misfit(at.weights, packed.shape(), "[experts, outputs, bytes] of uint8");
  const int64_t experts = packed.extent(0), outputs = packed.extent(1),
                inputs = packed.extent(2) * 8 / bits;
  const int64_t size = call.integer("block_size", 0), block = size > 0 ? size : inputs;
  const int64_t blocks = ceil_div(inputs, block);
  const std::vector<int64_t> all = {experts, outputs, blocks};
  if (scales.shape() != all && (blocks != 1 || scales.shape() != std::vector{experts, outputs}))
    return misfit(at.steps, scales.shape(), print_shape(all));
  TRY_ASSIGN(const Term zeros, zeros_of(b, at, bits));
  const Tensor codes = unpacked(*packed.constant(), bits, experts * outputs, inputs);
  return Layer{b.constant(codes.reshaped({experts, outputs, inputs})),
               real_input(b, at.bias),
               b.reshape(b.cast(scales, DType::kFloat32), all),
               zeros,
               block};
}

static constexpr Place kFirst = {
    "fc1_expert_weight_bits", "fc1_experts_weights", "fc1_scales", "fc1_zero_points", 2, 3, 4, 11};
static constexpr Place kSecond = {
    "fc2_expert_weight_bits", "fc2_experts_weights", "fc2_scales", "fc2_zero_points", 5, 6, 7, 12};

static void q_moe(Body& b) {
  const OpCall& call = b.call();
  if (const Result<Unit> checked = check_call(b, 5, {8, 9, 10, 13}); !checked.ok())
    return b.fail(checked.error());
  if (call.text("quant_type", "int") != "int")
    return b.fail(Error("quant_type \"", call.text("quant_type", ""), "\" is not supported"));
  if (call.integer("weights_prepacked", -1) > 0)
    return b.fail(Error("weights_prepacked ",
                        call.integer("weights_prepacked", -1),
                        " is not supported; export the model with weights as they are specified"));
  for (size_t i = 15; i < call.num_inputs(); ++i) {
    if (call.has(i)) return b.fail(Error("input ", i, " does not go with quant_type \"int\""));
  }
  const Result<Layer> first = layer_of(b, kFirst), second = layer_of(b, kSecond);
  if (!first.ok() || !second.ok()) return b.fail(first.ok() ? second.error() : first.error());
  write_experts(b, *first, *second, routes_of_qmoe);
}

// clang-format off
static constexpr Function kMixtureOfExpertsFunctions[] = {
    {"com.microsoft::MoE", 3, 8, "activation_alpha:f activation_beta:f activation_type:s k:i normalize_routing_weights:i swiglu_fusion:i swiglu_limit:f use_sparse_mixer:i", moe},
    {"com.microsoft::QMoE", 3, 21, "accuracy_level:i activation_alpha:f activation_beta:f activation_type:s block_size:i expert_weight_bits:i fc1_expert_weight_bits:i fc2_expert_weight_bits:i fc3_expert_weight_bits:i k:i normalize_routing_weights:i quant_type:s swiglu_fusion:i swiglu_limit:f use_sparse_mixer:i weights_prepacked:i", q_moe},
};
// clang-format on

std::span<const Function> mixture_of_experts_functions() { return kMixtureOfExpertsFunctions; }

}  // namespace pruner
