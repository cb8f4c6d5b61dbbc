// The operators that `--op` names, one row each: "matmul 512 512 512 +bias +relu" -> ComputeDag.
// Some operators of models have a name of their own: "flux_attention".
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tensor/compute_dag.h"

namespace pruner {

/// Parses one operator text, or what tables print: "conv2d 1x56x56x64 3x3 s1 p1 -> 64 +bias". The
/// error names the operator's arguments when one is missing, zero or
/// unknown, and lists the operators when the name is not one.
Result<ComputeDag> parse_operator(std::string_view text);

/// The grammar and a row for each operator: what `pruner ops` prints.
std::string operator_help();

}  // namespace pruner
