// All functions: the rows of the files of this folder.
#include <algorithm>

#include "graph/functions/body.h"

namespace pruner {

// Each in the file of its name.
using Rows = std::span<const Function>();
Rows activation_functions, affine_grid_functions, attention_functions, einsum_functions,
    feature_functions, fused_functions, gather_block_quantized_functions, image_functions,
    indexing_functions, loss_functions, matmul_n_bits_functions, mixture_of_experts_functions,
    normalization_functions, ort_array_functions, ort_attention_functions, ort_image_functions,
    pooling_functions, quantization_functions, quantized_contraction_functions, quantized_functions,
    random_functions, recurrent_functions, rotary_functions, signal_functions, state_functions;

static constexpr Rows* kFiles[] = {activation_functions,
                                   affine_grid_functions,
                                   attention_functions,
                                   einsum_functions,
                                   feature_functions,
                                   fused_functions,
                                   gather_block_quantized_functions,
                                   image_functions,
                                   indexing_functions,
                                   loss_functions,
                                   matmul_n_bits_functions,
                                   mixture_of_experts_functions,
                                   normalization_functions,
                                   ort_array_functions,
                                   ort_attention_functions,
                                   ort_image_functions,
                                   pooling_functions,
                                   quantization_functions,
                                   quantized_contraction_functions,
                                   quantized_functions,
                                   random_functions,
                                   recurrent_functions,
                                   rotary_functions,
                                   signal_functions,
                                   state_functions};

std::span<const Function> graph_functions() {
  static const std::vector<Function> all = [] {
    std::vector<Function> functions;
    for (Rows* const rows : kFiles) functions.insert(functions.end(), rows().begin(), rows().end());
    std::ranges::sort(functions, {}, &Function::name);
    return functions;
  }();
  return all;
}

const Function* find_function(std::string_view name) {
  const std::span<const Function> all = graph_functions();
  const auto it = std::ranges::lower_bound(all, name, {}, &Function::name);
  return it != all.end() && it->name == name ? &*it : nullptr;
}

}  // namespace pruner
