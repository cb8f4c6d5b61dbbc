// Writes a network down layer by layer, in ONNX's operators and order of dimensions, with weights
// drawn from a seed so that activations keep their size from layer to layer.
#pragma once

#include "graph/evaluate.h"
#include "graph/partition.h"
#include "support/rng.h"

namespace pruner {

/// One built-in network.
struct NetworkRow {
  std::string_view name;
  Graph (*build)(const NetworkOptions&);
  bool is_image;  // reads image_size, else sequence_length
};

Graph build_bert_tiny(const NetworkOptions& options);
Graph build_mobilenet_v2(const NetworkOptions& options);
Graph build_resnet_18(const NetworkOptions& options);
Graph build_resnet_50(const NetworkOptions& options);

class NetworkBuilder {
 public:
  explicit NetworkBuilder(std::string name);

  ValueId input(const std::string& name, std::vector<int64_t> shape, DType dtype);
  /// A node with one output.
  ValueId node(const std::string& op,
               std::vector<ValueId> inputs,
               std::map<std::string, Attribute> attributes = {});
  ValueId constant(const std::string& name, Tensor tensor);
  ValueId scalar(double value);
  ValueId integers(const std::string& name, std::vector<int64_t> values);
  /// Uniform around `mean`, at most `spread` away.
  ValueId random(const std::string& name, std::vector<int64_t> shape, double mean, double spread);
  /// Uniform with mean 0 and variance gain / fan_in; gain 2 keeps the size through a relu.
  ValueId weight(const std::string& name, std::vector<int64_t> shape, int64_t fan_in, double gain);

  /// Conv without bias, then BatchNormalization scaled by about `scale`.
  struct ConvNorm {
    int64_t channels, kernel, stride = 1, groups = 1;
    double scale = 1;
    double gain = 2;
  };
  ValueId conv_norm(const std::string& name, ValueId x, const ConvNorm& conv);
  /// Global average pool, flatten, dense with bias.
  ValueId classifier(const std::string& name, ValueId x, int64_t classes);

  const std::vector<int64_t>& shape(ValueId id) const { return graph_[id].shape; }
  Graph finish(std::vector<std::pair<ValueId, std::string>> outputs);

 private:
  ValueId add_value(Value value);

  Graph graph_;
  Rng rng_;
};

}  // namespace pruner
