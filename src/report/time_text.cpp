#include "report/time_text.h"

#include <fmt/format.h>

#include <cstdint>

namespace pruner {

std::string time_text(std::optional<double> seconds) {
  if (!seconds) return "-";
  const double s = *seconds;
  // Each bound is where the smaller unit's text would round up to 1000.
  if (s < 999.5e-9) return fmt::format("{:.0f} ns", s * 1e9);
  if (s < 9.995e-6) return fmt::format("{:.2f} us", s * 1e6);
  if (s < 99.95e-6) return fmt::format("{:.1f} us", s * 1e6);
  if (s < 999.5e-6) return fmt::format("{:.0f} us", s * 1e6);
  if (s < 0.9999995) return fmt::format("{:.3f} ms", s * 1e3);
  return fmt::format("{:.3f} s", s);
}

std::string milliseconds_text(std::optional<double> seconds) {
  constexpr double kFine = 1e-3;  // ms
  if (!seconds) return "-";
  const double ms = *seconds * 1e3;
  return fmt::format("{:.{}f}", ms, ms < kFine ? 6 : 3);
}

std::string clock_text(std::optional<double> seconds) {
  if (!seconds) return "-";
  const auto s = static_cast<int64_t>(*seconds + 0.5);
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

}  // namespace pruner
