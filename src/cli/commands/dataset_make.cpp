// pruner dataset make: record files -> a file of features, and what became of every record.
#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/source.h"
#include "dataset/make.h"
#include "record/record_paths.h"
#include "record/record_stream.h"
#include "report/live_view.h"
#include "support/log.h"

namespace pruner {

namespace {

/// Adds the DAGs of --op, or of a network's tasks, cut for CPUs and for GPUs.
Result<Unit> add_tasks(const SourceOptions& what, RecordedPrograms& programs) {
  TRY(check_options(what));
  if (!what.named()) return Unit{};
  for (const char* text : {"llvm", "cuda"}) {
    TRY_ASSIGN(const Target target, parse_target(text, 0));
    TRY_ASSIGN(const Source source, read_source(what, target));
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

void print_table(const MakeSummary& summary, const MakeOptions& make) {
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
             make.out_file,
             total.kept,
             total.tasks,
             summary.rows,
             static_cast<double>(summary.lines) / summary.features_s,
             make.jobs);
}

struct Make {
  MakeOptions make;
  SourceOptions what;  // DAGs
  std::vector<std::string> dags, targets;
  std::string hold_out, preset, failed = "keep", duplicates = "best";
  int64_t pam = 1;  // no effect: a file has the features of every model

  void add_to(CLI::App& app) {
    begin_group(app, OptionGroup::kFiles);
    add_list(app, "--records,--logs FILES", make.records)
        .help("record files, patterns or folders; packed or not");
    add_list(app, "--dags FILES", dags)
        .help("files of compute DAGs, for keys that are a hash, and of networks' tasks");
    begin_group(app, OptionGroup::kInput);
    add_option(app, "--network NAME", what.network)
        .help("a built-in network (`pruner networks` lists them)");
    add_op(app, what.ops);
    add_sizes(app, what.sizes);
    begin_group(app, OptionGroup::kTarget);
    add_list(app, "--target TARGET", targets)
        .help("only records of this device: 'cuda --model=k80', llvm; several: of all of them");
    add_option(app, "--mixed-targets", make.mixed_targets).help("take records of any device");
    begin_group(app, OptionGroup::kInput);
    add_option(app, "--hold-out NETWORKS", hold_out)
        .help(
            "leave out the tasks of networks: all_five, resnet-50, or names with commas between "
            "them");
    add_option(app, "--preset NETWORKS", preset)
        .help("only the tasks of networks: batch-size-1, or names with commas between them");
    add_option(app, "--sample-in-files N", make.sample_in_files)
        .help("so many files, drawn at random");
    add_option(app, "--min-sample-size N", make.min_sample_size)
        .help("leave out tasks with fewer programs", "48");
    add_option(app, "--n-task N", make.max_tasks).help("only the first so many tasks");
    add_option(app, "--failed NAME", failed).help("failed trials: keep or drop", "keep");
    add_option(app, "--duplicates NAME", duplicates)
        .help("of a program measured more than once: best or last", "best");
    add_option(app, "--pam N", pam).help("no effect: the file has the features of every model");
    add_seed(app, make.seed);
    add_jobs(app, make.jobs);
    add_out_file(app,
                 make.out_file,
                 "the feature file to write",
                 {FileKind::kOther, FileKind::kPacked, FileKind::kJson});
  }

  /// Checks the options, and reads those that are texts.
  Result<Unit> read_options() {
    if (make.records.empty())
      return Error("dataset make: no records are named; e.g. --records 'k80/*.json*'");
    if (make.out_file.empty())
      return Error("dataset make: no file to write is named; give one with -o FILE");
    if (failed != "keep" && failed != "drop")
      return Error("--failed: \"", failed, "\" is not keep or drop");
    if (duplicates != "best" && duplicates != "last")
      return Error("--duplicates: \"", duplicates, "\" is not best or last");
    make.keep_failed = failed == "keep";
    make.duplicates = duplicates == "best" ? DuplicateRule::kBest : DuplicateRule::kLast;
    for (const std::string& target : targets) {
      make.targets.push_back(parse_device_label(target));
      if (make.targets.back().kind.empty()) return Error("--target: an empty text names no device");
    }
    return Unit{};
  }

  Result<int> run(const Invocation& call) {
    TRY(read_options());
    for (const std::vector<std::string>* named : {&make.records, &dags}) {
      TRY_ASSIGN(const std::vector<RecordPath> files, find_record_files(*named));
      TRY(check_no_input(make.out_file, files));
    }
    TRY_ASSIGN(std::vector<NetworkInput> held, read_networks("--hold-out", hold_out));
    TRY_ASSIGN(std::vector<NetworkInput> asked, read_networks("--preset", preset));
    NetworkTasks without(std::move(held)), only(std::move(asked));
    ansor::WorkloadTable workloads;
    RecordedPrograms programs(workloads, std::nullopt);
    if (!dags.empty()) {
      TRY_ASSIGN(const std::vector<RecordPath> files, find_record_files(dags));
      for (const RecordPath& file : files) {
        const Result<Unit> added = workloads.add_file(file.path);
        // A folder may hold other files; a file that is named must be a file of DAGs.
        if (!added.ok() && file.named) return added.error();
        TRY(without.add_file(file.path));
        TRY(only.add_file(file.path));
      }
    }
    TRY(add_tasks(what, programs));
    warn_of_unnamed("--hold-out", without);
    warn_of_unnamed("--preset", only);
    LiveView live(stderr, call.quiet);
    const auto on_progress = [&](int64_t files, int64_t all, int64_t records) {
      // Without a terminal each report would be a line of its own.
      if (!live.terminal()) return;
      live.say(fmt::format("{} of {} files, {} records", files, all, records));
    };
    TRY_ASSIGN(const MakeSummary summary,
               make_dataset(make, {programs, without, only, on_progress}));
    live.finish();
    if (call.json) {
      Json json = {{"file", make.out_file}};
      json.update(to_json(summary));
      json["records_per_s"] = static_cast<double>(summary.lines) / summary.features_s;
      fmt::print("{}\n", print_json(json));
    } else {
      print_table(summary, make);
    }
    if (const auto cut = summary.unreadable_files.find(kEndsEarly);
        cut != summary.unreadable_files.end())
      return Error(cut->second.first, ": ", kEndsEarly, "; what comes before was taken");
    return kDone;
  }
};

}  // namespace

RunCommand make_dataset_make(CLI::App& app) { return make_command<Make>(app); }

}  // namespace pruner
