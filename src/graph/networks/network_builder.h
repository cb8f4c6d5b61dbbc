// Writes a network down layer by layer, in ONNX's operators and order of dimensions, with weights
// drawn from a seed so that activations keep their size from layer to layer.
#pragma once

#include "graph/evaluate.h"
#include "graph/partition.h"
#include "support/rng.h"

namespace pruner {

enum class Nonlinearity : uint8_t {
  kNone,
  kRelu,
  kRelu6,
  kSilu,
  kHardSwish,
  kSigmoid,
  kHardSigmoid  // x / 6 + 1 / 2 between 0 and 1, as torch has it
};

/// A convolution of images with square strides.
struct ConvLayer {
  int64_t channels = 0, kernel = 1;
  int64_t kernel_w = 0;  // width of the kernel, whose height is `kernel`; 0: same as the height
  int64_t stride = 1, groups = 1, dilation = 1;
  int64_t padding = -1;  // padding on each side; -1: half the kernel's reach, which keeps the size
  bool bias = false;
  Nonlinearity then = Nonlinearity::kNone;
  double gain = 0;        // factor of the weight's variance; 0: keeps the size through `then`
  double norm_scale = 1;  // about the scale of the batch norm, if there is one
  double epsilon = 1e-5;  // epsilon of the batch norm
};

class NetworkBuilder {
 public:
  /// Without `draw_weights`, random() makes inputs of the network instead of constants.
  explicit NetworkBuilder(std::string name, bool draw_weights = true);
  NetworkBuilder(std::string name, const NetworkOptions& options)
      : NetworkBuilder(std::move(name), !options.weights_as_inputs) {
    share(options.cache);
  }

  ValueId input(const std::string& name, std::vector<int64_t> shape, DType dtype);
  /// Adds the input "input", batch x 3 x size x size.
  ValueId image(const NetworkOptions& options);
  /// Adds a float32 input that an instance keeps from run to run. In the next run the input has the
  /// value of `next`, an output.
  ValueId state(const std::string& name, std::vector<int64_t> shape);
  void next_state(ValueId state, ValueId next, const std::string& name);
  /// Adds a node with one output.
  ValueId node(const std::string& op,
               std::vector<ValueId> inputs,
               std::map<std::string, Attribute> attributes = {});
  ValueId constant(const std::string& name, Tensor tensor);
  ValueId scalar(double value);
  ValueId integers(const std::string& name, std::vector<int64_t> values);
  /// Adds values drawn uniformly around `mean`, at most `spread` away.
  ValueId random(const std::string& name, std::vector<int64_t> shape, double mean, double spread);
  /// Adds uniform values with mean 0 and variance gain / fan_in; gain 2 keeps the size through a
  /// relu.
  ValueId weight(const std::string& name, std::vector<int64_t> shape, int64_t fan_in, double gain);

  ValueId activation(ValueId x, Nonlinearity kind);
  ValueId relu(ValueId x) { return activation(x, Nonlinearity::kRelu); }
  /// Adds a Conv and a nonlinearity.
  ValueId conv(const std::string& name, ValueId x, const ConvLayer& layer);
  /// Adds a BatchNormalization scaled by about `scale`.
  ValueId norm(const std::string& name, ValueId x, double scale = 1, double epsilon = 1e-5);
  /// Adds a Conv, a batch norm and a nonlinearity.
  ValueId conv_norm(const std::string& name, ValueId x, const ConvLayer& layer);
  /// Pools windows of `kernel` x `kernel`; with `ceil` a last window that is cut off counts.
  ValueId max_pool(
      ValueId x, int64_t kernel, int64_t stride, int64_t padding = 0, bool ceil = false);
  /// The padding counts in the average, as in torch.
  ValueId average_pool(ValueId x, int64_t kernel, int64_t stride, int64_t padding = 0);
  /// Resizes bilinearly; without `align_corners`, pixels are areas whose borders agree.
  ValueId resize(ValueId x, int64_t height, int64_t width, bool align_corners);
  ValueId concat(std::vector<ValueId> parts, int64_t axis = 1);
  /// Adds a fully connected layer of [n, features] with bias.
  ValueId dense(const std::string& name, ValueId x, int64_t out, double gain = 1);
  ValueId flatten(ValueId x);
  /// Adds a global average pool, a flatten and a dense layer.
  ValueId classifier(const std::string& name, ValueId x, int64_t classes);

  const std::vector<int64_t>& shape(ValueId id) const { return graph_[id].shape; }
  Graph finish(std::vector<std::pair<ValueId, std::string>> outputs);

 private:
  void share(std::shared_ptr<ImportCache> cache);
  ValueId add_value(Value value);
  ValueId convolve(const std::string& name, ValueId x, const ConvLayer& layer);

  Graph graph_;
  std::vector<std::pair<ValueId, std::string>> state_outputs_;  // outputs behind the others
  std::vector<int> state_inputs_;                               // number of the input of each state
  Rng rng_;
  bool draw_weights_;
  std::shared_ptr<ImportCache> cache_;  // null: weights are drawn for this network alone
};

}  // namespace pruner
