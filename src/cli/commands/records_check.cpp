// pruner records check: which records of public logs replay to a loop nest.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>

#include "cli/commands.h"
#include "cli/record_files.h"
#include "record/replay_check.h"

namespace pruner {

namespace {

Json reasons_to_json(const Reasons& reasons) {
  Json json = Json::array();
  for (const auto& [reason, entry] : reasons) {
    json.push_back({{"reason", reason}, {"records", entry.count}, {"first", entry.first}});
  }
  return json;
}

Json to_json(const ReplayCount& count) {
  return {{"file", count.path},
          {"records", count.records},
          {"replayed", count.replayed},
          {"own", count.own},
          {"nearest", count.nearest},
          {"changed", count.changed},
          {"no_dag", count.no_dag},
          {"failed", count.failures()},
          {"share", count.share()},
          {"damaged", count.damaged},
          {"reasons", reasons_to_json(count.failed)},
          {"unknown", reasons_to_json(count.unknown)},
          {"foreign", reasons_to_json(count.foreign)}};
}

void print_row(const ReplayCount& count, const std::string& name) {
  const bool any = count.records > count.no_dag;
  fmt::print("| {:>7} | {:>8} | {:>7} | {:>7} | {:>7} | {:>7} | {:>6} | {}{}\n",
             count.records,
             count.replayed,
             count.own,
             count.nearest,
             count.failures(),
             count.no_dag,
             any ? fmt::format("{:.1f}%", 100 * count.share()) : "-",
             name,
             count.damaged ? " (ends early: damaged)" : "");
}

void print_reasons(const ReplayCount& count) {
  for (const auto& [reason, entry] : count.failed) {
    fmt::print("  {:>7} failed: {} (first: {})\n", entry.count, reason, entry.first);
  }
  for (const auto& [reason, entry] : count.unknown) {
    fmt::print("  {:>7} no DAG: {} (first: {})\n", entry.count, reason, entry.first);
  }
  for (const auto& [reason, entry] : count.foreign) {
    fmt::print("  {:>7} no point of ours: {} (first: {})\n", entry.count, reason, entry.first);
  }
}

void print_candidates(const ReplayCount& total) {
  if (total.replayed == 0) return;
  std::vector<std::string> changed;
  for (const auto& [what, records] : total.changed)
    changed.push_back(fmt::format("{} {}", what, records));
  fmt::print(
      "{:.1f}% of those that replay are candidates of our space: {} the same program, {} the "
      "nearest{}{}\n",
      100 * total.candidate_share(),
      total.own,
      total.nearest,
      changed.empty() ? "" : ", changed: ",
      fmt::join(changed, ", "));
}

// A file that was found in a folder may be none of DAGs; one that is named must be.
Result<Unit> add_dags(const std::vector<std::string>& patterns, ansor::WorkloadTable& workloads) {
  TRY_ASSIGN(const std::vector<RecordPath> files, find_record_files(patterns));
  for (const RecordPath& file : files) {
    const Result<Unit> added = workloads.add_file(file.path);
    if (!added.ok() && file.named) return added.error();
  }
  return Unit{};
}

struct Check {
  RecordFileOptions records;
  std::vector<std::string> dags;

  void add_to(CLI::App& app) {
    records.add_to(app);
    add_option(app, "--dags FILES", dags).help("files of compute DAGs, for keys that are a hash");
  }

  Result<int> run(const Invocation& call) const {
    TRY_ASSIGN(const std::vector<RecordPath> files, records.find("records check"));
    ansor::WorkloadTable workloads;
    ansor::OwnPoints points;
    TRY(add_dags(dags, workloads));
    const int jobs = records.jobs;
    const auto start = std::chrono::steady_clock::now();
    ReplayCount total;
    StreamSummary read;
    Json json = Json::array();
    if (!call.json)
      fmt::print("| Records | Replayed |     Own | Nearest |  Failed |  No DAG |  Share | File\n");
    for (const RecordPath& file : files) {
      TRY_ASSIGN(const ReplayCount count, check_replay(file, workloads, points, jobs));
      total.add(count);
      ++(count.other ? read.other : read.files);
      read.records += count.records;
      if (count.damaged) read.damage.add_file(count.path);
      if (count.other) continue;
      json.push_back(to_json(count));
      if (call.json) continue;
      print_row(count, count.path);
      print_reasons(count);
    }
    const double wall_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const double records_per_s = static_cast<double>(total.records) / std::max(wall_s, 1e-9);
    if (call.json) {
      Json sum = to_json(total);
      sum.erase("file");
      sum["other_files"] = read.other;
      sum["records_per_s"] = records_per_s;
      fmt::print("{}\n", print_json({{"files", json}, {"total", sum}}));
      return done_reading(read, files);
    }
    print_row(total, fmt::format("total, {} files", read.files));
    print_candidates(total);
    if (read.other > 0) fmt::print("{} files in the folders hold no records\n", read.other);
    fmt::print("{:.0f} records/s, {} threads\n", records_per_s, jobs);
    return done_reading(read, files);
  }
};

}  // namespace

RunCommand make_records_check(CLI::App& app) { return make_command<Check>(app); }

}  // namespace pruner
