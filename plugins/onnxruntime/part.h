// The parts of a graph that Pruner takes, and the ONNX files of them.
#pragma once

#include "onnxruntime/graph_text.h"

namespace pruner::ort {

/// What the names of open dimensions stand for.
using Dims = std::map<std::string, int64_t>;

struct NamedType {
  std::string name;
  TensorType type;
};

/// Nodes that run as one: a list of them, with what they read and make.
struct Part {
  std::vector<int> nodes;  // of the graph
  std::vector<NamedType> inputs, outputs;
  std::vector<std::string> constants;

  bool is_static() const;
};

/// Parts of the nodes for which `taken` is true. None of them lies on a path from one node of
/// another part to another, so that each can be one node.
std::vector<Part> cut(const GraphText& graph, const std::vector<bool>& taken);

/// `given`, and a guess for each other name of an open dimension of the graph's inputs.
Dims with_guesses(const GraphText& graph, Dims given);
/// The shape with open dimensions filled in; those that `dims` lacks are -1.
std::vector<int64_t> filled(const TensorType& type, const Dims& dims);
/// The same, and a guess for those.
std::vector<int64_t> guessed(const TensorType& type, const Dims& dims);

/// The ONNX model of a part without its inputs. Constants of more than a few bytes are said to lie
/// in the file `weights` beside it.
std::string onnx_of(const GraphText& graph, const Part& part, const std::string& weights);
/// What follows it: the inputs with their shapes, since protobuf joins what is said twice. An
/// extent of -1 has the name of its dimension.
std::string onnx_of(const std::vector<NamedType>& inputs,
                    const std::vector<std::vector<int64_t>>& shapes);
/// The model of a whole graph, with the types of all its values; inputs have no open dimensions.
std::string onnx_of(const GraphText& graph, const Dims& dims, const std::string& weights);

/// Writes the constants of a part where onnx_of() says that they are.
Result<Unit> write_weights(const GraphText& graph,
                           const std::vector<std::string>& constants,
                           const std::string& path);
/// A file of that size without contents, for the whole graph.
Result<Unit> reserve_weights(const GraphText& graph, const std::string& path);

}  // namespace pruner::ort
