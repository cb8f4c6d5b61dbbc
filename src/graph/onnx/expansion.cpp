#include "graph/onnx/expansion.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "graph/onnx/names.h"
#include "graph/onnx/node_writer.h"

namespace pruner {
namespace {

constexpr NumberInputs kNumberInputs[] = {
    {"ConstantOfShape", 0, 0},
    {"Expand", 1, 1},
    {"OneHot", 1, 1},
    {"Pad", 1, 1},
    {"Range", 0, 2},
    {"Reshape", 1, 1},
    {"Resize", 2, 3},
    {"Slice", 1, 2},
    {"Tile", 1, 1},
};

std::string text(const onnx::NodeProto& node,
                 const std::string& name,
                 const std::string& fallback) {
  const onnx::AttributeProto* attribute = written_attribute(node, name);
  return attribute == nullptr ? fallback : attribute->s();
}

bool is_set(const onnx::NodeProto& node, const std::string& name) {
  const onnx::AttributeProto* attribute = written_attribute(node, name);
  return attribute != nullptr && attribute->i() != 0;
}

// A start or an end of a Slice, which counts from the end where it is negative, as ONNX brings it
// into the axis.
std::string normal_place(NodeWriter& to,
                         const RunTimeNumbers::Element& of,
                         const std::string& extent,
                         int64_t least,
                         const std::string& most) {
  const std::string place = to.integer_of(to.element(of));
  const std::string from_end = to.add("Less", {place, to.integers({0})});
  const std::string counted = to.add("Where", {from_end, to.add("Add", {place, extent}), place});
  return to.clamp(counted, to.integers({least}), most);
}

Result<NodeList> expand_slice(const onnx::NodeProto& node, const RunTimeNumbers& numbers) {
  NodeWriter to(node);
  std::string x = node.input(0);
  const size_t count = numbers.axes.size();
  for (size_t i = 0; i < count; ++i) {
    const RunTimeNumbers::Element &start = numbers.elements[i], &end = numbers.elements[count + i];
    const int64_t axis = numbers.axes[i], step = numbers.steps[i];
    const std::string extent = to.extent_of(x, axis);
    const std::string last = to.add("Sub", {extent, to.integers({1})});
    const std::string from = normal_place(to, start, extent, 0, step > 0 ? extent : last);
    const std::string behind =
        normal_place(to, end, extent, step > 0 ? 0 : -1, step > 0 ? extent : last);
    std::string way = step > 0 ? to.add("Sub", {behind, from}) : to.add("Sub", {from, behind});
    if (std::abs(step) > 1) {
      way = to.add("Add", {way, to.integers({std::abs(step) - 1})});
      way = to.add("Div", {way, to.integers({std::abs(step)})});
    }
    const std::string size = to.add("Max", {way, to.integers({0})});
    const std::string length = to.number(size);
    if (start.known && step == 1 && !numbers.data_vary) {
      const std::string stop = to.add("Add", {from, length});
      x = to.add("Slice", {x, from, stop, to.integers({axis})});
    } else {
      const std::string steps = to.add("Mul", {to.count_to(length), to.integers({step})});
      // An import that knew the places would refuse those outside of the axis. Where the length and
      // the axis are two symbols, it looks at extents that never occur together. So a 0 that is
      // computed at run time is added to all of them.
      const std::string zero = to.add("Min", {size, to.integers({0})});
      x = to.gather(x, to.add("Add", {steps, to.add("Add", {from, zero})}), axis);
    }
  }
  return to.finish(node, x);
}

// ceil((limit - start) / delta), at least 0.
Result<NodeList> expand_range(const onnx::NodeProto& node, const RunTimeNumbers& numbers) {
  NodeWriter to(node);
  const std::string start = to.element(numbers.elements[0]);
  const std::string limit = to.element(numbers.elements[1]);
  const std::string delta = to.element(numbers.elements[2]);
  // In float64, which is exact for the integers that an extent may be.
  const auto real = [&](const std::string& x) { return to.cast(x, onnx::TensorProto::DOUBLE); };
  const std::string way = to.add("Sub", {real(limit), real(start)});
  const std::string steps = to.add("Ceil", {to.add("Div", {way, real(delta)})});
  const std::string length = to.number(to.add("Max", {to.integer_of(steps), to.integers({0})}));
  const std::string counted = to.add("CastLike", {to.count_to(length), delta});
  return to.finish(node, to.add("Add", {to.add("Mul", {counted, delta}), start}));
}

// An input that is a list of extents.
Result<NodeList> expand_shape(const onnx::NodeProto& node, const RunTimeNumbers& numbers) {
  NodeWriter to(node);
  const int at = number_inputs(node.op_type())->first;
  std::vector<std::string> extents;
  for (const RunTimeNumbers::Element& element : numbers.elements)
    extents.push_back(to.number(to.integer_of(to.element(element))));
  std::vector<std::string> inputs(node.input().begin(), node.input().end());
  inputs[static_cast<size_t>(at)] = to.add("Concat", extents, "axis", 0);
  if (node.op_type() == "OneHot")
    inputs[static_cast<size_t>(at)] = to.add("Reshape", {extents[0], to.integers({})});
  return to.finish(node, to.copy(node, inputs));
}

/// Along one axis of a Resize: for each place of the output, where in the input it is.
class ResizedAxis {
 public:
  ResizedAxis(NodeWriter& to, const onnx::NodeProto& node, int64_t axis, int64_t rank)
      : to_(to), node_(node), axis_(axis), rank_(rank) {}

