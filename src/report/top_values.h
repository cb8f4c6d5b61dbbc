// A tensor -> the largest values along its last axis, as of a classifier's scores.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "deploy/tensor_file.h"
#include "support/json.h"

namespace pruner {

/// The largest values of one row along the last axis, from the largest down; NaN comes last.
struct TopRow {
  std::vector<int64_t> row;      // its place in the other axes
  std::vector<int64_t> indices;  // along the last axis
  std::vector<double> values;
};

/// `count` of each row, or all where it has fewer; a scalar is one row of one value.
std::vector<TopRow> top_values(const Tensor& tensor, int64_t count);

/// The spec, then a line a row, the first ten of them: "  [0]: 285 8.123, 281 7.5".
std::string print_top(const TensorSpec& spec, std::span<const TopRow> rows);
/// [{"row","indices","values"}]; a value that is not finite is null.
Json top_json(std::span<const TopRow> rows);

}  // namespace pruner
