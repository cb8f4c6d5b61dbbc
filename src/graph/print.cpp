#include <sstream>

#include "graph/graph.h"
#include "support/match.h"

namespace pruner {

std::string print_shape(std::span<const int64_t> shape) {
  if (shape.empty()) return "scalar";
  std::ostringstream out;
  for (size_t d = 0; d < shape.size(); ++d) out << (d == 0 ? "" : "x") << shape[d];
  return out.str();
}

template <typename T>
static void print_list(std::ostream& out, const std::vector<T>& values) {
  out << "[";
  for (size_t i = 0; i < values.size(); ++i) out << (i == 0 ? "" : ", ") << values[i];
  out << "]";
}

static void print_attribute(std::ostream& out, const Attribute& attribute) {
  match(
      attribute,
      [&](int64_t v) { out << v; },
      [&](double v) { out << v; },
      [&](const std::string& v) { out << '"' << v << '"'; },
      [&](const std::vector<int64_t>& v) { print_list(out, v); },
      [&](const std::vector<double>& v) { print_list(out, v); },
      [&](const Tensor& v) { out << dtype_name(v.dtype()) << " " << print_shape(v.shape()); },
      [&](const std::vector<std::string>& v) { print_list(out, v); });
}

static std::string print_type(const Value& value) {
  return std::string(dtype_name(value.dtype)) + " " + print_shape(value.shape);
}

// A small constant by its value: what a shape or an axis is matters more than its name.
static std::string print_operand(const Graph& graph, ValueId id) {
  if (!id.valid()) return "-";
  const Value& value = graph[id];
  if (!value.constant) return value.name;
  if (value.constant->num_elements() > 4) return "const " + print_shape(value.shape);
  std::ostringstream out;
  std::vector<double> elements;
  for (int64_t i = 0; i < value.constant->num_elements(); ++i) {
    elements.push_back(value.constant->get(i));
  }
  print_list(out, elements);
  return out.str();
}

std::string print(const Attributes& attributes) {
  std::ostringstream out;
  for (const auto& [name, attribute] : attributes) {
    out << " " << name << "=";
    print_attribute(out, attribute);
  }
  return out.str();
}

std::string print(const Graph& graph) {
  std::ostringstream out;
  out << "graph " << graph.name << "\n";
  for (const ValueId id : graph.inputs) {
    out << "input " << graph[id].name << ": " << print_type(graph[id]) << "\n";
  }
  for (const Node& node : graph.nodes) {
    if (node.group >= 0) out << "[" << node.group << "] ";
    if (node.in_place) out << "[in place] ";
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const Value& value = graph[node.outputs[i]];
      out << (i == 0 ? "" : ", ") << value.name << ": " << print_type(value);
    }
    out << " = " << node.op;
    if (node.first_output > 0) out << "." << node.first_output;
    out << "(";
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      out << (i == 0 ? "" : ", ") << print_operand(graph, node.inputs[i]);
    }
    out << ")";
    out << print(node.attributes) << "\n";
  }
  out << "outputs";
  for (const ValueId id : graph.outputs) out << " " << graph[id].name;
  out << "\n";
  return out.str();
}

}  // namespace pruner
