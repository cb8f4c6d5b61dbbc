#include "graph/bounds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "graph/ops/op.h"

namespace pruner {
namespace {

constexpr int64_t kMostLookedAt = 1 << 16;  // elements of a constant

/// Operators whose results lie between the same numbers, whatever their inputs are.
struct FixedBounds {
  std::string_view op;
  Bounds bounds;
};
constexpr FixedBounds kFixed[] = {
    {"Cos", {-1, 1}},
    {"Erf", {-1, 1}},
    {"HardSigmoid", {0, 1}},
    {"Sigmoid", {0, 1}},
    {"Sign", {-1, 1}},
    {"Sin", {-1, 1}},
    {"Softmax", {0, 1}},
    {"Softsign", {-1, 1}},
    {"Tanh", {-1, 1}},
};

/// Operators whose results are elements of input 0, or lie between such; aliases are, too.
constexpr std::string_view kOfFirstInput[] = {kFound,
                                              "pruner::Compress",
                                              "DepthToSpace",
                                              "Expand",
                                              "Gather",
                                              "GatherElements",
                                              "GatherND",
                                              "GlobalAveragePool",
                                              "GlobalMaxPool",
                                              "MaxPool",
                                              "ReduceMax",
                                              "ReduceMean",
                                              "ReduceMin",
                                              "ReverseSequence",
                                              "Slice",
                                              "SpaceToDepth",
                                              "Split",
                                              "Tile",
                                              "Transpose"};

/// Functions that grow with their input.
struct Growing {
  std::string_view op;
  double (*function)(double);
};
constexpr Growing kGrowing[] = {
    {"Ceil", std::ceil},
    {"Exp", std::exp},
    {"Floor", std::floor},
    {"Relu", [](double x) { return std::max(x, 0.0); }},
    {"Round", std::nearbyint},
    {"Sqrt", std::sqrt},
};

Bounds join(const Bounds& a, const Bounds& b) {
  return {std::min(a.least, b.least), std::max(a.greatest, b.greatest)};
}

/// `of_least` bounds the lesser of two numbers, `of_most` the greater of two numbers.
Bounds of_least(const Bounds& a, const Bounds& b) {
  return {std::min(a.least, b.least), std::min(a.greatest, b.greatest)};
}
Bounds of_most(const Bounds& a, const Bounds& b) {
  return {std::max(a.least, b.least), std::max(a.greatest, b.greatest)};
}

/// Returns the bounds of a function of two numbers whose extremes lie in the corners of `a` x `b`.
Bounds of_corners(const Bounds& a, const Bounds& b, double (*function)(double, double)) {
  const std::array corners = {function(a.least, b.least),
                              function(a.least, b.greatest),
                              function(a.greatest, b.least),
                              function(a.greatest, b.greatest)};
  // An infinite number times 0 may be anything.
  if (std::ranges::any_of(corners, [](double x) { return std::isnan(x); })) return {};
  return {std::ranges::min(corners), std::ranges::max(corners)};
}

Bounds of_constant(const Tensor& tensor) {
  if (tensor.num_elements() > kMostLookedAt) return {};
  if (tensor.num_elements() == 0) return {0, 0};
  Bounds bounds{tensor.get(0), tensor.get(0)};
  for (int64_t i = 1; i < tensor.num_elements(); ++i)
    bounds = join(bounds, {tensor.get(i), tensor.get(i)});
  return bounds;
}

/// Returns the range of a type's numbers. Arithmetic that leaves the range wraps around.
Bounds of_type(DType dtype) {
  if (dtype == DType::kBool) return {0, 1};
  if (is_float(dtype) || dtype_bytes(dtype) > 4) return {};
  const double values = std::ldexp(1, static_cast<int>(8 * dtype_bytes(dtype)));
  return is_signed_int(dtype) ? Bounds{-values / 2, values / 2 - 1} : Bounds{0, values - 1};
}

}  // namespace

const Node* ValueBounds::maker(ValueId id) {
  for (; seen_ < graph_.nodes.size(); ++seen_)
    for (size_t o = 0; o < graph_.nodes[seen_].outputs.size(); ++o)
      makers_[graph_.nodes[seen_].outputs[o]] = {seen_, o};
  const auto made = makers_.find(id);
  if (made == makers_.end()) return nullptr;
  // Nodes move when others are put between them.
  const Node& node = graph_.nodes[made->second.first];
  const size_t output = made->second.second;
  if (output < node.outputs.size() && node.outputs[output] == id) return &node;
  makers_.clear();
  seen_ = 0;
  return maker(id);
}

Bounds ValueBounds::of(ValueId id) {
  if (!id.valid()) return {};
  const Value& value = graph_[id];
  const Node* node = maker(id);
  if (value.constant) {
    const Bounds made = of_constant(*value.constant);
    if (!varies_(id)) return made;
    if (node == nullptr || node->op == "Shape" || node->op == "Size") return join(made, {0, 0});
  }
  if (const auto known = known_.find(id); known != known_.end()) return known->second;
  Bounds bounds = of_type(value.dtype);
  if (node != nullptr) {
    const auto output = std::ranges::find(node->outputs, id) - node->outputs.begin();
    const Bounds made = of_node(*node, static_cast<size_t>(output));
    // `made` counts only inside the type's range. Arithmetic on infinite bounds may give NaN, and
    // numbers outside of the range wrap around.
    if (made.least >= bounds.least && made.greatest <= bounds.greatest) bounds = made;
  }
  // A constant without finite bounds is taken to lie between 0 and its elements, as a shape does.
  if (value.constant && !(std::isfinite(bounds.least) && std::isfinite(bounds.greatest)))
    bounds = join(of_constant(*value.constant), {0, 0});
  return known_[id] = bounds;
}

size_t ValueBounds::chosen(const Node& where) {
  const Node* less = maker(where.inputs[0]);
  if (less == nullptr || less->op != "Less") return 0;
  const Bounds a = of(less->inputs[0]), b = of(less->inputs[1]);
  return a.least >= b.greatest ? 2 : a.greatest < b.least ? 1 : 0;
}

// Returns bounds that hold for the elements of all inputs from number `first` on.
Bounds ValueBounds::of_all(const Node& node, size_t first) {
  Bounds all = of(node.inputs[first]);
  for (size_t i = first + 1; i < node.inputs.size(); ++i) all = join(all, of(node.inputs[i]));
  return all;
}

// Returns the bounds of an arithmetic operator. Its extremes lie at the ends of the inputs' bounds;
// the bounds of Mod follow from the largest divisor.
Bounds ValueBounds::of_arithmetic(const Node& node) {
  const std::string& op = node.op;
  std::vector<Bounds> in;
  for (const ValueId input : node.inputs) in.push_back(of(input));
  if (in.empty()) return {};
  const Bounds a = in[0];
  if (op == "Clip") {
    // The greatest wins where both are in conflict.
    Bounds clipped = a;
    if (in.size() > 1 && node.inputs[1].valid()) clipped = of_most(clipped, in[1]);
    if (in.size() > 2 && node.inputs[2].valid()) clipped = of_least(clipped, in[2]);
    return clipped;
  }
  if (op == "Min" || op == "Max") {
    Bounds all = a;
    for (const Bounds& one : in) all = op == "Min" ? of_least(all, one) : of_most(all, one);
    return all;
  }
  if (op == "Neg") return {-a.greatest, -a.least};
  if (op == "Abs") return of_most({0, 0}, of_most(a, {-a.greatest, -a.least}));
  if (in.size() != 2) return {};
  const Bounds b = in[1];
  if (op == "Add") return {a.least + b.least, a.greatest + b.greatest};
  if (op == "Sub") return {a.least - b.greatest, a.greatest - b.least};
  if (op == "Mul") return of_corners(a, b, [](double x, double y) { return x * y; });
  const bool divides = b.least > 0 || b.greatest < 0;
  if (op == "Div" && divides) {
    const Bounds quotient = of_corners(a, b, [](double x, double y) { return x / y; });
    // ONNX cuts off what is behind the point.
    return is_integer(graph_[node.outputs[0]].dtype)
               ? Bounds{std::trunc(quotient.least), std::trunc(quotient.greatest)}
               : quotient;
  }
  if (op == "Mod" && divides) {
    const double most = std::max(std::abs(b.least), std::abs(b.greatest));
    return {-most, most};
  }
  return {};
}

Bounds ValueBounds::of_node(const Node& node, size_t output) {
  const std::string& op = node.op;
  const OpCall call{graph_, node};
  const auto last_place = [&](int64_t fallback) -> double {
    const Result<int64_t> axis = call.axis("axis", fallback, call.rank());
    if (!axis.ok() || call.rank() == 0) return 0;
    return std::max(static_cast<double>(call.shape(0)[static_cast<size_t>(*axis)]) - 1, 0.0);
  };
  if (const auto row = std::ranges::find(kFixed, op, &FixedBounds::op); row != std::end(kFixed))
    return row->bounds;
  if (const auto row = std::ranges::find(kGrowing, op, &Growing::op); row != std::end(kGrowing)) {
    const Bounds in = of(node.inputs[0]);
    return {row->function(in.least), row->function(in.greatest)};
  }
  if (is_alias(op) || std::ranges::find(kOfFirstInput, op) != std::end(kOfFirstInput))
    return of(node.inputs[0]);
  if (op == "ArgMax" || op == "ArgMin") return {0, last_place(0)};
  if (op == kLoopBegin && output == 0) {
    const Bounds trips = call.has(0) ? of(node.inputs[0]) : Bounds{};
    return {0, std::max(trips.greatest - 1, 0.0)};
  }
  if (op == kLoopRounds) return {0, call.has(1) ? of(node.inputs[1]).greatest : Bounds{}.greatest};
  if (op == kLoopStack)
    return call.has(2) ? join(of(node.inputs[1]), of(node.inputs[2])) : of(node.inputs[1]);
  if (op == "TopK") return output == 0 ? of(node.inputs[0]) : Bounds{0, last_place(-1)};
  if (op == "Cast") {
    const Bounds in = of(node.inputs[0]);
    if (graph_[node.outputs[0]].dtype == DType::kBool) return {0, 1};
    if (!is_integer(graph_[node.outputs[0]].dtype)) return in;
    return {std::trunc(in.least), std::trunc(in.greatest)};
  }
  if (op == "ReduceSum") {
    const Bounds in = of(node.inputs[0]);
    const auto terms = static_cast<double>(
        element_count(call.shape(0)) / std::max<int64_t>(element_count(call.output().shape), 1));
    return join({0, 0}, {in.least * terms, in.greatest * terms});
  }
  if (op == "CumSum") {
    const Bounds in = of(node.inputs[0]);
    const auto terms = static_cast<double>(element_count(call.shape(0)));
    return join({0, 0}, {in.least * terms, in.greatest * terms});
  }
  if (op == "NonZero" || op == "NonMaxSuppression") {
    // Places that nothing was found for are -1.
    double most = 0;
    for (size_t i = 0; i < std::min<size_t>(node.inputs.size(), 2); ++i)
      for (const int64_t dim : call.shape(i)) most = std::max(most, static_cast<double>(dim));
    return {-1, most};
  }
  if (op == "AveragePool" || op == "Trilu") return join({0, 0}, of(node.inputs[0]));
  if (op == "Where") {
    const size_t input = chosen(node);
    return input > 0 ? of(node.inputs[input]) : of_all(node, 1);
  }
  if (op == "Concat") return of_all(node, 0);
  if (op == "ScatterElements" || op == "ScatterND")
    return call.text("reduction", "none") == "none" ? join(of(node.inputs[0]), of(node.inputs[2]))
                                                    : Bounds{};
  if (op == "Pad") return join(of(node.inputs[0]), call.has(2) ? of(node.inputs[2]) : Bounds{0, 0});
  if (op == "Resize")
    return call.text("mode", "nearest") == "cubic" ? Bounds{} : of(node.inputs[0]);
  return of_arithmetic(node);
}

}  // namespace pruner
