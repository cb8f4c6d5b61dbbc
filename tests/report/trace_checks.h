// Checks on trace events, for tests.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "support/json.h"

namespace pruner {

/// The events that have a duration, as they stand.
inline std::vector<Json> spans_of(const Json& trace) {
  std::vector<Json> spans;
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == "X") spans.push_back(event);
  return spans;
}

/// Returns the fault of a trace: a span ends before it begins, or two spans of a track overlap and
/// neither lies within the other. Empty: no fault.
inline std::string trace_fault(const Json& trace) {
  constexpr double kRounding = 1e-3;  // microseconds
  std::map<int, std::vector<Json>> tracks;
  for (const Json& span : spans_of(trace)) {
    if (span["dur"] < -kRounding) return span["name"].get<std::string>() + " ends before it begins";
    tracks[span["tid"]].push_back(span);
  }
  const auto end = [](const Json& span) {
    return span["ts"].get<double>() + span["dur"].get<double>();
  };
  for (auto& [track, spans] : tracks) {
    std::ranges::stable_sort(spans, [](const Json& a, const Json& b) {
      return a["ts"] < b["ts"] || (a["ts"] == b["ts"] && a["dur"] > b["dur"]);
    });
    std::vector<const Json*> open;
    for (const Json& span : spans) {
      while (!open.empty() && end(*open.back()) <= span["ts"].get<double>() + kRounding)
        open.pop_back();
      if (!open.empty() && end(span) > end(*open.back()) + kRounding)
        return span["name"].get<std::string>() + " overlaps " +
               (*open.back())["name"].get<std::string>();
      open.push_back(&span);
    }
  }
  return "";
}

}  // namespace pruner
