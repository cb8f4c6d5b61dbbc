// A kind of worker: what decides how fast code runs there, as a short name. Times of unlike kinds
// are never mixed.
#pragma once

#include <string>

#include "target/target.h"

namespace pruner {

/// Returns the kind of workers whose code is for `target` and made by this very program: the
/// device, its numbers, the threads, and the program. The kind has letters, digits and '-', as
/// subjects may have.
std::string kind_of(const Target& target);
/// The hash of this very program.
const std::string& program_hash();

}  // namespace pruner
