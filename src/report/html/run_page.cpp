#include "report/html/run_page.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <filesystem>

#include "report/finished_runs.h"
#include "report/html/page.h"
#include "tune/work_dir.h"

namespace pruner {

namespace {

std::optional<double> number_of(const Json& object, const char* key) {
  const Result<double> value = json_get<double>(object, key);
  return value.ok() ? std::optional(*value) : std::nullopt;
}

std::optional<double> seconds_of(const Json& object, const char* key_of_ms) {
  const std::optional<double> ms = number_of(object, key_of_ms);
  return ms ? std::optional(*ms / 1e3) : std::nullopt;
}

std::string text_of(const Json& object, const char* key) {
  const Result<std::string> value = json_get<std::string>(object, key);
  return value.ok() ? *value : "";
}

Verdict verdict_of(const RunFolder& run, const std::vector<Peer>& peers) {
  const RunManifest& manifest = run.manifest;
  Verdict verdict{.subject = manifest.input,
                  .mode = text_of(manifest.more, "mode"),
                  .device = manifest.device,
                  .status = manifest.status,
                  .untuned_s = run.sum_s(&TaskFacts::untuned_s),
                  .tuned_s = run.sum_s(&TaskFacts::best_s),
                  .module_s = seconds_of(manifest.more, "end_to_end_ms"),
                  .module_std_s = seconds_of(manifest.more, "end_to_end_std_ms"),
                  .peers = peers,
                  .tasks = static_cast<int64_t>(run.tasks.size()),
                  .spent_s = manifest.spent_s,
                  .others_share = number_of(manifest.more, "others_share").value_or(0)};
  const Result<Json> race = json_get<Json>(manifest.more, "race");
  if (race.ok() && race->is_object()) {
    const auto of = [&](const char* key) { return number_of(*race, key).value_or(0); };
    verdict.race = {of("untuned_ms") / 1e3,
                    of("ms") / 1e3,
                    of("speedup"),
                    of("speedup_low"),
                    of("speedup_high")};
  }
  for (const TaskFacts& task : run.tasks) {
    verdict.trials += task.trials;
    verdict.tasks_without_time += !task.best_s;
  }
  return verdict;
}

Phases phases_of(const RunManifest& manifest) {
  const auto of = [&](const char* key) { return number_of(manifest.more, key).value_or(0); };
  return {of("explore_s"), of("train_s"), of("build_s"), of("measure_s"), manifest.spent_s};
}

std::optional<PairCount> model_pairs(const RunManifest& manifest) {
  const Result<Json> pairs = json_get<Json>(manifest.more, "model_pairs");
  if (!pairs.ok()) return std::nullopt;
  const auto of = [&](const char* key) {
    return static_cast<int64_t>(number_of(*pairs, key).value_or(0));
  };
  return PairCount{of("right"), of("all")};
}

std::string moment_text(int64_t unix_s) {
  return unix_s == 0 ? "" : fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(unix_s));
}

using Facts = std::vector<std::pair<std::string, std::string>>;
Facts about(const std::string& path, const RunFolder& run) {
  const RunManifest& manifest = run.manifest;
  return {{"Command", manifest.command},
          {"Tuned", manifest.input},
          {"Work dir", path},
          {"Pruner", manifest.version},
          {"Device", manifest.device},
          {"Seed", std::to_string(manifest.seed)},
          {"Status", manifest.status},
          {"Started", moment_text(manifest.started)},
          {"Last change", moment_text(manifest.updated)},
          {"Records", fmt::format("{}, of this device", run.measured)},
          {"Lines that are no records", run.damaged == 0 ? "" : std::to_string(run.damaged)},
          {"XXH3-128 of records.json", run.records_hash}};
}

/// Nothing of a run alone that ended, or is, before its first round did.
Result<Comparison> compare_curves(const std::vector<std::string>& paths) {
  std::error_code code;
  if (paths.size() == 1 && !std::filesystem::exists(paths[0] + "/" + kWorkDirCurve, code))
    return Comparison{.subject = {}, .device = {}, .modes = {}, .curves = {}};
  return compare_runs(paths, paths.size() > 1);  // the page says it of the first
}

}  // namespace

Result<RunPage> make_run_page(const std::vector<std::string>& paths,
                              const RunPageOptions& options,
                              KnownTasks& known) {
  TRY_ASSIGN(const RunFolder run, read_run_folder(paths.front(), known, options.jobs));
  TRY_ASSIGN(Comparison comparison, compare_curves(paths));
  Page page{.title = run.manifest.input + ": tuning", .sections = {}};
  if (run.manifest.status == "running") page.refresh_s = options.refresh_s;
  page.sections = {
      verdict_section(verdict_of(run, options.peers)),
      curves_section(comparison),
      tasks_section(run.tasks, run.ceiling),
      roofline_section(run.tasks, run.ceiling),
      phases_section(phases_of(run.manifest)),
      failures_section(run.failures, run.measured),
      calibration_section({run.trials, run.no_draft, model_pairs(run.manifest)}, run.tasks),
      decisions_section(run.trials, run.tasks),
      noise_section({run.trials, run.remeasured, run.beside_others}, run.tasks),
      about_section(about(paths.front(), run)),
  };
  return RunPage{print_page(page), run.manifest.status, std::move(comparison)};
}

}  // namespace pruner
