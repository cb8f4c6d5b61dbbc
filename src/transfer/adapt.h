// A schedule of one task -> the same structure on another: decisions are kept where they fit the
// other's axes, and otherwise become the nearest that do (Transfer-Tuning, section 4.3; the
// reference keeps inner tiles and rounds the outermost up, reference.md, adapting).
#pragma once

#include "record/record.h"
#include "space/space.h"

namespace pruner {

/// Adapts a record's schedule to a space. `rest` gives decisions that the record lacks, if it is of
/// the same sketch. If the space has the form in another structure only (register tile, cache
/// tile), that structure is taken. Errors: the space lacks the form, or no near candidate is legal.
Result<Candidate> adapt(const Record& record, const Space& space, const Candidate& rest);

}  // namespace pruner
