// pruner compile: network or operator, and records if there are any, to a module.
#include <fmt/ranges.h>

#include <charconv>
#include <filesystem>
#include <mutex>
#include <optional>

#include "cli/commands.h"
#include "cli/denormals.h"
#include "cli/module_file.h"
#include "cli/nearest_choice.h"
#include "cli/pool.h"
#include "cli/record_files.h"
#include "cli/stages.h"
#include "cli/verify.h"
#include "record/manifest.h"
#include "report/network_time.h"
#include "support/log.h"
#include "support/output_file.h"
#include "transfer/shipped.h"

namespace pruner {

namespace {

/// The number of --task, checked.
Result<size_t> task_number(const std::string& text, size_t tasks) {
  size_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, code] = std::from_chars(text.data(), end, number);
  if (!text.empty() && (code != std::errc() || at != end || number >= tasks)) {
    return Error("--task: \"", text, "\" is no task number; there are ", tasks, ", from 0");
  }
  return number;
}

/// Returns the network or tasks that records are of, if known. The run.json beside a file names the
/// network and its inputs; else a task's name has its shapes.
std::string origin_of(const std::vector<FileRecords>& files) {
  for (const FileRecords& file : files) {
    const std::string folder = std::filesystem::path(file.path).parent_path().string();
    const Result<RunManifest> run = read_manifest(folder.empty() ? "." : folder);
    if (run.ok() && !run->input.empty()) {
      const auto shapes = json_get<std::vector<std::vector<int64_t>>>(run->more, "inputs");
      return shapes.ok() ? print_network(run->input, *shapes) : run->input;
    }
    for (const Record& record : file.records)
      if (!record.task_name.empty()) return "tasks such as " + record.task_name;
  }
  return "";
}

/// Reads the best schedules for the source's tasks; empty without files. Errors: no record is of
/// this device, or none is of these tasks. Some records of others are a warning.
Result<RecordedSchedules> read_schedules(const std::vector<std::string>& named,
                                         int jobs,
                                         const Source& source,
                                         const Target& target) {
  if (named.empty()) return RecordedSchedules({}, target);
  if (source.tasks.empty()) {
    log_warning("{}: the network has no task, so --records is not read", source.name);
    return RecordedSchedules({}, target);
  }
  TRY_ASSIGN(std::vector<FileRecords> read, read_record_files(named, "--records", jobs));
  const std::string origin = origin_of(read);
  std::vector<Record> records;
  for (FileRecords& file : read) std::ranges::move(file.records, std::back_inserter(records));
  const int64_t all = std::ranges::count_if(
      records, [](const Record& record) { return record.origin != kShapesOrigin; });
  RecordedSchedules schedules(std::move(records), target);

  const std::string files = fmt::format("{}", fmt::join(named, ", "));
  const std::string instead = "tune it here, or leave --records out";
  int64_t of_tasks = 0;
  for (const WeightedTask& task : source.tasks) of_tasks += schedules.of_task(task.task);
  if (schedules.of_device() == 0)
    return Error(fmt::format("{}: {} records, none of this device ({}); {}",
                             files,
                             all,
                             device_fingerprint(target),
                             instead));
  if (of_tasks == 0)
    return Error(fmt::format("{}: {} records{}, none of {} with these shapes: {}; {}",
                             files,
                             all,
                             origin.empty() ? "" : " of " + origin,
                             source.name,
                             print_network(source.name, input_shapes(source.partition())),
                             instead));
  if (of_tasks < all) {
    log_warning("{}: {} records are of another device, {} of another model; they are left out",
                files,
                all - schedules.of_device(),
                schedules.of_device() - of_tasks);
  }
  return schedules;
}

/// Collects, from all threads, why records that were given are not used.
struct UnknownRecords {
  std::mutex mutex;
  Reasons reasons;

