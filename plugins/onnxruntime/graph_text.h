// ONNX Runtime's graph as plain data, of which parts can be written as ONNX files.
#pragma once

#include <map>
#include <set>

#include "onnxruntime/calls.h"
#include "onnxruntime/wire.h"

namespace pruner::ort {

/// Holds the known facts about a tensor. Element types are numbered as in ONNX; 0: no tensor.
struct TensorType {
  int element_type = 0;
  bool ranked = false;
  std::vector<int64_t> shape;          // -1: an extent that is not known
  std::vector<std::string> dim_names;  // names of the extents; "": an extent has none
};

/// Holds a constant, which lies in ONNX Runtime's memory.
struct Constant {
  TensorType type;
  const void* data = nullptr;
  size_t bytes = 0;
};

struct NodeText {
  const Node* node = nullptr;
  std::string name, op, domain;
  std::vector<std::string> inputs, outputs;  // "": left out
  std::vector<std::string> captured;         // read by graphs within it
  Message message;                           // NodeProto, without those graphs
};

struct GraphText {
  std::vector<NodeText> nodes;  // producers first
  std::map<std::string, TensorType> types;
  std::map<std::string, Constant> constants;
  std::set<std::string> initializers;        // constants of any type, and values of inputs
  std::set<std::string> defaults;            // initializers that a run may give another value
  std::vector<std::string> inputs, outputs;  // constants are no inputs
  std::vector<std::pair<std::string, int64_t>> opsets;
  int64_t ir_version = 0;
};

/// Reads a graph, which has to outlive the constants.
Result<GraphText> read_graph(const Calls& ort, const Graph* graph);
/// Return a node's attribute that is a text or a number; an error if it has none of that name.
Result<std::string> read_text(const Calls& ort, const Node* node, const char* name);
Result<int64_t> read_number(const Calls& ort, const Node* node, const char* name);
/// Return the names that a node reads and makes; "": a name is left out.
Result<std::vector<std::string>> input_names(const Calls& ort, const Node* node);
Result<std::vector<std::string>> output_names(const Calls& ort, const Node* node);

}  // namespace pruner::ort
