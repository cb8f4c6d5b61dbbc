// pruner records stat, best, distill: what record files hold, and the best of it.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/commands.h"
#include "cli/record_files.h"
#include "record/best_records.h"
#include "record/record_stat.h"
#include "support/gzip.h"

namespace pruner {

namespace {

// Times of records are seconds; what is shown is milliseconds.
std::string milliseconds(std::optional<double> time_s) {
  return time_s ? fmt::format("{:.4f}", *time_s * 1e3) : "-";
}

Json milliseconds_json(std::optional<double> time_s) {
  return time_s ? Json(*time_s * 1e3) : Json();
}

// Returns the day of a time in UTC; "-" if records say no time (0).
std::string day(int64_t time) {
  return time == 0 ? "-" : fmt::format("{:%Y-%m-%d}", fmt::gmtime(static_cast<time_t>(time)));
}

/// "NAME on TARGET", or on the device where a record says it.
std::string place(const std::string& name, const std::string& target, const std::string& device) {
  return fmt::format("{}, {}", name, device.empty() ? target : device);
}

Json to_json(const RecordCount& count) {
  return {{"records", count.records},
          {"valid", count.valid},
          {"failed", count.failures()},
          {"errors", count.failed},
          {"duplicates", count.duplicates},
          {"best_ms", milliseconds_json(count.best_s)},
          {"median_ms", milliseconds_json(count.median_s())},
          {"versions", count.versions},
          {"first_time", count.first_time},
          {"last_time", count.last_time}};
}

Json to_json(const StatRow& row, StatGroup group) {
  Json json = {{group == StatGroup::kTask ? "task" : "file", row.name},
               {"workload_key", row.workload_key},
               {"target", row.target},
               {"device", row.device}};
  json.update(to_json(row.count));
  return json;
}

void print_count(const RecordCount& count, const std::string& name) {
  fmt::print("| {:>7} | {:>7} | {:>7} | {:>6} | {:>11} | {:>11} | {} to {} | {} | {}\n",
             count.records,
             count.valid,
             count.failures(),
             count.duplicates,
             milliseconds(count.best_s),
             milliseconds(count.best_s ? count.median_s() : std::nullopt),
             day(count.first_time),
             day(count.last_time),
             fmt::join(count.versions, ","),
             name);
}

void print_stat(const RecordStat& stat, StatGroup group, const ShownPaths& shown) {
  if (group == StatGroup::kFile) fmt::print("{}", shown.heading());
  fmt::print("| Records |   Valid |  Failed | Copies |   Best (ms) | Median (ms) | {:^24} | {}\n",
             "Measured",
             group == StatGroup::kTask ? "Version | Task, target or device" : "Version | File");
  for (const StatRow& row : stat.rows)
    print_count(
        row.count,
        group == StatGroup::kTask ? place(row.name, row.target, row.device) : shown(row.name));
  const char* rows = group == StatGroup::kTask ? "tasks" : "files";
  print_count(stat.total, fmt::format("total, {} {}", stat.rows.size(), rows));
  for (const auto& [kind, records] : stat.total.failed)
    fmt::print("  {:>7} failed: {}\n", records, kind);
  if (stat.summary.damage.lines > 0)
    fmt::print("  {:>7} lines are no records\n", stat.summary.damage.lines);
  if (stat.summary.damage.files > 0)
    fmt::print("  {:>7} files end early\n", stat.summary.damage.files);
  if (stat.summary.other > 0)
    fmt::print("{} files in the folders hold no records\n", stat.summary.other);
}

Json to_json(const BestRecord& best, std::span<const RecordPath> files) {
  return {{"task", best.name},
          {"workload_key", best.task.workload_key},
          {"target", best.task.target},
          {"device", best.task.device},
          {"best_ms", best.time_s * 1e3},
          {"file", files[best.file].path},
          {"line", best.line}};
}

// The lines as they stand in their files, nothing left out or added.
Result<Unit> write_best(const BestRecords& best,
                        std::span<const RecordPath> files,
                        const std::string& path) {
  if (best.records.empty())
    return Error(path, ": not written, as none of ", best.summary.records, " records is valid");
  TRY_ASSIGN(const std::vector<std::string> lines, lines_of(best.records, files));
  TRY_ASSIGN(PackedWriter writer, PackedWriter::open(path));
  for (const std::string& line : lines) TRY(writer.write(line + "\n"));
  return writer.commit();
}

/// `records best` without -o: a table.
void show_best(const BestRecords& best, std::span<const RecordPath> files) {
  const ShownPaths shown(files);
  fmt::print("{}|   Best (ms) | Task, target or device | Record\n", shown.heading());
  for (const BestRecord& record : best.records) {
    fmt::print("| {:>11} | {} | {}:{}\n",
               milliseconds(record.time_s),
               place(record.name, record.task.target, record.task.device),
               shown(files[record.file].path),
               record.line);
  }
}

struct Stat {
  RecordFileOptions records;
  std::string by;

