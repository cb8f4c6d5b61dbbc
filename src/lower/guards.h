// Guards, select(place is inside, x[place], constant), as inlined padding leaves them in a body: in
// most tiles they all hold, and code for those tiles needs none.
#pragma once

#include <span>

#include "tensor/expr.h"

namespace pruner {

/// A condition, in terms of `values`, under which all guards of `body` hold while each iterator v
/// runs from values[v] to values[v] + spans[v]. Empty: there are no guards, or none is known.
Expr guards_hold(const Expr& body, std::span<const Expr> values, std::span<const int64_t> spans);

/// `body` where all its guards hold.
Expr without_guards(const Expr& body);

}  // namespace pruner
