// pruner records: what record files hold.
#include <fmt/format.h>

#include <map>

#include "cli/commands.h"
#include "cli/schedules.h"

namespace pruner {

namespace {

/// What is counted of the records of one task on one device.
struct Count {
  std::string name, device;
  int64_t trials = 0, failed = 0;
  double best_s = kWorstCost;
  const Record* best = nullptr;
};

Result<std::vector<Record>> read_files(const Options& options) {
  if (options.files.empty())
    return Error("records: no file is named; e.g. pruner records stat out/records.json");
  return read_record_files(options.files);
}

std::vector<Count> count(const std::vector<Record>& records) {
  std::map<std::pair<std::string, std::string>, Count> counts;
  for (const Record& record : records) {
    Count& c = counts[{record.workload_key, record.device}];
    c.name = record.task_name.empty() ? record.workload_key : record.task_name;
    c.device = record.device;
    ++c.trials;
    c.failed += !record.result.ok();
    if (const double cost_s = recorded_cost_s(record); cost_s < c.best_s) {
      c.best_s = cost_s;
      c.best = &record;
    }
  }
  std::vector<Count> list;
  for (auto& [key, c] : counts) list.push_back(std::move(c));
  return list;
}

Json to_json(const Count& c) {
  return {{"task", c.name},
          {"device", c.device},
          {"records", c.trials},
          {"failed", c.failed},
          {"best_ms", c.best ? Json(c.best_s * 1e3) : Json()}};
}

}  // namespace

Result<int> run_records_stat(const Options& options) {
  TRY_ASSIGN(const std::vector<Record> records, read_files(options));
  Json json = Json::array();
  if (!options.json) fmt::print("| Records | Failed |    Best (ms) | Task, device\n");
  for (const Count& c : count(records)) {
    json.push_back(to_json(c));
    const std::string best = c.best ? fmt::format("{:.3f}", c.best_s * 1e3) : "-";
    if (!options.json)
      fmt::print("| {:>7} | {:>6} | {:>12} | {}, {}\n", c.trials, c.failed, best, c.name, c.device);
  }
  if (options.json) fmt::print("{}\n", print_json(json));
  return kDone;
}

Result<int> run_records_best(const Options& options) {
  TRY_ASSIGN(const std::vector<Record> records, read_files(options));
  for (const Count& c : count(records)) {
    if (c.best) fmt::print("{}\n", print_line(*c.best));
  }
  return kDone;
}

}  // namespace pruner