  void warn(const std::vector<std::string>& files) const {
    if (reasons.empty()) return;
    const auto& [reason, entry] = *reasons.begin();
    log_warning("{}: {} records are left out: {} (of {})",
                fmt::join(files, ", "),
                total(reasons),
                reason,
                entry.first);
  }
};
/// Chooses the best recorded schedules. `schedules` and `unknown` outlive the result.
ScheduleChoice noted_choice(const RecordedSchedules& schedules, UnknownRecords& unknown) {
  return [&schedules, &unknown](const Task& task, const Space& space) {
    Reasons reasons;
    std::optional<Candidate> best = schedules.best(task, space, &reasons);
    const std::lock_guard lock(unknown.mutex);
    add(unknown.reasons, reasons);
    return best;
  };
}

/// Chooses by `first`, else by `second`.
ScheduleChoice either(ScheduleChoice first, ScheduleChoice second) {
  return
      [first = std::move(first), second = std::move(second)](const Task& task, const Space& space) {
        std::optional<Candidate> chosen = first(task, space);
        return chosen ? chosen : second(task, space);
      };
}

// Takes schedules of this device's records, then of like tasks, then those that need no search.
struct Compile {
  SourceOptions what;
  TargetOptions on;
  std::string forms_text;
  std::string denormals = kDenormalsDefault;
  uint64_t seed = 0;
  int jobs = 0;
  int64_t trials = 0;
  OfferOptions offers;
  bool no_shipped_records = false;  // has no effect beside --pool
  bool verify = false, no_check = false;
  std::vector<std::string> records;
  ModuleFileOptions module;
  std::string print;  // a stage; with --print nothing is written

  void add_to(CLI::App& app) {
    what.add_to(app, "a compute DAG as JSON; with --print: the number of a task");
    on.add_to(app);
    add_psa(app, on.device);
    add_denormals(app, denormals);
    add_seed(app, seed);
    add_forms(app, forms_text);
    add_jobs(app, jobs);
    begin_group(app, OptionGroup::kBudget);
    add_option(app, "--n-trials N", trials)
        .help("0: nothing is measured here; `pruner tune` does it", "0");
    begin_group(app, OptionGroup::kFiles);
    add_option(app, "--pool FILES", offers.pool)
        .help(
            "records of tuned networks, ours or Ansor's, for tasks without one: files, patterns or "
            "folders",
            "those that come with the program");
    add_option(app, "--dags FILES", offers.dags)
        .help("files of compute DAGs, for Ansor's records in --pool whose keys are a hash");
    add_option(app, "--no-shipped-records", no_shipped_records)
        .help("tasks without a record take their default schedule");
    add_option(app, "--records,--logs,--log-file FILES", records)
        .help("records to take the best schedules from");
    module.add_to(app, "the module to write, a shared library: NAME.so");
    add_verify(app, verify);
    add_no_check(app, no_check);
    begin_group(app, OptionGroup::kOutput);
    add_option(app, "--print STAGE", print)
        .help(
            "dag, sketches, candidate, nest, draft, program, emitted, llvm, asm, cuda, opencl, "
            "ptx; "
            "after-PASS: the program half way through lowering (after-loops: before any pass)");
  }

  /// Reads the schedules that tasks without a record take.
  Result<NearestSchedules> read_nearest(const Source& source,
                                        const Target& target,
                                        bool quiet) const {
    std::vector<Record> records;
    if (!offers.pool.empty()) {
      TRY_ASSIGN(std::vector<TransferSource> sources, read_pool(offers, source.tasks, jobs, quiet));
      for (TransferSource& from : sources)
        std::ranges::move(from.best, std::back_inserter(records));
    } else if (!no_shipped_records) {
      records = shipped_records(target);
    }
    return NearestSchedules(std::move(records));
  }

  /// Options that would have no effect are refused.
  Result<Unit> check_options() const {
    if (trials != 0) {
      return Error("--n-trials: compile measures nothing, so it takes 0; `pruner tune --n-trials ",
                   trials,
                   "` makes records for its --records");
    }
    if (!print.empty() && !module.file.empty())
      return Error("-o: --print makes no module; leave out one of them");
    if (!print.empty() && verify)
      return Error("--verify: --print makes no module to verify; leave out one of them");
    return check_offers(offers);
  }

