// A kernel's or a network's time as people read it: the unit in which it has digits.
#pragma once

#include <optional>
#include <string>

namespace pruner {

/// "812 ns", "3.42 us", "41.200 ms", "1.500 s"; "-" where it is not known.
std::string time_text(std::optional<double> seconds);

/// Milliseconds alone, for columns of them: "41.200", and below 0.001 with six digits: "0.000812".
std::string milliseconds_text(std::optional<double> seconds);

/// "1:05:09", "2:03", or "-" where it is not known.
std::string clock_text(std::optional<double> seconds);

}  // namespace pruner
