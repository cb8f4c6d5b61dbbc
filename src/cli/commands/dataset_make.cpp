// pruner dataset make: record files -> a file of features, and what became of every record.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/source.h"
#include "dataset/make.h"
#include "record/record_stream.h"
#include "report/progress.h"
#include "support/log.h"

namespace pruner {

namespace {

constexpr int64_t kMinSampleSize = 48;  // TenSet's

Result<MakeOptions> make_options(const Options& options) {
  if (options.records.empty())
    return Error("dataset make: no records are named; e.g. --records 'k80/*.json*'");
  if (options.out_file.empty())
    return Error("dataset make: no file to write is named; give one with -o FILE");
  MakeOptions make{
      .records = options.records,
      .out_file = options.out_file,
      .sample_in_files = options.sample_in_files,
      .min_sample_size = options.min_sample_size < 0 ? kMinSampleSize : options.min_sample_size,
      .max_tasks = options.max_tasks,
      .seed = static_cast<uint64_t>(options.seed),
      .keep_failed = options.failed == "keep",
      .duplicates = options.duplicates == "best" ? DuplicateRule::kBest : DuplicateRule::kLast,
      .targets = {},
      .mixed_targets = options.mixed_targets,
      .jobs = job_count(options)};
  if (options.failed != "keep" && options.failed != "drop")
    return Error("--failed: \"", options.failed, "\" is not keep or drop");
  if (options.duplicates != "best" && options.duplicates != "last")
    return Error("--duplicates: \"", options.duplicates, "\" is not best or last");
  for (const std::string& target : options.targets) {
    make.targets.push_back(parse_device_label(target));
    if (make.targets.back().kind.empty()) return Error("--target: an empty text names no device");
  }
  return make;
}

/// DAGs of --op, or of a network's tasks, cut for CPUs and for GPUs.
Result<Unit> add_tasks(const Options& options, RecordedPrograms& programs) {
  if (options.op.empty() && options.network.empty()) return Unit{};
  for (const char* text : {"llvm", "cuda"}) {
    TRY_ASSIGN(const Target target, parse_target(text, 0));
    TRY_ASSIGN(const Source source, read_source(options, target));
    for (const WeightedTask& weighted : source.tasks) programs.add_task(weighted.task.dag);
  }
  return Unit{};
}

Result<std::vector<NetworkInput>> read_networks(const char* flag, const std::string& text) {
  if (text.empty()) return std::vector<NetworkInput>();
  Result<std::vector<NetworkInput>> networks = network_set(text);
  if (!networks.ok()) return Error(flag, ": ", networks.error().message());
  return networks;
}

void warn_of_unnamed(const char* flag, const NetworkTasks& tasks) {
  const std::vector<std::string> names = tasks.unnamed();
  if (names.empty()) return;
  constexpr size_t kShown = 6;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i)
    text += (text.empty() ? "" : ", ") + names[i];
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  log_warning(
      "{}: no file of --dags has tasks of {}; of keys that are a hash, theirs are not known",
      flag,
      text);
}

void print_row(const DeviceCount& c) {
  fmt::print(
      "| {:>8} | {:>8} | {:>7} | {:>8} | {:>7} | {:>7} | {:>6} | {:>7} | {:>8} | {:>8} | {:>5} | "
      "{}\n",
      c.records,
      c.valid,
      c.failed,
      c.held_out,
      c.no_dag,
      c.not_rebuilt,
      c.bad_label,
      c.duplicates,
      c.too_few + c.beyond,
      c.kept,
      c.tasks,
      c.target);
}

void print_reasons(const char* what, const Reasons& reasons) {
  for (const auto& [reason, entry] : reasons)
    fmt::print("  {:>7} {}: {} (first: {})\n", entry.count, what, reason, entry.first);
}

void print_table(const MakeSummary& summary, const Options& options) {
  fmt::print(
      "|  Records |    Valid |  Failed | Held out |  No DAG | Refused |  Label | Doubles | Too few "
      " |     Kept | Tasks | Device\n");
  for (const DeviceCount& device : summary.devices) print_row(device);
  if (summary.devices.size() > 1) print_row(summary.total());
  print_reasons("files", summary.unreadable_files);
  print_reasons("lines are no record", summary.unreadable);
  print_reasons("no DAG", summary.no_dag);
  print_reasons("not rebuilt", summary.not_rebuilt);
  print_reasons("no label", summary.bad_label);
  if (summary.other_targets > 0)
    fmt::print("  {:>7} of another target than --target\n", summary.other_targets);
  if (summary.other_files > 0)
    fmt::print("  {:>7} files in the folders hold no records\n", summary.other_files);
  const DeviceCount total = summary.total();
  fmt::print("{}: {} programs of {} tasks, {} rows of features; {:.0f} records/s, {} threads\n",
             options.out_file,
             total.kept,
             total.tasks,
             summary.rows,
             static_cast<double>(summary.lines) / summary.features_s,
             job_count(options));
}

}  // namespace

Result<int> run_dataset_make(const Options& options) {
  TRY_ASSIGN(const MakeOptions make, make_options(options));
  TRY_ASSIGN(std::vector<NetworkInput> held, read_networks("--hold-out", options.hold_out));
  TRY_ASSIGN(std::vector<NetworkInput> asked, read_networks("--preset", options.preset));
  NetworkTasks held_out(std::move(held)), only(std::move(asked));
  ansor::WorkloadTable workloads;
  RecordedPrograms programs(workloads, std::nullopt);
  if (!options.dags.empty()) {
    TRY_ASSIGN(const std::vector<RecordPath> files, find_record_files(options.dags));
    for (const RecordPath& file : files) {
      const Result<Unit> added = workloads.add_file(file.path);
      if (!added.ok() && file.named) return added.error();
      TRY(held_out.add_file(file.path));
      TRY(only.add_file(file.path));
    }
  }
  TRY(add_tasks(options, programs));
  warn_of_unnamed("--hold-out", held_out);
  warn_of_unnamed("--preset", only);
  LiveLine live(stderr);
  const auto on_progress = [&](int64_t files, int64_t all, int64_t records) {
    if (isatty(STDERR_FILENO) == 0) return;
    live.show(fmt::format("{} of {} files, {} records", files, all, records));
  };
  TRY_ASSIGN(const MakeSummary summary,
             make_dataset(make, {programs, held_out, only, on_progress}));
  live.finish();
  if (options.json) {
    Json json = {{"file", options.out_file}};
    json.update(to_json(summary));
    json["records_per_s"] = static_cast<double>(summary.lines) / summary.features_s;
    fmt::print("{}\n", print_json(json));
  } else {
    print_table(summary, options);
  }
  if (const auto cut = summary.unreadable_files.find(kEndsEarly);
      cut != summary.unreadable_files.end())
    return Error(cut->second.first, ": ", kEndsEarly, "; what comes before was taken");
  return kDone;
}

}  // namespace pruner
