#include "dataset/split.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "support/hash.h"

namespace pruner {
namespace {

constexpr std::pair<std::string_view, SplitScheme> kSchemes[] = {
    {"within_task", SplitScheme::kWithinTask},
    {"by_task", SplitScheme::kByTask},
    {"by_target", SplitScheme::kByTarget}};

constexpr size_t kLeastShare = 10;  // programs that a share leaves at least, if a task has as many

/// Returns a place in an order that only the name and the seed decide.
uint64_t place_of(std::string_view name, uint64_t seed) {
  return hash64(std::string(name) + "." + std::to_string(seed));
}
uint64_t place_of(uint64_t id, uint64_t seed) {
  const uint64_t both[] = {id, seed};
  return hash64({reinterpret_cast<const char*>(both), sizeof both});
}

/// Returns the programs of each task, in an order by id and seed alone.
std::map<int32_t, std::vector<size_t>> drawn(std::span<const size_t> programs,
                                             const SplitColumns& columns,
                                             uint64_t seed) {
  std::map<int32_t, std::vector<size_t>> tasks;
  for (const size_t p : programs) tasks[columns.task[p]].push_back(p);
  for (auto& [task, members] : tasks) {
    std::ranges::sort(members, {}, [&](size_t p) {
      return std::pair(place_of(columns.id[p], seed), columns.id[p]);
    });
  }
  return tasks;
}

std::vector<size_t> all_of(const SplitColumns& columns) {
  std::vector<size_t> all(columns.task.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  return all;
}

/// Returns `count`, raised so that the cut does not part programs of the same id.
size_t cut_of(const std::vector<size_t>& members, size_t count, const SplitColumns& columns) {
  while (count > 0 && count < members.size() &&
         columns.id[members[count]] == columns.id[members[count - 1]])
    ++count;
  return count;
}

Split split_within_tasks(const SplitColumns& columns, const SplitOptions& options) {
  Split split;
  for (const auto& [task, members] : drawn(all_of(columns), columns, options.seed)) {
    const double share = options.train_ratio * static_cast<double>(members.size());
    const size_t cut = cut_of(members, static_cast<size_t>(share), columns);
    const auto middle = members.begin() + static_cast<ptrdiff_t>(cut);
    split.train.insert(split.train.end(), members.begin(), middle);
    split.test.insert(split.test.end(), middle, members.end());
  }
  return split;
}

/// Splits whole groups. In a drawn order, a group is trained on if the programs up to its end are
/// within the share. The first group is always trained on; the last never, if there are two.
Split split_groups(const SplitColumns& columns,
                   const std::vector<std::string>& group_of_task,
                   const SplitOptions& options) {
  std::map<std::string, std::vector<size_t>> groups;
  for (size_t p = 0; p < columns.task.size(); ++p)
    groups[group_of_task[columns.task[p]]].push_back(p);
  std::vector<std::string> order;
  for (const auto& [name, programs] : groups) order.push_back(name);
  std::ranges::sort(
      order, {}, [&](const std::string& name) { return place_of(name, options.seed); });
  const double room = options.train_ratio * static_cast<double>(columns.task.size());
  Split split;
  double count = 0;
  for (size_t g = 0; g < order.size(); ++g) {
    const std::vector<size_t>& programs = groups[order[g]];
    count += static_cast<double>(programs.size());
    const bool last = g > 0 && g + 1 == order.size();
    const bool train = g == 0 || (count <= room && !last);
    std::vector<size_t>& side = train ? split.train : split.test;
    side.insert(side.end(), programs.begin(), programs.end());
  }
  return split;
}

}  // namespace

Result<SplitScheme> parse_split_scheme(std::string_view text) {
  for (const auto& [name, scheme] : kSchemes)
    if (text == name) return scheme;
  return Error("split scheme \"", text, "\" is unknown; use within_task, by_task or by_target");
}

std::string_view split_scheme_name(SplitScheme scheme) {
  for (const auto& [name, row] : kSchemes)
    if (scheme == row) return name;
  return "";
}

Result<Split> split(const SplitColumns& columns, const SplitOptions& options) {
  Split found;
  switch (options.scheme) {
    case SplitScheme::kWithinTask: found = split_within_tasks(columns, options); break;
    case SplitScheme::kByTask: found = split_groups(columns, columns.workload, options); break;
    case SplitScheme::kByTarget: {
      std::vector<std::string> targets = columns.target;
      std::ranges::sort(targets);
      if (targets.empty() || targets.front() == targets.back())
        return Error("a split by_target needs records of two targets, there is one");
      found = split_groups(columns, columns.target, options);
      break;
    }
  }
  std::ranges::sort(found.train);
  std::ranges::sort(found.test);
  return found;
}

std::vector<size_t> draw_share(std::span<const size_t> programs,
                               const SplitColumns& columns,
                               double share,
                               uint64_t seed) {
  std::vector<size_t> found;
  for (const auto& [task, members] : drawn(programs, columns, seed)) {
    auto count = static_cast<size_t>(share * static_cast<double>(members.size()));
    count = std::min(std::max(count, kLeastShare), members.size());
    const auto end = members.begin() + static_cast<ptrdiff_t>(count);
    found.insert(found.end(), members.begin(), end);
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace pruner
