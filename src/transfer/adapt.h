// A schedule of one task -> the same structure on another: decisions are kept where they fit the
// other's axes, and otherwise become the nearest that do (Transfer-Tuning, section 4.3; the
// reference keeps inner tiles and rounds the outermost up, reference.md, adapting).
#pragma once

#include "record/record.h"
#include "space/space.h"

namespace pruner {

/// `rest` gives the decisions that the record does not have, where it is of the same sketch. A form
/// that the space has in another structure only (register tile, cache tile) takes that. Errors: the
/// space has no such form, or nothing near it is legal there.
Result<Candidate> adapt(const Record& record, const Space& space, const Candidate& rest);

}  // namespace pruner
