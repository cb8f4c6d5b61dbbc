// Guards, select(place is inside, x[place], constant), as inlined padding leaves them in a body: in
// most tiles they all hold, and code for those tiles needs none. In place of x[place] a guard may
// hold another guard.
#pragma once

#include "tensor/affine.h"

namespace pruner {

/// Variables with what they run over.
using VarBox = std::vector<std::pair<VarId, Range>>;

/// A condition, in terms of other variables, under which all guards of `body` hold in all of the
/// box. Empty: there are no guards, or none is known.
Expr guards_hold(const Expr& body, const VarBox& box);

/// `body` where all its guards hold.
Expr without_guards(const Expr& body);

}  // namespace pruner
