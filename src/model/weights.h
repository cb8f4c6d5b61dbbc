// The weights of a learned model as plain data, from and to files. What load_weights gives fits its
// architecture: every tensor there, of its shape, and every number finite.
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

/// Of the numbers in ProgramFeatures; weights for others are refused. Older ones, and the published
/// ones, get columns of zeros for what they know nothing of, and a file of weights whose last
/// columns are zeros is of the oldest version that has the others.
inline constexpr int kFeatureVersion = 3;

struct OlderFeatures {
  int version, columns;  // of the statements
};
/// Nothing of units; nothing of a GPU's.
inline constexpr OlderFeatures kOlderFeatures[] = {{1, kPublishedRowFeatures},
                                                   {2, kPublishedRowFeatures + kUnitFeatures}};

struct ModelWeights {
  const Architecture* architecture = nullptr;  // none until they are read or made
  std::string mode = "base_only";              // how they were trained, in TenSet's words
  FeatureScales scale = {};                    // empty for inputs that it does not read
  Tensors tensors = {};                        // under the names of the published checkpoints
  std::optional<TrainedOn> trained_on = {};    // unknown of published checkpoints

  PrimitiveForm form = kCpuPrimitives;  // that it reads, if any
  /// Names of the platforms that have a decoder each (MTL-TLP), the last kOtherPlatform; empty: one
  /// decoder serves all.
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
  /// What torch starts from: numbers drawn within `bound` of 0, or all `fill` where that is 0.
  double bound = 0;
  float fill = 0;
  int64_t drawn = 0;  // columns from the first that are drawn, the others being 0; 0: all

  size_t element_count() const;
};

/// The tensors of a network, linear layers as (out, in), in the order of its modules.
std::vector<WeightSpec> tensor_specs(const ModelWeights& weights);

/// Where a head has its tensors: "decoder", or "decoder.NAME" among several.
std::string head_module(const ModelWeights& weights, size_t head);
/// The head of a platform: of its name, else the other platforms'; 0 where one serves all.
size_t head_of(const ModelWeights& weights, std::string_view platform);

/// Gives weights whose statements are those of an older version the other columns, of zeros; leaves
/// others as they are. Errors are of their scales.
Result<Unit> add_unit_columns(ModelWeights& weights);
/// The weights without these columns, as the published ones are.
ModelWeights without_units(ModelWeights weights);

/// Errors name the tensor, what was expected and what was found.
Result<Unit> check_weights(const ModelWeights& weights);

/// Reads what save_weights wrote, or a published checkpoint: the .pkl of (network, mode, scales),
/// or the .pth of tensors alone, whose scales stand beside it in NAME.scales.json or
/// feature_scales.json. The content decides, not the name; kShippedWeights are the program's own.
/// Errors name the file.
Result<ModelWeights> load_weights(const std::string& path);
/// The same; an error if they are of another architecture.
Result<ModelWeights> load_weights(const std::string& path, const Architecture& expected);

/// Whether save_weights can write such a file under this name.
Result<Unit> check_weights_file(const std::string& path, const Architecture& architecture);
/// Writes a safetensors file, or of a name that ends in .pkl what the published scripts load; a
/// failure leaves an old file as it was.
Result<Unit> save_weights(const std::string& path, const ModelWeights& weights);

}  // namespace pruner
