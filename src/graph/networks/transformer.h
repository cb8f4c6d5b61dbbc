// What the transformers share, written as exporters do before opset 17: layer norms, GELU and
// attention as their elementary operators. Data are [batch, sequence, width].
#pragma once

#include "graph/networks/network_builder.h"

namespace pruner {

/// x times a weight of `out` columns, and a bias.
ValueId linear(NetworkBuilder& b, const std::string& name, ValueId x, int64_t out, double gain = 1);
ValueId layer_norm(NetworkBuilder& b, const std::string& name, ValueId x, double epsilon);
/// With the error function.
ValueId gelu(NetworkBuilder& b, ValueId x);
/// The first `count` rows of a table.
ValueId first_rows(NetworkBuilder& b, const std::string& name, ValueId table, int64_t count);
/// Element `index` of the sequence: [batch, width].
ValueId token(NetworkBuilder& b, ValueId x, int64_t index);

struct Attention {
  ValueId query, key, value;
  int64_t width = 0, heads = 0;  // of the result, and into how many parts it is cut
  ValueId mask;                  // truth values that broadcast to the scores; invalid: all true
  bool input_bias = true;        // of the projections of query, key and value
};
/// Multi-head attention with its four projections (Vaswani et al. 2017).
ValueId attention(NetworkBuilder& b, const std::string& name, const Attention& a);

}  // namespace pruner
