// Rotary position embeddings, as the bodies of several operators write them.
#pragma once

#include "graph/functions/body.h"

namespace pruner {

/// Turns pairs of x's last dimension by angles: [batch, heads, positions, width], or positions
/// before heads. `cosine` and `sine` are [1 or batch, positions, pairs]. A pair is of elements that
/// lie side by side where `interleaved`, else `pairs` apart; what is behind the pairs stays.
Term rotated(Term x, Term cosine, Term sine, bool heads_first, bool interleaved);

/// The rows of a table of angles' functions at `places`.
Term rows_at(Term table, Term places);

}  // namespace pruner
