#include "cli/duration.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

namespace pruner {

// Seconds of a unit; 0: it is none.
static double unit_s(char unit) {
  switch (unit) {
    case 's': return 1;
    case 'm': return 60;
    case 'h': return 3600;
    default: return 0;
  }
}

Result<double> parse_duration_s(std::string_view text) {
  const Error error("\"", text, "\" is no time; write 30s, 10m or 1h30m");
  double seconds = 0;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    double number = 0;
    // Numbers have no exponents, since the letter after a number is its unit.
    const auto [next, code] = std::from_chars(at, end, number, std::chars_format::fixed);
    if (code != std::errc()) return error;
    if (next == end) {
      const std::string_view last(at, static_cast<size_t>(end - at));
      const std::string what = last == text ? "" : fmt::format(" behind {}", last);
      return Error(
          fmt::format("\"{0}\" has no unit{1}; write {2}s, {2}m or {2}h", text, what, last));
    }
    const double unit = unit_s(*next);
    if (unit == 0) return error;
    seconds += number * unit;
    at = next + 1;
  }
  if (!(seconds > 0)) return error;
  return seconds;
}

Result<double> parse_budget_s(std::string_view text) {
  if (text.empty()) return std::numeric_limits<double>::infinity();
  const Result<double> seconds = parse_duration_s(text);
  if (!seconds.ok()) return Error("--budget: ", seconds.error().message());
  return seconds;
}

}  // namespace pruner
