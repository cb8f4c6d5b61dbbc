// A candidate of one task -> that of another which is the same operator on other extents.
#pragma once

#include <optional>

#include "space/space.h"

namespace pruner {

/// A candidate of `to` with the sketch's name and the decisions that `candidate` has in `from`;
/// what is left over of an axis is what its outermost loop takes. `to` becomes a space for such:
/// tiles that it would not draw, as others fit its extents better, are entered among its choices.
/// nullopt: the sketch or a decision is not there, or the candidate is not legal.
std::optional<Candidate> carry_over(const Space& from, const Candidate& candidate, Space& to);

/// The candidate with tiles of open axes no longer than these are in `least`, another space of the
/// same operator, of one where that has no such sketch: outer tiles become smaller first. What it
/// gives may not be legal.
Candidate with_tiles_within(const Space& space, Candidate candidate, const Space& least);

/// The legal candidate of `to` that is nearest to it, of those that a search draws
/// (nearest_legal()); nullopt: the sketch is not there, or nothing near is legal.
std::optional<Candidate> nearest_like(const Space& from,
                                      const Candidate& candidate,
                                      const Space& to);

}  // namespace pruner
