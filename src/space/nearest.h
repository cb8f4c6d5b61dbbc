// Values that are wanted of a sketch's decisions -> the legal candidate nearest to them. What a
// schedule found elsewhere becomes when not all of it can be kept.
#pragma once

#include <optional>
#include <span>

#include "space/space.h"

namespace pruner {

/// A decision that nothing is wanted of takes its first choice.
inline constexpr double kNoWish = -1;

/// Whether a decision's values are sizes, which differ by their ratio; others by their difference.
bool is_size(const Decision& decision);
/// How far a choice is from a value.
double choice_distance(const Decision& decision, double value, double choice);
/// The choice nearest to a value; the smaller of two.
int32_t nearest_choice(const Decision& decision, double value);

/// Makes tiles smaller, those further out first and each axis in its turn, until the candidate is
/// legal; false: it does not become so. `why` gets the reason of the last try.
bool shrink_until_legal(const Space& space, Candidate& candidate, std::string& why);

/// `wanted`: a value for each decision of the sketch, or kNoWish; the tiles of an axis may be no
/// whole numbers (half a vector). Decision after decision takes the nearest value that the ones
/// before leave legal: places, then register tiles, then each axis's tiles together, compared by
/// how much of the axis they hold from each level inward. nullopt: nothing near is legal.
std::optional<Candidate> nearest_legal(const Space& space,
                                       SketchId sketch,
                                       std::span<const double> wanted);

}  // namespace pruner
