// The weights of a learned model as plain data, from and to files. What load_weights gives fits its
// architecture: every tensor there, of its shape, and every number finite.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/features.h"
#include "analysis/primitives.h"
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

enum class Architecture {
  kPacm,       // Pruner's Pattern-aware Cost Model
  kTenSetMlp,  // TenSet's multi-layer perceptron: statement rows only
  kTlp,        // TLP's attention over schedule primitives
};

/// "pacm", "tenset-mlp" or "tlp".
std::string_view architecture_name(Architecture architecture);

/// Of the numbers in ProgramFeatures; weights for others are refused.
inline constexpr int kFeatureVersion = 1;

struct ModelWeights {
  Architecture architecture = Architecture::kPacm;
  std::string mode = "base_only";  // how they were trained, in TenSet's words
  /// What each column of the features is divided by (its maximum over the training set).
  std::vector<float> row_scale;              // kRowFeatures
  std::vector<float> dataflow_scale;         // kDataflowFeatures; empty for TenSetMLP, both for TLP
  Tensors tensors;                           // under the names of the published checkpoints
  std::optional<TrainedOn> trained_on = {};  // unknown of published checkpoints

  // TLP only
  PrimitiveForm form = kCpuPrimitives;
  /// Names of the platforms that have a decoder each (MTL-TLP), the last kOtherPlatform; empty: one
  /// decoder serves all.
  std::vector<std::string> heads = {};

  friend bool operator==(const ModelWeights&, const ModelWeights&) = default;
};

/// The head that learns from every platform's programs; it scores for a platform without a head.
inline constexpr const char* kOtherPlatform = "other";

struct WeightSpec {
  std::string name;
  std::vector<int64_t> shape;
};

/// The tensors of a network, linear layers as (out, in). A TLP's are those of `form` and `heads`.
std::vector<WeightSpec> tensor_specs(Architecture architecture,
                                     const PrimitiveForm& form = kCpuPrimitives,
                                     std::span<const std::string> heads = {});
std::vector<WeightSpec> tensor_specs(const ModelWeights& weights);

/// Where the decoder of a head has its tensors: "decoder", or "decoder.NAME" among several.
std::string decoder_name(std::span<const std::string> heads, size_t head);
/// The head of a platform: of its name, else the other platforms'; 0 where one serves all.
size_t head_of(const ModelWeights& weights, std::string_view platform);

/// Errors name the tensor, what was expected and what was found.
Result<Unit> check_weights(const ModelWeights& weights);

/// Reads what save_weights wrote, or a published checkpoint: the .pkl of (network, mode, scales),
/// or the .pth of tensors alone, whose scales stand beside it in NAME.scales.json or
/// feature_scales.json. The content decides, not the name. Errors name the file.
Result<ModelWeights> load_weights(const std::string& path);

/// Whether save_weights can write such a file under this name.
Result<Unit> check_weights_file(const std::string& path, Architecture architecture);
/// Writes a safetensors file, or of a name that ends in .pkl what the published scripts load; a
/// failure leaves an old file as it was.
Result<Unit> save_weights(const std::string& path, const ModelWeights& weights);

}  // namespace pruner
