#include "record/best_records.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "support/gzip.h"

namespace pruner {

namespace {

/// The trial that stands for a program.
struct Standing {
  double time_s = 0;
  bool final = false;
  size_t file = 0;
  int64_t line = 0;

  bool replaces(const Standing& other) const {
    return final != other.final ? final : time_s < other.time_s;
  }
};

struct TaskTrials {
  std::string name;
  size_t met = 0;  // its place among the tasks
  std::unordered_map<std::string, Standing> programs;
};

/// The fastest; of equal ones the earlier.
std::vector<Standing> fastest(const TaskTrials& task, size_t top_k) {
  std::vector<Standing> all;
  for (const auto& [program, standing] : task.programs) all.push_back(standing);
  const size_t kept = std::min(top_k, all.size());
  const auto key = [](const Standing& s) { return std::tuple(s.time_s, s.file, s.line); };
  std::ranges::partial_sort(all, all.begin() + static_cast<std::ptrdiff_t>(kept), {}, key);
  all.resize(kept);
  return all;
}

}  // namespace

Result<BestRecords> find_best(std::span<const RecordPath> files, size_t top_k, int jobs) {
  std::map<RecordedTask, TaskTrials> tasks;
  size_t file = 0;
  const auto take = [&](StreamedRecord&& streamed) -> Result<Unit> {
    while (files[file].path != streamed.path) ++file;
    const Record& record = streamed.record;
    TaskTrials& task =
        tasks.try_emplace(task_of(record), TaskTrials{{}, tasks.size(), {}}).first->second;
    task.name = name_of(record);
    const std::optional<double> time_s = measured_s(record);
    if (!time_s) return Unit{};
    const Standing trial{*time_s, record.origin == "final", file, streamed.number};
    const auto [standing, fresh] = task.programs.try_emplace(streamed.ids.program, trial);
    if (!fresh && trial.replaces(standing->second)) standing->second = trial;
    return Unit{};
  };
  BestRecords best;
  TRY_ASSIGN(best.summary, stream_records(files, jobs, take));
  best.tasks = static_cast<int64_t>(tasks.size());

  std::vector<const std::pair<const RecordedTask, TaskTrials>*> in_order(tasks.size());
  for (const auto& entry : tasks) in_order[entry.second.met] = &entry;
  for (const auto* entry : in_order) {
    const auto& [task, trials] = *entry;
    best.hopeless += trials.programs.empty();
    for (const Standing& s : fastest(trials, top_k))
      best.records.push_back({task, trials.name, s.time_s, s.file, s.line});
  }
  return best;
}

Result<std::vector<std::string>> lines_of(std::span<const BestRecord> records,
                                          std::span<const RecordPath> files) {
  std::map<std::pair<size_t, int64_t>, size_t> wanted;  // file and line -> place
  for (size_t i = 0; i < records.size(); ++i) wanted[{records[i].file, records[i].line}] = i;
  std::vector<std::string> lines(records.size());
  for (auto next = wanted.begin(); next != wanted.end();) {
    const size_t file = next->first.first;
    TRY_ASSIGN(LineReader reader, LineReader::open(files[file].path));
    while (next != wanted.end() && next->first.first == file) {
      const std::optional<LineReader::Line> line = reader.next();
      if (!line) return Error(files[file].path, ": became shorter while it was read");
      if (line->number != next->first.second) continue;
      lines[next->second] = line->text;
      ++next;
    }
  }
  return lines;
}

}  // namespace pruner
