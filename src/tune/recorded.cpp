#include "tune/recorded.h"

#include <algorithm>
#include <fstream>

namespace pruner {

static bool ends_in_newline(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (in.tellg() <= 0) return true;
  in.seekg(-1, std::ios::end);
  return in.get() == '\n';
}

Result<std::vector<Record>> read_intact_records(const std::string& path) {
  TRY_ASSIGN(RecordFile file, read_records(path));
  const int64_t torn = ends_in_newline(path) ? 0 : 1;
  if (file.skipped > torn) {
    return Error(file.first_skipped, "; delete that line, or set the file aside");
  }
  return std::move(file.records);
}

double recorded_cost_s(const Record& record) {
  return record.result.ok() ? record.result.cost_s() : kWorstCost;
}

void RecordedTrials::add(const Record& record, const Candidate& candidate) {
  double cost_s = recorded_cost_s(record);
  if (record.origin == "final") {
    double& final_s = final_s_.try_emplace(candidate, cost_s).first->second;
    cost_s = final_s = std::min(final_s, cost_s);
  }
  history_.add(candidate, cost_s);
}

RecordedSchedules::RecordedSchedules(std::vector<Record> records, const Target& target) {
  const std::string device = device_fingerprint(target);
  for (Record& record : records) {
    if (record.device != device) continue;
    if (record.origin == kShapesOrigin) {
      of_shapes_[record.workload_key].push_back(std::move(record));
      continue;
    }
    ++of_device_;
    by_key_[record.workload_key].push_back(std::move(record));
  }
}

int64_t RecordedSchedules::of_task(const Task& task) const {
  const auto found = by_key_.find(task.key);
  return found == by_key_.end() ? 0 : static_cast<int64_t>(found->second.size());
}

std::optional<double> RecordedSchedules::cost_s(const Task& task,
                                                const Space& space,
                                                const Candidate& candidate) const {
  std::optional<double> search_s, final_s;
  for (const ByKey* some : {&by_key_, &of_shapes_}) {
    const auto found = some->find(task.key);
    if (found == some->end()) continue;
    for (const Record& record : found->second) {
      if (!record.result.ok()) continue;
      const std::optional<Candidate> recorded = resolve(space, record);
      if (recorded != candidate) continue;
      std::optional<double>& least = record.origin == "final" ? final_s : search_s;
      least = std::min(least.value_or(kWorstCost), record.result.cost_s());
    }
  }
  return final_s ? final_s : search_s;
}

std::optional<Candidate> RecordedSchedules::best(const Task& task,
                                                 const Space& space,
                                                 Reasons* unknown) const {
  const auto found = by_key_.find(task.key);
  if (found == by_key_.end()) return std::nullopt;
  RecordedTrials trials;
  for (const Record& record : found->second) {
    const Result<Candidate> candidate = find_candidate(space, record);
    if (candidate.ok()) {
      trials.add(record, *candidate);
    } else if (unknown != nullptr) {
      note(*unknown, candidate.error().message(), task.name);
    }
  }
  const std::vector<Trial> best = trials.history().best(1);
  if (best.empty()) return std::nullopt;
  return best.front().candidate;
}

}  // namespace pruner