  Result<std::string> resize(const std::string& x, const RunTimeNumbers::Element& by, bool sizes) {
    extent_ = to_.real_of(to_.extent_of(x, axis_));
    last_ = to_.add("Sub", {extent_, to_.real(1)});
    // The places are computed at run time from this element: they are no numbers in the code.
    const std::string element = to_.element(by);
    std::string size, scale;
    if (sizes) {
      size = to_.integer_of(element);
      scale = divide(to_.real_of(size), extent_);
    } else {
      scale = to_.real_of(element);
      size = to_.integer_of(to_.add("Floor", {to_.add("Mul", {extent_, scale})}));
    }
    const std::string length = to_.number(size);
    TRY_ASSIGN(const std::string place, place_of(length, size, scale));
    const std::string mode = text(node_, "mode", "nearest");
    if (mode == "nearest") return nearest(x, place);
    return mode == "linear" ? linear(x, place) : cubic(x, place);
  }

 private:
  /// To the last digit: at a tie it decides which neighbour is taken.
  std::string divide(const std::string& a, const std::string& b) {
    return to_.add("Div", {a, b}, "exact", 1);
  }

  Result<std::string> place_of(const std::string& length,
                               const std::string& size,
                               const std::string& scale) {
    const std::string counted = to_.real_of(to_.count_to(length));
    const std::string half = to_.real(0.5);
    const std::string mode = text(node_, "coordinate_transformation_mode", "half_pixel");
    if (mode == "asymmetric") return divide(counted, scale);
    if (mode == "align_corners") {
      const std::string behind = to_.add("Sub", {to_.real_of(size), to_.real(1)});
      const std::string steps = to_.add("Max", {behind, to_.real(1)});
      return divide(to_.add("Mul", {counted, last_}), steps);
    }
    const std::string middle = divide(to_.add("Add", {counted, half}), scale);
    const std::string place = to_.add("Sub", {middle, half});
    if (mode == "half_pixel") return place;
    if (mode != "pytorch_half_pixel")
      return Error("coordinate_transformation_mode ", mode, " to sizes of the run time");
    const std::string one = to_.add("Equal", {size, to_.integers({1})});
    return to_.add("Where", {one, to_.real(0), place});
  }

  std::string at(const std::string& x, const std::string& place) {
    const std::string inside = to_.clamp(place, to_.real(0), last_);
    return to_.gather(x, to_.integer_of(inside), axis_);
  }

  /// A factor for each place of the axis, of the type of `x`.
  std::string weighted(const std::string& x, const std::string& factor) {
    std::vector<int64_t> shape(static_cast<size_t>(rank_ - axis_), 1);
    shape[0] = -1;
    const std::string of_axis = to_.add("Reshape", {factor, to_.integers(shape)});
    return to_.add("Mul", {x, to_.add("CastLike", {of_axis, x})});
  }

  std::string nearest(const std::string& x, const std::string& place) {
    const std::string mode = text(node_, "nearest_mode", "round_prefer_floor");
    const std::string half = to_.real(0.5);
    if (mode == "floor") return at(x, to_.add("Floor", {place}));
    if (mode == "ceil") return at(x, to_.add("Ceil", {place}));
    if (mode == "round_prefer_ceil")
      return at(x, to_.add("Floor", {to_.add("Add", {place, half})}));
    return at(x, to_.add("Ceil", {to_.add("Sub", {place, half})}));
  }

  std::string linear(const std::string& x, const std::string& place) {
    const std::string inside = to_.clamp(place, to_.real(0), last_);
    const std::string before = to_.add("Floor", {inside});
    const std::string behind = to_.add("Add", {before, to_.real(1)});
    const std::string share = to_.add("Sub", {inside, before});
    const std::string rest = to_.add("Sub", {to_.real(1), share});
    return to_.add("Add", {weighted(at(x, before), rest), weighted(at(x, behind), share)});
  }