  void add_to(CLI::App& app) {
    records.add_to(app);
    add_option(app, "--by NAME", by).help("task or file", "task");
  }

  Result<int> run(const Invocation& call) const {
    if (!by.empty() && by != "task" && by != "file")
      return Error("--by: \"", by, "\" is not task or file");
    const StatGroup group = by == "file" ? StatGroup::kFile : StatGroup::kTask;
    TRY_ASSIGN(const std::vector<RecordPath> files, records.find("records stat"));
    TRY_ASSIGN(const RecordStat stat, count_records(files, group, records.jobs));
    if (!call.json) {
      print_stat(stat, group, ShownPaths(files));
      return done_reading(stat.summary, files);
    }
    Json rows = Json::array();
    for (const StatRow& row : stat.rows) rows.push_back(to_json(row, group));
    Json total = to_json(stat.total);
    // Times of different tasks have no common best.
    for (const char* key : {"best_ms", "median_ms"}) total.erase(key);
    fmt::print("{}\n",
               print_json({{group == StatGroup::kTask ? "tasks" : "files", rows},
                           {"total", total},
                           {"read", to_json(stat.summary)}}));
    return done_reading(stat.summary, files);
  }
};

struct Best {
  RecordFileOptions records;
  int64_t top_k = 1;
  std::string out_file;

  void add_to(CLI::App& app) {
    records.add_to(app);
    add_option(app, "--top-k N", top_k, 1).help("programs of each task", "1");
    add_out_file(app,
                 out_file,
                 "the record file to write; packed where it ends in .gz",
                 {FileKind::kJson, FileKind::kPacked});
  }
  Result<int> run(const Invocation& call) const { return keep(call, "records best", out_file); }

  Result<int> keep(const Invocation& call, const char* command, const std::string& out_file) const {
    TRY_ASSIGN(const std::vector<RecordPath> files, records.find(command));
    TRY(check_no_input(out_file, files));
    TRY_ASSIGN(const BestRecords best, find_best(files, static_cast<size_t>(top_k), records.jobs));
    if (!out_file.empty()) TRY(write_best(best, files, out_file));
    if (call.json) {
      Json list = Json::array();
      for (const BestRecord& record : best.records) list.push_back(to_json(record, files));
      fmt::print("{}\n",
                 print_json({{"best", list},
                             {"tasks", best.tasks},
                             {"tasks_without_valid", best.hopeless},
                             {"read", to_json(best.summary)}}));
      return done_reading(best.summary, files);
    }
    if (out_file.empty()) show_best(best, files);
    fmt::print("{} of {} records, {} tasks, {} of them without a valid record{}\n",
               best.records.size(),
               best.summary.records,
               best.tasks,
               best.hopeless,
               out_file.empty() ? "" : ": " + out_file);
    return done_reading(best.summary, files);
  }
};

struct Distill : Best {
  Result<int> run(const Invocation& call) const {
    TRY_ASSIGN(const std::string path, read_out_file(out_file, "records distill", "best.json"));
    return keep(call, "records distill", path);
  }
};

}  // namespace

RunCommand make_records_stat(CLI::App& app) { return make_command<Stat>(app); }
RunCommand make_records_best(CLI::App& app) { return make_command<Best>(app); }
RunCommand make_records_distill(CLI::App& app) { return make_command<Distill>(app); }

}  // namespace pruner
