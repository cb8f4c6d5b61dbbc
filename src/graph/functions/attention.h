// Scaled dot-product attention, as the bodies of several operators write it: MatMul, scale, mask,
// Softmax, MatMul, the shape that the passes know from networks of their own.
#pragma once

#include "graph/functions/body.h"

namespace pruner {

/// Query, key and value are [batch, heads, positions, width]. A number of heads of the query in a
/// row share one of key and value.
struct AttentionTerms {
  Term query, key, value;
  double scale = 0;    // factor of the scores; 0: 1 / sqrt(width)
  double softcap = 0;  // scores lie between this and its negative; 0: anywhere
  // These broadcast to the scores and may be invalid. The bias is added before keys are hidden.
  Term bias = {};                // added to the scores
  Term visible = {};             // bool: the keys that a query attends to
  Term sink = {};                // a score of one more key, whose value is 0
  bool may_see_nothing = false;  // there may be queries without a visible key: they give 0
  std::optional<double> hidden_score = {};  // the least finite one unless told
  std::optional<DType> softmax_dtype = {};  // the query's unless told
};

/// The result, and the scores on the way to it: [batch, heads, queries, keys].
struct Attended {
  Term raw, capped, masked, weights;
  Term result;  // [batch, heads, queries, width of the value]
};

Attended attend(const AttentionTerms& attention);

/// [batch, positions, heads * width] as [batch, heads, positions, width], and back.
Term split_heads(Term x, int64_t heads);
Term join_heads(Term x);

/// 0, 1, ..., count - 1: int64.
Term positions(Body& b, int64_t count);
/// Whether each of `keys` keys is at most `before` places before a query and `after` behind it (any
/// number of them where it is negative); `queries` are their places, [..., queries, 1].
Term in_window(Term queries, int64_t keys, int64_t before, int64_t after);
/// a and b, of which either may be invalid.
Term both(Term a, Term b);
/// a + b, of which either may be invalid.
Term sum(Term a, Term b);

}  // namespace pruner
