// Nodes of an ONNX graph that stand for another node of it.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "graph/onnx/model_functions.h"
#include "graph/run_time_numbers.h"

namespace pruner {

/// Returns the first of a node's outputs that has a name; empty if none has.
inline std::string first_output(const onnx::NodeProto& node) {
  for (const std::string& name : node.output())
    if (!name.empty()) return name;
  return "";
}

/// Writes nodes. Each function that adds a node returns the name of the node's one output.
class NodeWriter {
 public:
  explicit NodeWriter(const onnx::NodeProto& node) : prefix_(first_output(node) + "~") {}

  /// Returns the start of the names of all nodes that are made.
  const std::string& prefix() const { return prefix_; }

  std::string add(const std::string& op, const std::vector<std::string>& inputs) {
    onnx::NodeProto& node = *nodes_.Add();
    node.set_op_type(op);
    node.set_name(prefix_ + op + std::to_string(nodes_.size()));
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(node.name());
    return node.name();
  }
  std::string add(const std::string& op,
                  const std::vector<std::string>& inputs,
                  const std::string& attribute,
                  int64_t value) {
    const std::string output = add(op, inputs);
    onnx::AttributeProto& given = *last().add_attribute();
    given.set_name(attribute);
    given.set_type(onnx::AttributeProto::INT);
    given.set_i(value);
    return output;
  }
  /// Adds a copy of a node with other inputs.
  std::string copy(const onnx::NodeProto& of, const std::vector<std::string>& inputs) {
    const std::string output = add(of.op_type(), inputs);
    onnx::NodeProto& node = last();
    *node.mutable_attribute() = of.attribute();
    node.set_domain(of.domain());
    return output;
  }

  onnx::NodeProto& last() { return *(nodes_.end() - 1); }
  /// Gives the last node an attribute.
  void set_text(const std::string& name, const std::string& value) {
    onnx::AttributeProto& given = *last().add_attribute();
    given.set_name(name);
    given.set_type(onnx::AttributeProto::STRING);
    given.set_s(value);
  }

  /// Adds a node as it is given.
  void add(onnx::NodeProto node) { *nodes_.Add() = std::move(node); }
  /// Adds a node with an operator of ours.
  void add_own(const std::string& op,
               const std::vector<std::string>& inputs,
               const std::vector<std::string>& outputs) {
    add(op, inputs);
    last().set_domain("pruner");
    last().clear_output();
    for (const std::string& output : outputs) last().add_output(output);
  }

  std::string integers(const std::vector<int64_t>& values) { return list(values, true); }
  std::string integer(int64_t value) { return list({value}, false); }
  std::string real(float value) {
    onnx::TensorProto tensor;
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.add_float_data(value);
    return constant(tensor);
  }
  std::string cast(const std::string& x, onnx::TensorProto::DataType to) {
    return add("Cast", {x}, "to", to);
  }
  std::string real_of(const std::string& x) { return cast(x, onnx::TensorProto::FLOAT); }
  std::string integer_of(const std::string& x) { return cast(x, onnx::TensorProto::INT64); }
  std::string gather(const std::string& x, const std::string& places, int64_t axis) {
    return add("Gather", {x, places}, "axis", axis);
  }
  std::string clamp(const std::string& x, const std::string& least, const std::string& most) {
    return add("Min", {add("Max", {x, least}), most});
  }

  /// Returns the element, as a tensor of one element.
  std::string element(const RunTimeNumbers::Element& of) {
    const std::string flat = add("Reshape", {of.value, integers({-1})});
    return gather(flat, integers({of.index}), 0);
  }
  /// Returns the number `x` of one element, int64, as an extent. `own`: the extent is a symbol of
  /// its own, even if the number follows from other extents.
  std::string number(const std::string& x, bool own = false) {
    const std::string output = add("Number", {x}, "own", own ? 1 : 0);
    last().set_domain("pruner");
    return output;
  }
  std::string constant(const onnx::TensorProto& tensor) {
    const std::string output = add("Constant", {});
    onnx::AttributeProto& given = *last().add_attribute();
    given.set_name("value");
    given.set_type(onnx::AttributeProto::TENSOR);
    *given.mutable_t() = tensor;
    return output;
  }
  std::string extent_of(const std::string& x, int64_t axis) {
    return gather(add("Shape", {x}), integers({axis}), 0);
  }
  /// Returns 0, 1, ... below a number of one element.
  std::string count_to(const std::string& number) {
    return add("Range", {integer(0), add("Reshape", {number, integers({})}), integer(1)});
  }

  /// Returns the nodes; `last` becomes the output of `node`.
  NodeList finish(const onnx::NodeProto& node, const std::string& last) {
    onnx::NodeProto& named = *nodes_.Add();
    named.set_op_type("Identity");
    named.set_name(node.name());
    named.add_input(last);
    named.add_output(node.output(0));
    return take();
  }
  NodeList take() { return std::move(nodes_); }

 private:
  std::string list(const std::vector<int64_t>& values, bool has_axis) {
    onnx::TensorProto tensor;
    tensor.set_data_type(onnx::TensorProto::INT64);
    if (has_axis) tensor.add_dims(static_cast<int64_t>(values.size()));
    for (const int64_t value : values) tensor.add_int64_data(value);
    return constant(tensor);
  }

  std::string prefix_;
  NodeList nodes_;
};

}  // namespace pruner