  // Keys' cubic convolution, whose factors are polynomials of the distance.
  std::string cubic(const std::string& x, const std::string& place) {
    const onnx::AttributeProto* given = written_attribute(node_, "cubic_coeff_a");
    const float a = given == nullptr ? -0.75F : given->f();
    const std::string before = to_.add("Floor", {place});
    const std::string distance = to_.add("Sub", {place, before});
    std::string sum;
    for (int tap = -1; tap <= 2; ++tap) {
      const std::string offset = to_.real(static_cast<float>(tap));
      const std::string off = to_.add("Abs", {to_.add("Sub", {distance, offset})});
      const std::string factor = tap == 0 || tap == 1 ? polynomial(off, {a + 2, -(a + 3), 0, 1})
                                                      : polynomial(off, {a, -5 * a, 8 * a, -4 * a});
      const std::string term = weighted(at(x, to_.add("Add", {before, offset})), factor);
      sum = sum.empty() ? term : to_.add("Add", {sum, term});
    }
    return sum;
  }

  std::string polynomial(const std::string& x, const std::array<float, 4>& factors) {
    std::string value = to_.real(factors[0]);
    for (size_t i = 1; i < factors.size(); ++i)
      value = to_.add("Add", {to_.add("Mul", {value, x}), to_.real(factors[i])});
    return value;
  }

  NodeWriter& to_;
  const onnx::NodeProto& node_;
  int64_t axis_, rank_;
  std::string extent_, last_;  // the input's, float32
};

Result<NodeList> expand_resize(const onnx::NodeProto& node, const RunTimeNumbers& numbers) {
  if (is_set(node, "antialias") || is_set(node, "exclude_outside") ||
      text(node, "keep_aspect_ratio_policy", "stretch") != "stretch")
    return Error("Resize to sizes of the run time with antialias, exclude_outside or a kept ratio");
  NodeWriter to(node);
  const bool sizes = node.input_size() > 3 && !node.input(3).empty();
  // First to what is known, along the other axes.
  const auto& elements = numbers.elements;
  std::string x = node.input(0);
  if (std::ranges::any_of(elements, &RunTimeNumbers::Element::known)) {
    std::vector<std::string> list;
    for (size_t i = 0; i < elements.size(); ++i) {
      const std::string kept = sizes ? to.extent_of(x, numbers.axes[i]) : to.real(1);
      list.push_back(elements[i].known ? to.element(elements[i])
                                       : to.add("Reshape", {kept, to.integers({1})}));
    }
    const std::string by = to.add("Concat", list, "axis", 0);
    x = to.copy(
        node, sizes ? std::vector<std::string>{x, "", "", by} : std::vector{x, std::string(), by});
  }
  for (size_t i = 0; i < elements.size(); ++i) {
    if (elements[i].known) continue;
    TRY_ASSIGN(x,
               ResizedAxis(to, node, numbers.axes[i], numbers.rank).resize(x, elements[i], sizes));
  }
  return to.finish(node, x);
}

}  // namespace

const NumberInputs* number_inputs(std::string_view op) {
  const auto row = std::ranges::find(kNumberInputs, op, &NumberInputs::op);
  return row == std::end(kNumberInputs) ? nullptr : row;
}

Result<NodeList> expand_node(const onnx::NodeProto& node, const RunTimeNumbers& numbers) {
  if (node.op_type() == "Slice") return expand_slice(node, numbers);
  if (node.op_type() == "Range") return expand_range(node, numbers);
  if (node.op_type() == "Resize") return expand_resize(node, numbers);
  if (node.op_type() == "Loop") return expand_loop(node, numbers);
  return expand_shape(node, numbers);
}

Result<NodeList> expand_nodes(const NodeList& nodes,
                              const std::map<std::string, RunTimeNumbers>& expanded) {
  NodeList all;
  for (const onnx::NodeProto& node : nodes) {
    const auto numbers = expanded.find(first_output(node));
    if (numbers == expanded.end() || numbers->second.op != node.op_type()) {
      *all.Add() = node;
      continue;
    }
    TRY_ASSIGN(const NodeList list, expand_node(node, numbers->second));
    // The body of a loop has such nodes, too.
    TRY_ASSIGN(NodeList inner, expand_nodes(list, expanded));
    for (onnx::NodeProto& one : inner) all.Add(std::move(one));
  }
  return all;
}

}  // namespace pruner
