#include "dataset/program_table.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "dataset/record_device.h"

namespace pruner {
namespace {

constexpr double kFailed = 1e10;  // seconds that stand for a failed trial

bool all_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float v) { return std::isfinite(v); });
}

/// "llvm" or "cuda" of a target's text.
std::string kind_of(const std::string& target) { return target.substr(0, target.find(' ')); }

}  // namespace

Result<Unit> check_one_kind(const std::vector<std::string>& targets) {
  const auto cpu = std::ranges::find_if(targets, is_cpu);
  const auto gpu = std::ranges::find_if_not(targets, is_cpu);
  if (cpu == targets.end() || gpu == targets.end()) return Unit{};
  return Error("the datasets mix targets of kind ",
               kind_of(*cpu),
               " and ",
               kind_of(*gpu),
               ", whose features do not compare; give those of one kind");
}

Result<ProgramTable> ProgramTable::open(std::span<const std::string> paths) {
  ProgramTable table;
  for (const std::string& path : paths) {
    TRY_ASSIGN(const Dataset dataset, Dataset::open(path));
    for (int64_t p = 0; p < dataset.size(); ++p) {
      const auto n = static_cast<size_t>(p);
      const std::span<const float> rows = dataset.rows(p), dataflow = dataset.dataflow(p);
      ProgramFeatures features;
      features.rows.assign(rows.begin(), rows.end());
      std::ranges::copy(dataflow, features.dataflow.begin());
      const std::span<const int32_t> primitives = dataset.primitives(p);
      features.primitives.assign(primitives.begin(), primitives.end());
      table.add(dataset.tasks()[dataset.task()[n]],
                dataset.id()[n],
                std::move(features),
                dataset.latency_s()[n]);
    }
  }
  if (table.size() == 0) {
    const LeftOut& left = table.left_out();
    return Error(paths.empty() ? "no dataset" : paths[0],
                 ": no program to use (",
                 left.failed,
                 " failed, ",
                 left.bad_time,
                 " without a time, ",
                 left.no_feature,
                 " without features)");
  }
  TRY(check_one_kind(table.targets()));
  return table;
}

bool ProgramTable::add(const DatasetTask& task,
                       uint64_t id,
                       ProgramFeatures features,
                       double latency_s) {
  if (latency_s >= kFailed) {
    ++left_out_.failed;
    return false;
  }
  if (!(latency_s > 0)) {
    ++left_out_.bad_time;
    return false;
  }
  if (features.rows.empty() || !all_finite(features.rows) || !all_finite(features.dataflow)) {
    ++left_out_.no_feature;
    return false;
  }
  const auto [row, fresh] =
      number_.try_emplace({task.workload_key, task.target}, static_cast<int32_t>(tasks_.size()));
  if (fresh) {
    tasks_.push_back(task);
    best_s_.push_back(latency_s);
  }
  if (!seen_.insert(id + 0x9e3779b97f4a7c15 * static_cast<uint64_t>(row->second)).second) {
    ++left_out_.twice;
    return false;
  }
  double& best_s = best_s_[row->second];
  best_s = std::min(best_s, latency_s);
  samples_.push_back({row->second, std::move(features), latency_s});
  task_.push_back(row->second);
  id_.push_back(id);
  return true;
}

float ProgramTable::label(size_t program) const {
  const TrainingSample& sample = samples_[program];
  return static_cast<float>(best_s_[sample.task] / sample.latency_s);
}

std::vector<std::string> ProgramTable::targets() const {
  std::set<std::string> targets;
  for (const DatasetTask& task : tasks_) targets.insert(task.target);
  return {targets.begin(), targets.end()};
}

SplitColumns ProgramTable::columns() const {
  SplitColumns columns{task_, id_, {}, {}};
  for (const DatasetTask& task : tasks_) {
    columns.workload.push_back(task.workload_key);
    columns.target.push_back(task.target);
  }
  return columns;
}

std::vector<TrainingSample> ProgramTable::take(std::span<const size_t> programs) {
  std::vector<TrainingSample> taken;
  taken.reserve(programs.size());
  for (const size_t p : programs) {
    taken.push_back({samples_[p].task, std::move(samples_[p].features), samples_[p].latency_s});
    samples_[p].features = {};
  }
  return taken;
}

}  // namespace pruner
