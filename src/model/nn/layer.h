// The layers of a learned network as plain data: a table that the scorer (network.h) and the
// plug-in that trains (torch/plugin.h) both walk through.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pruner {

/// `Input` is a part of a program that a network can read; input_row() (tokens.h) describes it.
enum class Input : int32_t {
  kStatements,  // a row for each stored buffer
  kDataflow,    // a row for each step of the tiled contraction's data flow
  kPrimitives,  // a row for each schedule primitive
};

enum class LayerKind : int32_t {
  kInput,      // begins a branch with the program's rows of `input`
  kLinear,     // W x + b
  kRelu,       // max(0, W x + b)
  kResidual,   // x + max(0, W x + b)
  kAttention,  // x + multi-head self-attention over the program's rows, heads 32 wide
  kBatchNorm,  // (x - mean) / sqrt(variance + 1e-5) * weight + bias, columnwise
  kSum,        // sum of the program's rows
  kConcat,     // the last two branches side by side
};
inline constexpr float kBatchNormEpsilon = 1e-5f;

struct Layer {
  LayerKind kind;
  const char* name = "";    // prefix of its tensors in published checkpoints, before ".weight"
  int64_t in = 0, out = 0;  // widths of a row; `in` 0: width of the primitives' form
  int64_t heads = 0;        // heads of attention
  Input input = Input::kStatements;
};

/// Returns the part of a layer's or a head's name before the first dot: the module.
inline std::string_view module_of(std::string_view name) { return name.substr(0, name.find('.')); }

/// Returns whether a tensor is a statistic of batches, which no optimizer moves.
inline bool is_statistic(std::string_view tensor) {
  return tensor.find(".running_") != tensor.npos;
}

/// Returns whether a layer belongs to `head`: "decoder", "decoder.NAME" among several heads, or ""
/// if a network has no head.
inline bool is_of_head(const Layer& layer, std::string_view head) {
  return !head.empty() && module_of(layer.name) == module_of(head);
}
/// Returns the name of a layer's tensors before ".weight", e.g. "decoder.NAME.0" of "decoder.0".
inline std::string tensors_of(const Layer& layer, const std::string& head) {
  const std::string name = layer.name;
  return is_of_head(layer, head) ? head + name.substr(module_of(name).size()) : name;
}

}  // namespace pruner
