// States that a call takes up and hands on, as the bodies of several operators write them.
#pragma once

#include "graph/functions/body.h"

namespace pruner {

/// `cache` with `update` written along `axis`, from place start[i] on in element i of the batch;
/// `start` is int64 [1 or batch]. Behind the end it goes on at the beginning where `circular`, and
/// is lost elsewhere.
Term written_at(Term cache, Term update, Term start, int64_t axis, bool circular);

}  // namespace pruner
