// Nodes that are no operators on tensors: they choose, repeat or call a graph, or keep tensors in
// sequences and optionals. None of it is left when a model has been read: each stands for nodes of
// other operators, or for none.
#pragma once

#include "graph/onnx/importer.h"

namespace pruner {

/// Such a node, with what its inputs stand for. Errors name the node.
struct ConstructCall {
  Importer& importer;
  const onnx::NodeProto& proto;
  const NameScope& scope;
  std::string name;  // after which what it makes is named
  std::vector<Entry> inputs;

  bool has(size_t i) const;
  Result<ValueId> tensor(size_t i) const;
  Result<std::vector<ValueId>> sequence(size_t i) const;
  /// The element of an integer or bool tensor that is known now; `what` says what it is.
  Result<int64_t> known(ValueId id, const char* what) const;
  Result<std::vector<int64_t>> known_integers(ValueId id, const char* what) const;
  const Value& value(ValueId id) const { return importer.graph()[id]; }

  int64_t integer(const char* attribute, int64_t fallback) const;
  std::vector<int64_t> integers(const char* attribute) const;
  /// The graph of an attribute, and where it was written.
  Result<std::pair<const onnx::GraphProto*, const NameScope*>> graph(const char* attribute) const;

  Error error(const auto&... parts) const { return Error("node \"", name, "\": ", parts...); }
};

using Outputs = Result<std::vector<Entry>>;

struct Construct {
  std::string_view op;
  Outputs (*add)(const ConstructCall& call);
};

/// Null where the operator is none.
const Construct* find_construct(std::string_view op);

std::span<const Construct> control_flow();
std::span<const Construct> sequences();
std::span<const Construct> numbers();

}  // namespace pruner
