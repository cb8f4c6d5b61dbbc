// pruner tune: the main job. Source and work dir -> Tuner -> table, records, module.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "cli/commands.h"
#include "cli/duration.h"
#include "cli/interrupt.h"
#include "cli/measurer.h"
#include "cli/pool.h"
#include "cli/schedules.h"
#include "cli/search_options.h"
#include "cli/version.h"
#include "deploy/loaded_module.h"
#include "deploy/module.h"
#include "report/finished_runs.h"
#include "report/network_time.h"
#include "report/progress.h"
#include "report/task_list.h"
#include "report/tune_report.h"
#include "support/file.h"
#include "support/log.h"
#include "tune/session.h"

namespace pruner {

namespace {

Result<TuneOptions> tune_options(const Options& options, const Target& target) {
  const bool elsewhere = !row_of(target.backend).on_host;  // is measured
  TuneOptions tune{.round_size = options.round_size,
                   .early_stopping = options.early_stopping,
                   .task_early_stopping = options.task_early_stopping,
                   .measured_at_once = elsewhere ? options.round_size : job_count(options),
                   .seed = static_cast<uint64_t>(options.seed),
                   .search_ahead = elsewhere};
  if (!options.budget.empty()) {
    const Result<double> budget_s = parse_duration_s(options.budget);
    if (!budget_s.ok()) return Error("--budget: ", budget_s.error().message());
    tune.budget_s = *budget_s;
  }
  if (options.trials > 0 || options.budget.empty()) {
    tune.trials = options.trials > 0 ? options.trials : kDefaultTrials;
  }
  return tune;
}

Json dry_run(const Source& source, const TuneOptions& tune, const std::string& work_dir) {
  return {{"work_dir", work_dir},
          {"trials", tune.trials == kNoTrialLimit ? Json() : Json(tune.trials)},
          {"budget_s", std::isfinite(tune.budget_s) ? Json(tune.budget_s) : Json()},
          {"round_size",
           round_size(tune.round_size, tune.trials, static_cast<int64_t>(source.tasks.size()))},
          {"tasks", task_list_json(source.tasks)}};
}

void print_dry_run(const Json& plan, const Source& source) {
  const auto limit = [&](const char* key, const char* unit) {
    return plan[key].is_null() ? std::string()
                               : fmt::format("{:.0f} {}, ", plan[key].get<double>(), unit);
  };
  fmt::print("{}Would tune for {}{}{} trials a round, into {}; nothing was done\n",
             print_task_list(source.tasks),
             limit("trials", "trials"),
             limit("budget_s", "s"),
             plan["round_size"].get<int64_t>(),
             plan["work_dir"].get<std::string>());
}

/// The module of the best schedules, and its time.
Result<Json> make_module(const Source& source,
                         const Target& target,
                         const Tuner& tuner,
                         const std::string& path,
                         const ModuleOptions& options) {
  TRY(build_module(source.partition, target, schedule_choice(tuner), options, path));
  TRY_ASSIGN(LoadedModule module, load_module(path, target.threads));
  TRY_ASSIGN(const BenchResult result, module.bench(seeded_inputs(module.inputs(), 0), {}));
  return Json{{"module", path},
              {"mean_ms", result.mean_ms},
              {"std_ms", result.std_ms},
              {"median_ms", result.median_ms}};
}

/// The network's module, and how long it takes: in results.tsv, run.json, and as printed.
Result<Json> make_network(const Options& options,
                          const Source& source,
                          const Target& target,
                          const std::string& mode,
                          const ModuleOptions& module,
                          Session& session) {
  const Tuner& tuner = session.tuner();
  const std::string path =
      options.out_file.empty() ? session.dir().file(source.name + ".so") : options.out_file;
  TRY_ASSIGN(const Json made, make_module(source, target, tuner, path, module));
  const double mean_ms = made["mean_ms"].get<double>(), std_ms = made["std_ms"].get<double>();
  TRY(append_result(
      session.dir().file("results.tsv"), target, source.partition, {source.name, mode, mean_ms}));
  TRY(session.note({{"end_to_end_ms", mean_ms}, {"end_to_end_std_ms", std_ms}}));
  if (options.json) return made;
  std::optional<double> estimated_ms = tuner.total_latency_s();
  if (estimated_ms) *estimated_ms *= 1e3;
  fmt::print("{}\nMean inference time (std dev): {:.2f} ms ({:.2f} ms)\n{}",
             print_network(source.name, input_shapes(source.partition)),
             mean_ms,
             std_ms,
             explain_estimate(estimated_ms, mean_ms, std_ms));
  return made;
}

/// The curve of the folder, earlier runs included, as a plot beside it; none before every task has
/// a time.
Result<Unit> draw_curve(const WorkDir& dir, const std::string& subject, const std::string& mode) {
  std::error_code code;
  if (!std::filesystem::exists(dir.curve(), code)) return Unit{};
  TRY_ASSIGN(TuningCurve curve, read_latency_curve(dir.curve()));
  if (curve.points.empty()) return Unit{};
  curve.mode = mode;
  Comparison run{.subject = fmt::format("{}, {} trials", subject, curve.trials),
                 .device = {},
                 .modes = {{mode, ""}},
                 .curves = {std::move(curve)}};
  run.seconds_name = kSearchSeconds;
  return write_file(dir.file("tuning_curve.svg"), curves_svg(run));
}

}  // namespace

Result<int> run_tune(const Options& options) {
  TRY_ASSIGN(const Target target, read_target(options));
  TRY_ASSIGN(TuneOptions tune, tune_options(options, target));
  TRY_ASSIGN(Contestant mode, read_contestant(options, target));
  tune.mode = mode.name;
  tune.policy = mode.mode.policy;
  tune.search = mode.search;
  TRY_ASSIGN(Source source, read_source(options, target));
  TRY(keep_matching(options, source.tasks));
  mode.models.warm_up_samples =
      trials_of_a_round_each(tune.round_size, tune.trials, source.tasks.size());
  TRY_ASSIGN(const ModeModels models, make_models(mode));
  std::vector<TransferSource> pool;
  if (!options.pool.empty()) {
    TRY_ASSIGN(pool, read_pool(options, source.tasks));
    say_offers(pool, source.tasks);
    start_warm(tune, pool, *models.draft);
  }
  const std::string work_dir = options.work_dir.empty() ? "out_" + source.name : options.work_dir;
  if (options.dry_run) {
    const Json plan = dry_run(source, tune, work_dir);
    options.json ? fmt::print("{}\n", print_json(plan)) : print_dry_run(plan, source);
    return kDone;
  }

  const std::atomic<bool>& interrupted = catch_interrupts();
  TRY_ASSIGN(const std::unique_ptr<Measurer> measurer,
             make_measurer(options, source, target, interrupted));
  LiveLine live(stderr);
  const auto on_round = [&](const Tuner& tuner, const RoundSummary& summary) {
    live.show(print(round_line(tuner, summary, tune.trials)));
  };
  const SessionOptions session_options{.tune = tune,
                                       .work_dir = work_dir,
                                       .fresh = options.fresh,
                                       .accept_foreign = options.continue_tuning,
                                       .command = options.command_line,
                                       .version = kVersion,
                                       .input = source.name,
                                       .facts = run_facts(mode.name,
                                                          std::string(update_mode(mode.mode)),
                                                          input_shapes(source.partition),
                                                          source.tasks.size())};
  TRY_ASSIGN(
      const std::unique_ptr<Session> session,
      Session::open(
          source.tasks, session_options, {*measurer, models.models(), interrupted, on_round}));
  TRY_ASSIGN(const TuneEnd end, session->run());
  live.finish();

  const Tuner& tuner = session->tuner();
  Json summary = tune_summary(tuner, end);
  if (!options.json) {
    fmt::print("{}{}",
               print_task_table(task_rows(tuner)),
               print_total(tuner.total_latency_s(), tuner.trials(), tuner.elapsed_s(), -1));
  }
  TRY(draw_curve(session->dir(), source.name, mode.name));
  if (source.network && end != TuneEnd::kInterrupted) {
    const ModuleOptions module{job_count(options), "", tune.search.forms};
    TRY_ASSIGN(const Json made, make_network(options, source, target, mode.name, module, *session));
    summary.update(made);
  }
  if (options.json) fmt::print("{}\n", print_json(summary));
  return end == TuneEnd::kInterrupted ? kInterrupted : kDone;
}

}  // namespace pruner