  Result<int> run(const Invocation& call) const {
    TRY_ASSIGN(const bool flushes, flushes_denormals(denormals));
    TRY(check_options());
    if (!module.file.empty()) TRY(module.check(module.file));
    SourceOptions named = what;
    if (!print.empty()) named.task.clear();  // --task is the number of a task here
    TRY_ASSIGN(const Target target, read_target(on));
    TRY(check_one_operator(named));
    TRY_ASSIGN(Source source, read_source(named, target));
    const std::string path = module.file.empty() ? source.name + ".so" : module.file;
    if (print.empty()) TRY(module.check(path));
    TRY_ASSIGN(const std::vector<std::string> forms, read_forms(forms_text));
    TRY_ASSIGN(const RecordedSchedules schedules, read_schedules(records, jobs, source, target));
    TRY_ASSIGN(NearestSchedules nearest, read_nearest(source, target, call.json));
    NearestCounts counts;
    UnknownRecords unknown;
    const ScheduleChoice choice =
        either(noted_choice(schedules, unknown), nearest_choice(std::move(nearest), &counts));
    if (!print.empty()) {
      TRY_ASSIGN(const size_t number, task_number(what.task, source.tasks.size()));
      TRY_ASSIGN(const std::string text,
                 print_stage(print, source.tasks[number].task, choice, forms));
      fmt::print("{}", text);
      return kDone;
    }
    TRY(draw_constants(source, seed));
    // A module that is to be verified takes its place once it is verified.
    std::optional<OutputFile> verified;
    if (verify) {
      TRY_ASSIGN(OutputFile opened, OutputFile::open(path));
      verified.emplace(std::move(opened));
    }
    TRY_ASSIGN(const ModuleSummary summary,
               build_module(source.phases,
                            target,
                            choice,
                            {.jobs = jobs,
                             .work_dir = "",
                             .forms = forms,
                             .times = schedule_times(schedules),
                             .check = !no_check,
                             .reports = path,
                             .flushes_denormals = flushes},
                            verified ? verified->path() : path));
    unknown.warn(records);
    const int taken_over = counts.same + counts.near;
    std::string text =
        fmt::format("{}: {} kernels, {:.1f} MB of weights, {:.1f} MB of activations, {:.1f} s\n",
                    path,
                    summary.kernels,
                    static_cast<double>(summary.weight_bytes) / 1e6,
                    static_cast<double>(summary.activation_bytes) / 1e6,
                    summary.seconds);
    if (summary.state_bytes > 0)
      text += fmt::format("{:.1f} MB of states\n", static_cast<double>(summary.state_bytes) / 1e6);
    if (taken_over > 0)
      text += fmt::format("{} kernels have schedules {}, {} of them those of a like task\n",
                          taken_over,
                          offers.pool.empty() ? "that come with the program" : "of --pool",
                          counts.near.load());
    Json json = {{"module", path},
                 {"kernels", summary.kernels},
                 {"weight_bytes", summary.weight_bytes},
                 {"activation_bytes", summary.activation_bytes},
                 {"state_bytes", summary.state_bytes},
                 {"taken_over", {{"same_task", counts.same.load()}, {"near", counts.near.load()}}},
                 {"seconds", summary.seconds}};
    json["numerics"] = summary.numerics;
    if (summary.numerics == numerics_name(Numerics::kOnnxRuntime))
      text += "quantized operators round as ONNX Runtime's do\n";
    show_checked(summary, json, text);
    if (verify) {
      TRY_ASSIGN(const Agreement agreement,
                 verify_module(verified->path(), source.phases, target, jobs));
      TRY(show(agreement, json, text));
      TRY(verified->commit());
    }
    return call.show(json, text);
  }
};

}  // namespace

RunCommand make_compile(CLI::App& app) { return make_command<Compile>(app); }

}  // namespace pruner
