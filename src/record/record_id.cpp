#include "record/record_id.h"

#include <numeric>

#include "support/hash.h"

namespace pruner {

namespace {

constexpr double kLeastImpossibleS = 1e9;

std::string program_text(const Record& record) {
  std::string text = record.workload_key + '\n' + record.target + '\n' + record.device + '\n';
  if (record.sketch_name.empty()) return text + record.steps.dump();
  text += record.sketch_hash;
  for (const auto& [name, value] : record.decisions)
    text += ' ' + name + ' ' + std::to_string(value);
  return text;
}

}  // namespace

RecordedTask task_of(const Record& record) {
  return {record.workload_key, record.target, record.device};
}

const std::string& name_of(const Record& record) {
  return record.task_name.empty() ? record.workload_key : record.task_name;
}

RecordIds ids_of(const Record& record) {
  const MeasureResult& result = record.result;
  const Json trial = {result.costs_s,
                      static_cast<int>(result.error),
                      result.build_s + result.run_s,
                      result.timestamp,
                      record.origin};
  std::string program = hash_hex(program_text(record));
  std::string id = hash_hex(program + trial.dump());
  return {std::move(program), std::move(id)};
}

std::optional<double> measured_s(const Record& record) {
  const std::vector<double>& costs_s = record.result.costs_s;
  if (!record.result.ok() || costs_s.empty()) return std::nullopt;
  const double mean_s =
      std::accumulate(costs_s.begin(), costs_s.end(), 0.0) / static_cast<double>(costs_s.size());
  const double time_s = record.sketch_name.empty() ? mean_s : record.result.cost_s();
  if (!(time_s > 0) || time_s >= kLeastImpossibleS) return std::nullopt;
  return time_s;
}

}  // namespace pruner
