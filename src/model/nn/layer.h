// What a learned network is made of, as plain data: a table of layers, which the scorer (network.h)
// and the plug-in that trains (torch/plugin.h) both walk through.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pruner {

/// What a network can read of a program. input_row() (tokens.h) says more of each.
enum class Input : int32_t {
  kStatements,  // a row for each stored buffer
  kDataflow,    // a row for each step of the tiled contraction's data flow
  kPrimitives,  // a row for each schedule primitive
};

enum class LayerKind : int32_t {
  kInput,      // begins a branch with what the program has of `input`
  kLinear,     // W x + b
  kRelu,       // max(0, W x + b)
  kResidual,   // x + max(0, W x + b)
  kAttention,  // x + multi-head self-attention over the program's rows, heads 32 wide
  kBatchNorm,  // (x - mean) / sqrt(variance + 1e-5) * weight + bias, columnwise
  kSum,        // of the program's rows
  kConcat,     // the last two branches side by side
};
inline constexpr float kBatchNormEpsilon = 1e-5f;

struct Layer {
  LayerKind kind;
  const char* name = "";    // of its tensors in the published checkpoints, before ".weight"
  int64_t in = 0, out = 0;  // widths of a row; `in` 0: of the primitives' form
  int64_t heads = 0;        // of attention
  Input input = Input::kStatements;
};

/// What precedes the first dot of a name: the module that a layer is of, or a head.
inline std::string_view module_of(std::string_view name) { return name.substr(0, name.find('.')); }

/// Whether a tensor is a statistic of batches, which no optimizer moves.
inline bool is_statistic(std::string_view tensor) {
  return tensor.find(".running_") != tensor.npos;
}

/// `head`: "decoder", or "decoder.NAME" among several; empty where a network has none.
inline bool is_of_head(const Layer& layer, std::string_view head) {
  return !head.empty() && module_of(layer.name) == module_of(head);
}
/// The name of a layer's tensors before ".weight", e.g. "decoder.NAME.0" of "decoder.0".
inline std::string tensors_of(const Layer& layer, const std::string& head) {
  const std::string name = layer.name;
  return is_of_head(layer, head) ? head + name.substr(module_of(name).size()) : name;
}

}  // namespace pruner
