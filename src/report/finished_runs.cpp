#include "report/finished_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "record/manifest.h"
#include "report/network_time.h"
#include "support/log.h"
#include "tune/work_dir.h"

namespace pruner {

namespace fs = std::filesystem;

namespace {

struct Run {
  std::string path, mode, update = "-";
  std::string subject, device;  // empty: not known
  std::string status = "done";
  TuningCurve curve;
};

/// "('resnet_50', [(1, 3, 224, 224)]), 27 tasks".
Result<std::string> subject_of(const RunManifest& manifest) {
  using Shapes = std::vector<std::vector<int64_t>>;
  TRY_ASSIGN(const Shapes shapes, json_get<Shapes>(manifest.more, "inputs"));
  TRY_ASSIGN(const int64_t tasks, json_get<int64_t>(manifest.more, "tasks"));
  return fmt::format(
      "{}, {} {}", print_network(manifest.input, shapes), tasks, tasks == 1 ? "task" : "tasks");
}

Result<Unit> read_facts(const RunManifest& manifest, Run& run) {
  TRY_ASSIGN(run.mode, json_get<std::string>(manifest.more, "mode"));
  TRY_ASSIGN(run.update, json_get<std::string>(manifest.more, "update_mode"));
  TRY_ASSIGN(run.subject, subject_of(manifest));
  run.device = manifest.device;
  const Result<double> end_to_end_ms = json_get<double>(manifest.more, "end_to_end_ms");
  if (end_to_end_ms.ok()) run.curve.end_to_end_s = *end_to_end_ms / 1e3;
  run.status = manifest.status;
  return Unit{};
}

Result<Run> read_run(const std::string& path) {
  std::error_code code;
  const bool folder = fs::is_directory(path, code);
  if (!folder && !fs::exists(path, code)) return Error(path, ": no such work dir");
  const std::string curve_file = path + "/" + kWorkDirCurve;
  if (folder && !fs::exists(curve_file, code))
    return Error(path, ": no ", kWorkDirCurve, " is in it; give the work dir of a `pruner tune`");
  fs::path named = fs::path(path).lexically_normal();
  if (!named.has_filename()) named = named.parent_path();  // "out/"
  Run run{.path = path, .mode = named.stem().string(), .subject = {}, .device = {}, .curve = {}};
  TRY_ASSIGN(run.curve, read_latency_curve(folder ? curve_file : path));
  if (folder && fs::exists(manifest_path(path), code)) {
    TRY_ASSIGN(const RunManifest manifest, read_manifest(path));
    const Result<Unit> read = read_facts(manifest, run);
    if (!read.ok()) return Error(manifest_path(path), ": ", read.error().message());
  }
  return run;
}

/// Returns the value of `field` that the runs share; empty if no run says it. Errors: they differ.
Result<std::string> common(const std::vector<Run>& runs,
                           std::string Run::*field,
                           const char* what) {
  const Run* first = nullptr;
  for (const Run& run : runs) {
    if ((run.*field).empty()) continue;
    if (first == nullptr) first = &run;
    if (run.*field != first->*field) {
      return Error(run.path,
                   ": is of ",
                   run.*field,
                   ", ",
                   first->path,
                   " of ",
                   first->*field,
                   "; runs of one ",
                   what,
                   " are compared");
    }
  }
  return first == nullptr ? std::string() : first->*field;
}

}  // namespace

Result<Comparison> compare_runs(const std::vector<std::string>& paths, bool warns) {
  std::vector<Run> runs;
  for (const std::string& path : paths) {
    TRY_ASSIGN(Run run, read_run(path));
    if (warns && run.status != "done")
      log_warning("{}: {}; its curve ends where the run did", path, run.status);
    runs.push_back(std::move(run));
  }
  Comparison comparison{.subject = {}, .device = {}, .modes = {}, .curves = {}};
  comparison.seconds_name = kSearchSeconds;
  TRY_ASSIGN(comparison.subject, common(runs, &Run::subject, "network"));
  if (comparison.subject.empty()) comparison.subject = runs.size() == 1 ? runs[0].mode : "runs";
  TRY_ASSIGN(comparison.device, common(runs, &Run::device, "device"));
  for (Run& run : runs) {
    const bool alone = std::ranges::count(runs, run.mode, &Run::mode) == 1;
    run.curve.mode = alone ? run.mode : fmt::format("{} ({})", run.mode, run.path);
    if (std::ranges::find(comparison.modes, run.curve.mode, &ComparedMode::name) !=
        comparison.modes.end())
      return Error(run.path, ": is there twice");
    run.curve.complete = true;
    comparison.modes.push_back({run.curve.mode, run.update});
    comparison.curves.push_back(std::move(run.curve));
  }
  return comparison;
}

Json run_facts(const std::string& mode,
               const std::string& update_mode,
               const std::vector<std::vector<int64_t>>& input_shapes,
               size_t tasks) {
  return {{"mode", mode}, {"update_mode", update_mode}, {"inputs", input_shapes}, {"tasks", tasks}};
}

}  // namespace pruner
