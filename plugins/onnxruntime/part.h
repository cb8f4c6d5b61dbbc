// The parts of a graph that Pruner takes, and the ONNX files of them.
#pragma once

#include "onnxruntime/graph_text.h"

namespace pruner::ort {

/// `Dims` has the extents of open dimensions by their names.
using Dims = std::map<std::string, int64_t>;

struct NamedType {
  std::string name;
  TensorType type;
};

/// Holds nodes that run as one node, and the tensors that these read and make.
struct Part {
  std::vector<int> nodes;  // numbers of the graph's nodes
  std::vector<NamedType> inputs, outputs;
  std::vector<std::string> constants;

  bool is_static() const;
};

/// Returns parts of the nodes for which `taken` is true. No part lies on a path between two
/// nodes of another part, so that each part can be one node.
std::vector<Part> cut(const GraphText& graph, const std::vector<bool>& taken);

/// Returns `given`, and a guess for each other name of an open dimension of the graph's inputs.
Dims with_guesses(const GraphText& graph, Dims given);
/// Returns the shape with open dimensions filled in; those that `dims` lacks are -1.
std::vector<int64_t> filled(const TensorType& type, const Dims& dims);
/// Returns the same shape, with a guess for the dimensions that `dims` lacks.
std::vector<int64_t> guessed(const TensorType& type, const Dims& dims);

/// Returns the ONNX model of a part without its inputs. Constants of more than a few bytes lie in
/// the file `weights` beside the model.
std::string onnx_of(const GraphText& graph, const Part& part, const std::string& weights);
/// Returns the bytes behind that model: the inputs with their shapes, since protobuf joins a
/// message of two pieces. An extent of -1 has the name of its dimension.
std::string onnx_of(const std::vector<NamedType>& inputs,
                    const std::vector<std::vector<int64_t>>& shapes);
/// Returns a whole graph's model, with the types of all values; inputs have no open dimensions.
std::string onnx_of(const GraphText& graph, const Dims& dims, const std::string& weights);

/// Writes the constants of a part where onnx_of() says that they are.
Result<Unit> write_weights(const GraphText& graph,
                           const std::vector<std::string>& constants,
                           const std::string& path);
/// Makes a file of that size without contents, for the whole graph.
Result<Unit> reserve_weights(const GraphText& graph, const std::string& path);

}  // namespace pruner::ort
