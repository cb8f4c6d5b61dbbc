// The weights of a learned model as plain data, from and to files. Weights that load_weights()
// returns fit their architecture: every tensor is there with its shape, and every number is finite.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/architecture.h"
#include "model/nn/tokens.h"
#include "model/trained_on.h"
#include "support/result.h"

namespace pruner {

/// Dense, row-major.
struct WeightTensor {
  std::vector<int64_t> shape;
  std::vector<float> values;
  friend bool operator==(const WeightTensor&, const WeightTensor&) = default;
};

using Tensors = std::map<std::string, WeightTensor, std::less<>>;

/// `kFeatureVersion` is the version of the numbers in ProgramFeatures. Published weights, and
/// weights in kOlderFeatures, get columns of zeros for missing features; other weights are refused.
/// A file whose last columns are zeros has the oldest version with the other columns.
inline constexpr int kFeatureVersion = 4;

struct OlderFeatures {
  int version, columns;  // feature version, columns of a statement row
};
/// Version 1 has no features of units, version 2 none of a GPU's units, version 3 none of groups of
/// warps.
inline constexpr OlderFeatures kOlderFeatures[] = {
    {1, kPublishedRowFeatures},
    {2, kPublishedRowFeatures + kUnitFeatures},
    {3, kPublishedRowFeatures + kUnitFeatures + kWarpFeatures}};

struct ModelWeights {
  const Architecture* architecture = nullptr;  // null until the weights are read or made
  std::string mode = "base_only";              // how they were trained, in TenSet's words
  FeatureScales scale = {};                    // empty for inputs that the network does not read
  Tensors tensors = {};                        // under the names of the published checkpoints
  std::optional<TrainedOn> trained_on = {};    // unknown of published checkpoints

  PrimitiveForm form = kCpuPrimitives;  // form of the primitives, if the network reads them
  /// `heads` names the platforms that have a decoder each (MTL-TLP), the last kOtherPlatform;
  /// empty: one decoder serves all platforms.
  std::vector<std::string> heads = {};

  friend bool operator==(const ModelWeights&, const ModelWeights&) = default;
};

/// A first layer, whose input is divided by a scale.
struct ScaledLayer {
  Input input;
  std::vector<float>& scale;
  WeightTensor &weight, &bias;
};
std::vector<ScaledLayer> scaled_layers(ModelWeights& weights);

/// The head that learns from every platform's programs; it scores for a platform without a head.
inline constexpr const char* kOtherPlatform = "other";

struct WeightSpec {
  std::string name;
  std::vector<int64_t> shape;
  /// Torch starts from numbers drawn within `bound` of 0; if `bound` is 0, all numbers are `fill`.
  double bound = 0;
  float fill = 0;
  int64_t drawn = 0;  // columns from the first that are drawn, the others being 0; 0: all

  size_t element_count() const;
};

/// Returns the tensors of a network, linear layers as (out, in), in the order of its modules.
std::vector<WeightSpec> tensor_specs(const ModelWeights& weights);

/// Returns the module of a head's tensors: "decoder", or "decoder.NAME" if there are several heads.
std::string head_module(const ModelWeights& weights, size_t head);
/// Returns the head with the platform's name, else the other platforms' head; 0 without heads.
size_t head_of(const ModelWeights& weights, std::string_view platform);

/// Adds columns of zeros to weights whose statements have an older version; leaves other weights as
/// they are. Errors name the scales that do not fit.
Result<Unit> add_unit_columns(ModelWeights& weights);
/// Returns the weights without the added columns, like the published weights.
ModelWeights without_units(ModelWeights weights);

/// Errors name the tensor, what was expected and what was found.
Result<Unit> check_weights(const ModelWeights& weights);

/// Reads what save_weights wrote, or a published checkpoint: the .pkl of (network, mode, scales),
/// or the .pth of tensors alone, whose scales stand beside it in NAME.scales.json or
/// feature_scales.json. The content decides, not the name; kShippedWeights are the program's own.
/// Errors name the file.
Result<ModelWeights> load_weights(const std::string& path);
/// Reads weights like load_weights(path); an error if the architecture is not the expected one.
Result<ModelWeights> load_weights(const std::string& path, const Architecture& expected);

/// Returns an error if save_weights() cannot write weights of the architecture under this name.
Result<Unit> check_weights_file(const std::string& path, const Architecture& architecture);
/// Writes a safetensors file, or a pickle that the published scripts load if the name ends in .pkl.
/// A failure leaves an old file as it was.
Result<Unit> save_weights(const std::string& path, const ModelWeights& weights);

}  // namespace pruner
