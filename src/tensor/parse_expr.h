// Reads expressions in TVM's spelling (what print() writes, and files carry). Errors say at which
// character what was expected; nesting and length are bounded, so hostile text cannot exhaust the
// stack.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.h"
#include "tensor/compute_dag.h"

namespace pruner {

/// `ExprScope` maps the names in a text to the tensors and expressions that the names stand for.
struct ExprScope {
  const ComputeDag* dag;  // gives a tensor's rank and type
  std::map<std::string, StageId, std::less<>> tensors;
  std::map<std::string, Expr, std::less<>> variables;
};

/// Whether a text can name a tensor or an axis in an expression.
bool is_name(std::string_view text);

/// One expression and nothing after it; names have to be in the scope.
Result<Expr> parse_expr(std::string_view text, const ExprScope& scope);

/// A stage's body: an expression, or "reduce[(x + y)](source; axis=[k]; value_index=0)".
struct ParsedBody {
  Combiner combiner = Combiner::kNone;
  Expr source;
};
Result<ParsedBody> parse_body(std::string_view text, const ExprScope& scope);

}  // namespace pruner
