// The meaning of the names in a model's graphs while the model is read, and their lookup.
#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "graph/graph.h"

namespace pruner {

/// A tensor, or the tensors of a sequence: how many they are is known when the model is read. An
/// optional input or value that is left out is an invalid id.
using Entry = std::variant<ValueId, std::vector<ValueId>>;

inline bool is_sequence(const Entry& entry) {
  return std::holds_alternative<std::vector<ValueId>>(entry);
}

struct NameScope;

/// An attribute with the scope in which it was written, where a graph in it finds its names.
struct BoundAttribute {
  const onnx::AttributeProto* proto = nullptr;
  const NameScope* scope = nullptr;
};

/// The main graph, or one call of a function of the model's own.
struct CallFrame {
  int64_t opset = 1;                                 // version of the standard operators
  std::map<std::string, BoundAttribute> attributes;  // attributes that ref_attr_name refers to
};

/// The names of one graph; those that it lacks are looked up in the graph around it.
struct NameScope {
  const CallFrame* frame = nullptr;
  const NameScope* outer = nullptr;
  std::string prefix;  // start of the names of all that is made: "layer1/loop/3/"
  int depth = 0;       // graphs and calls around the scope
  std::map<std::string, Entry> names = {};
  std::set<std::string> read = {};  // names that the scope's nodes read, if a part is imported

  /// Returns null if nothing has the name.
  const Entry* find(const std::string& name) const {
    for (const NameScope* scope = this; scope != nullptr; scope = scope->outer) {
      if (const auto it = scope->names.find(name); it != scope->names.end()) return &it->second;
    }
    return nullptr;
  }
};

/// Returns the names of a graph's inputs, outputs and the like.
std::vector<std::string> names_in(const auto& values) {
  std::vector<std::string> names;
  for (const auto& value : values) names.push_back(value.name());
  return names;
}

/// Returns a node's name, or an unnamed node's first output or operator. The names of all that a
/// graph in the node, or a call, makes begin with this name.
inline std::string inner_name(const onnx::NodeProto& node) {
  if (!node.name().empty()) return node.name();
  return node.output_size() > 0 ? node.output(0) : node.op_type();
}

/// Returns a node's attribute as it is written; null: the node has none of the name.
inline const onnx::AttributeProto* written_attribute(const onnx::NodeProto& node,
                                                     const std::string& name) {
  for (const onnx::AttributeProto& attribute : node.attribute())
    if (attribute.name() == name) return &attribute;
  return nullptr;
}
/// Returns a node's attribute, or the value that the call of its function gave for the attribute;
/// no proto if there is none.
BoundAttribute find_attribute(const onnx::NodeProto& node,
                              const std::string& name,
                              const NameScope& scope);
/// Returns the same for an attribute of the node.
BoundAttribute bound(const onnx::AttributeProto& attribute, const NameScope& scope);

}  // namespace pruner
