// Other programs, run as a user does.
#pragma once

#include <string>

namespace pruner {

/// Returns what a shell command prints, errors too, and then its exit status.
std::string output_of(const std::string& command);

}  // namespace pruner
