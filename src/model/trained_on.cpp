#include "model/trained_on.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "support/hash.h"
#include "support/json.h"

namespace pruner {
namespace {

constexpr size_t kDigits = 16;  // hexadecimal, of a hash

std::string print_hashes(const std::vector<uint64_t>& hashes) {
  std::string text;
  text.reserve(hashes.size() * kDigits);
  for (const uint64_t hash : hashes) fmt::format_to(std::back_inserter(text), "{:016x}", hash);
  return text;
}

Result<std::vector<uint64_t>> parse_hashes(const Json& json, const char* name) {
  TRY_ASSIGN(const std::string text, json_get<std::string>(json, name));
  std::vector<uint64_t> hashes(text.size() / kDigits);
  for (size_t i = 0; i < hashes.size(); ++i) {
    const char* first = text.data() + i * kDigits;
    const auto [end, error] = std::from_chars(first, first + kDigits, hashes[i], 16);
    if (error != std::errc() || end != first + kDigits) return Error(name, ": not hashes");
  }
  if (text.size() % kDigits != 0 || !std::ranges::is_sorted(hashes))
    return Error(name, ": not ascending hashes of ", kDigits, " digits");
  return hashes;
}

std::vector<uint64_t> merged(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  std::vector<uint64_t> all;
  std::ranges::set_union(a, b, std::back_inserter(all));
  return all;
}

}  // namespace

bool TrainedOn::has_program(uint64_t id) const { return std::ranges::binary_search(programs, id); }

bool TrainedOn::has_workload(std::string_view key) const {
  return std::ranges::binary_search(workloads, hash64(key));
}

void TrainedOn::add(const TrainedOn& later) {
  steps.insert(steps.end(), later.steps.begin(), later.steps.end());
  programs = merged(programs, later.programs);
  workloads = merged(workloads, later.workloads);
  complete = complete && later.complete;
}

std::string print_trained_on(const TrainedOn& seen) {
  return Json{{"steps", seen.steps},
              {"complete", seen.complete},
              {"programs", print_hashes(seen.programs)},
              {"workloads", print_hashes(seen.workloads)}}
      .dump();
}

Result<TrainedOn> parse_trained_on(std::string_view text) {
  TRY_ASSIGN(const Json json, parse_json(text));
  TrainedOn seen;
  TRY_ASSIGN(seen.steps, json_get<std::vector<std::string>>(json, "steps"));
  TRY_ASSIGN(seen.complete, json_get<bool>(json, "complete"));
  TRY_ASSIGN(seen.programs, parse_hashes(json, "programs"));
  TRY_ASSIGN(seen.workloads, parse_hashes(json, "workloads"));
  return seen;
}

}  // namespace pruner
