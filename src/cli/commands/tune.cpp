// pruner tune: the main job. Source and work dir -> Tuner -> table, records, module.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "analysis/draft.h"
#include "cli/commands.h"
#include "cli/duration.h"
#include "cli/interrupt.h"
#include "cli/measurer.h"
#include "cli/pool.h"
#include "cli/search_options.h"
#include "deploy/loaded_module.h"
#include "deploy/module.h"
#include "report/finished_runs.h"
#include "report/network_time.h"
#include "report/progress.h"
#include "report/task_list.h"
#include "report/trace.h"
#include "report/tune_report.h"
#include "search/search.h"
#include "support/file.h"
#include "support/log.h"
#include "tune/session.h"

namespace pruner {

namespace {

// What --dry-run says; null: no such limit.
Json dry_run(const Source& source, const TuneOptions& tune, const std::string& work_dir) {
  return {
      {"work_dir", work_dir},
      {"trials", tune.trials == kNoTrialLimit ? Json() : Json(tune.trials)},
      {"budget_s", std::isfinite(tune.budget_s) ? Json(tune.budget_s) : Json()},
      {"round_size",
       round_size(tune.search.round_size, tune.trials, static_cast<int64_t>(source.tasks.size()))},
      {"tasks", task_list_json(source.tasks)}};
}

std::string print_dry_run(const Json& plan, const Source& source) {
  const auto limit = [&](const char* key, const char* unit) {
    return plan[key].is_null() ? std::string()
                               : fmt::format("{:.0f} {}, ", plan[key].get<double>(), unit);
  };
  return fmt::format("{}Would tune for {}{}{} trials a round, into {}; nothing was done\n",
                     print_task_list(source.tasks),
                     limit("trials", "trials"),
                     limit("budget_s", "s"),
                     plan["round_size"].get<int64_t>(),
                     plan["work_dir"].get<std::string>());
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

// What the tasks' default schedules take together, by the draft.
double drafted_s(const Source& source, const Target& target) {
  double sum = 0;
  for (const WeightedTask& weighted : source.tasks) {
    const Space space = make_space(weighted.task);
    const Candidate candidate = default_schedule(weighted.task, space);
    sum += weighted.weight * draft_latency_s(make_loop_nest(space, candidate), target);
  }
  return sum;
}

// What a float32 network would gain by bfloat16 on this target; empty: nothing, or it has it.
std::string tell_precision(SourceOptions what, const Source& source, const Target& target) {
  if (what.precision != "f32" || !target.dots.bfloat16_gains()) return "";
  what.precision = "bf16";
  const Result<Source> narrow = read_source(what, target);
  if (!narrow.ok()) return "";
  const double share = drafted_s(*narrow, target) / drafted_s(source, target);
  if (share >= 1) return "";
  return fmt::format(
      "In bfloat16 it would take about {:.0f} % of that time (by the draft): "
      "--precision bf16\n",
      100 * share);
}

// Session does the work; what is here reads options and shows results.
struct Tune {
  SourceOptions what;
  MeasurerOptions measure;
  ContestantOptions contestant;
  ExplorerOptions explorer;
  OfferOptions offers;
  std::string budget;                                   // as given; empty: no limit of time
  int64_t early_stopping = 0, task_early_stopping = 0;  // trials without gain; 0: never
  bool fresh = false, continue_tuning = false, only_plan = false;
  std::string out_file, trace_file;

  void add_to(CLI::App& app) {
    what.add_to(app);
    measure.add_to(app);
    contestant.add_to(app);
    explorer.add_to(app);
    offers.add_to(app);
    add_option(app, "--budget", budget).help("time to tune, resumed runs included: 30s, 10m, 1h");
    add_option(app, "--early-stopping", early_stopping)
        .help("end after so many trials without gain");
    add_option(app, "--task-early-stopping", task_early_stopping).help("the same for each task");
    add_option(app, "--fresh", fresh).help("set the folder's records aside and start anew");
    add_option(app, "--continue-tuning", continue_tuning)
        .help("go on even if no record there is of this model");
    add_option(app, "--trace", trace_file)
        .help("write what this run did when, as Chrome's trace events: FILE.json, for Perfetto");
    add_option(app, "--dry-run", only_plan).help("print the tasks and what would be done");
    add_out_file(app, out_file);
  }

  Result<TuneOptions> tune_options(const Target& target, const Contestant& mode) const {
    const bool elsewhere = !row_of(target.backend).on_host || measure.fleet.given();  // is measured
    TuneOptions tune{.early_stopping = early_stopping,
                     .task_early_stopping = task_early_stopping,
                     .measured_at_once = elsewhere ? mode.search.round_size : measure.jobs,
                     .seed = measure.seed,
                     .search_ahead = elsewhere,
                     .search = mode.search,
                     .policy = mode.mode.policy,
                     .mode = mode.name};
    if (!budget.empty()) {
      const Result<double> budget_s = parse_duration_s(budget);
      if (!budget_s.ok()) return Error("--budget: ", budget_s.error().message());
      tune.budget_s = *budget_s;
    }
    // With a budget alone trials have no limit.
    if (explorer.trials > 0 || budget.empty()) {
      tune.trials = explorer.trials > 0 ? explorer.trials : kDefaultTrials;
    }
    return tune;
  }

  /// What the search came to, as tables, a plot, and a network's module with its time: in
  /// results.tsv, run.json, and as printed.
  Result<int> finish(const Invocation& call,
                     const Source& source,
                     const Target& target,
                     const Contestant& mode,
                     Session& session,
                     TuneEnd end,
                     const CoreTime& busy) const {
    const Tuner& tuner = session.tuner();
    Json summary = tune_summary(tuner, end);
    summary["others_share"] = busy.share();
    TRY(session.note({{"others_share", busy.share()}}));
    if (const std::string others = print_busy(busy); !others.empty())
      log_warning("while kernels were timed, {}: the times, and the choice by them, are less sure",
                  others);
    if (!call.json) {
      fmt::print("{}{}",
                 print_task_table(task_rows(tuner)),
                 print_total(tuner.total_latency_s(), tuner.trials(), tuner.elapsed_s(), -1));
    }
    TRY(draw_curve(session.dir(), source.name, mode.name));
    const bool wants_module = source.network || !out_file.empty();
    if (wants_module && end != TuneEnd::kInterrupted && !tuner.all_failed()) {
      const std::string path =
          out_file.empty() ? session.dir().file(source.name + ".so") : out_file;
      const ModuleOptions options{measure.jobs, "", mode.search.forms};
      TRY(build_module(source.phases, target, schedule_choice(tuner), options, path));
      TRY_ASSIGN(LoadedModule module, load_module(path, target.threads));
      TRY_ASSIGN(const BenchResult time, module.bench(seeded_inputs(module.inputs(), 0), {}));
      TRY(append_result(session.dir().file("results.tsv"),
                        target,
                        source.partition(),
                        {source.name, mode.name, time.mean_ms}));
      TRY(session.note({{"end_to_end_ms", time.mean_ms}, {"end_to_end_std_ms", time.std_ms}}));
      summary.update({{"module", path},
                      {"mean_ms", time.mean_ms},
                      {"std_ms", time.std_ms},
                      {"median_ms", time.median_ms}});
      std::optional<double> estimated_ms = tuner.total_latency_s();
      if (estimated_ms) *estimated_ms *= 1e3;
      if (!call.json)
        fmt::print("{}\nMean inference time (std dev): {:.2f} ms ({:.2f} ms)\n{}",
                   print_network(source.name, input_shapes(source.partition())),
                   time.mean_ms,
                   time.std_ms,
                   explain_estimate(estimated_ms, time.mean_ms, time.std_ms, time.busy) +
                       tell_precision(what, source, target));
    }
    if (call.json) fmt::print("{}\n", print_json(summary));
    return exit_code_of(tuner, end, session.dir().records());
  }

  SessionOptions session_options(const Invocation& call,
                                 const Source& source,
                                 const Contestant& mode,
                                 const TuneOptions& tune,
                                 const std::string& work_dir) const {
    return {.tune = tune,
            .work_dir = work_dir,
            .fresh = fresh,
            .accept_foreign = continue_tuning,
            .command = call.command_line,
            .version = kVersion,
            .input = source.name,
            .facts = run_facts(mode.name,
                               std::string(update_mode(mode.mode)),
                               input_shapes(source.partition()),
                               source.tasks.size())};
  }

  /// Of this machine, or of a fleet: then the run in the work dir goes on, with what workers have
  /// measured for it meanwhile.
  Result<std::unique_ptr<Measurer>> measurer_of(const Source& source,
                                                const Target& target,
                                                const TuneOptions& tune,
                                                const std::string& work_dir,
                                                const std::atomic<bool>& interrupted) const {
    if (!measure.fleet.given()) return make_measurer(measure, source, target, interrupted);
    TRY_ASSIGN(const MeasureOptions options, measure_options(measure, target, interrupted));
    TRY_ASSIGN(const WorkDir dir, WorkDir::open(work_dir));
    TRY_ASSIGN(const std::string name, run_name(dir));
    TRY_ASSIGN(auto fleet, make_fleet_measurer(measure.fleet, target, options, name));
    TRY(record_late_results(*fleet, source.tasks, tune, dir));
    return std::unique_ptr<Measurer>(std::move(fleet));
  }

  Result<int> run(const Invocation& call) const {
    TRY_ASSIGN(const Target target, read_target(measure.target));
    TRY_ASSIGN(Contestant mode,
               read_contestant(contestant,
                               explorer.mode,
                               measure.models(target),
                               target,
                               !measure.target.device.empty()));
    TRY_ASSIGN(TuneOptions tune, tune_options(target, mode));
    TRY_ASSIGN(Source source, read_source(what, target));
    TRY(keep_matching(explorer.tasks, source.tasks));
    mode.models.warm_up_samples =
        trials_of_a_round_each(tune.search.round_size, tune.trials, source.tasks.size());
    TRY_ASSIGN(const ModeModels models, make_models(mode));
    std::vector<TransferSource> pool;
    if (!offers.pool.empty()) {
      TRY_ASSIGN(pool, read_pool(offers, source.tasks, measure.jobs, call.json));
      say_offers(pool, source.tasks);
      start_warm(tune, pool, *models.draft);
    }
    const std::string work_dir =
        explorer.work_dir.empty() ? "out_" + source.name : explorer.work_dir;
    if (only_plan) {
      const Json plan = dry_run(source, tune, work_dir);
      return call.show(plan, print_dry_run(plan, source));
    }

    if (!out_file.empty()) TRY(draw_constants(source, measure.seed));
    const std::atomic<bool>& interrupted = catch_interrupts();
    TRY_ASSIGN(const std::unique_ptr<Measurer> measurer,
               measurer_of(source, target, tune, work_dir, interrupted));
    LiveLine live(stderr);
    TuneTrace trace;
    const auto on_round = [&](const Tuner& tuner, const RoundSummary& summary) {
      if (!trace_file.empty()) trace.add(tuner, summary);
      live.show(print(round_line(tuner, summary, tune.trials)));
    };
    const SessionOptions options = session_options(call, source, mode, tune, work_dir);
    TRY_ASSIGN(
        const std::unique_ptr<Session> session,
        Session::open(source.tasks, options, {*measurer, models.models(), interrupted, on_round}));
    TRY_ASSIGN(const TuneEnd end, session->run());
    live.finish();
    release_interrupts();
    if (!trace_file.empty())
      TRY(write_file(trace_file, print_json(trace_json(trace.trace())) + "\n"));
    return finish(call,
                  source,
                  target,
                  mode,
                  *session,
                  interrupted ? TuneEnd::kInterrupted : end,
                  measurer->times().busy);
  }
};

}  // namespace

RunCommand make_tune(CLI::App& app) { return make_command<Tune>(app); }

}  // namespace pruner
