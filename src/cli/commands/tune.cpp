// pruner tune: the main job. Source and work dir -> Tuner -> table, records, module.
#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>

#include "analysis/draft.h"
#include "cli/commands.h"
#include "cli/denormals.h"
#include "cli/duration.h"
#include "cli/interrupt.h"
#include "cli/measurer.h"
#include "cli/module_file.h"
#include "cli/nearest_choice.h"
#include "cli/pool.h"
#include "cli/run_watch.h"
#include "cli/search_options.h"
#include "deploy/loaded_module.h"
#include "deploy/module.h"
#include "deploy/network_race.h"
#include "deploy/range_trials.h"
#include "report/finished_runs.h"
#include "report/html/run_page.h"
#include "report/network_time.h"
#include "report/profile_table.h"
#include "report/task_list.h"
#include "report/trace.h"
#include "report/tune_report.h"
#include "search/search.h"
#include "support/file.h"
#include "support/log.h"
#include "transfer/shipped.h"
#include "tune/recorded.h"
#include "tune/session.h"

namespace pruner {

namespace {

constexpr double kProbeSeconds = 0.05;  // about, for each of this CPU's peaks

// Returns the plan that --dry-run shows; null stands for a limit that is not set.
Json dry_run(const Source& source,
             const Target& target,
             const TuneOptions& tune,
             const std::string& work_dir) {
  return {
      {"mode", tune.mode},
      {"device", device_fingerprint(target)},
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
  return fmt::format(
      "{}Would tune in mode {} on {} for {}{}{} trials a round, into {}; nothing was "
      "done\n",
      print_task_list(source.tasks),
      plan["mode"].get<std::string>(),
      plan["device"].get<std::string>(),
      limit("trials", "trials"),
      limit("budget_s", "s"),
      plan["round_size"].get<int64_t>(),
      plan["work_dir"].get<std::string>());
}

/// Draws the curve of the folder, earlier runs included, as a plot beside it; draws nothing before
/// every task has a time.
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

/// Writes the page of the run, earlier runs of the folder included. A page that cannot be made is
/// only a warning, since the page is no reason to lose a run.
Result<Unit> write_page(const WorkDir& dir, int jobs) {
  KnownTasks known;
  const Result<RunPage> page = make_run_page({dir.path()}, {.jobs = jobs}, known);
  if (page.ok()) return write_file(dir.file("report.html"), page->html);
  log_warning("no report.html: {}", page.error().message());
  return Unit{};
}

// Returns the seconds that the tasks' default schedules take together, by the draft.
double drafted_s(const Source& source, const Target& target) {
  double sum = 0;
  for (const WeightedTask& weighted : source.tasks) {
    const Space space = make_space(weighted.task);
    const Candidate candidate = default_schedule(weighted.task, space);
    sum += weighted.weight * draft_latency_s(make_loop_nest(space, candidate), target);
  }
  return sum;
}

// Says what bfloat16 would gain on this target; empty: nothing, or the network is not float32.
std::string tell_precision(SourceOptions what, const Source& source, const Target& target) {
  if (what.precision != "f32" || !target.dots.bfloat16_gains()) return "";
  what.precision = "bf16";
  const Result<Source> narrow = read_source(what, target);
  if (!narrow.ok()) return "";
  const double share = drafted_s(*narrow, target) / drafted_s(source, target);
  if (!(share < 1)) return "";  // without a task both are 0
  return fmt::format(
      "In bfloat16 it would take about {:.0f} % of that time (by the draft): "
      "--precision bf16\n",
      100 * share);
}

// "1.39 x as fast as the untuned module (1.35 to 1.43 x)", or that there is no difference.
std::string print_speedup(const NetworkRace& race) {
  const Speedup& over = race.over_last;
  if (race.fastest == "untuned") return "the untuned module, which no tuned one was faster than";
  const std::string band = fmt::format("({:.2f} to {:.2f} x)", over.low, over.high);
  if (over.low <= 1) return "no difference from the untuned module that this run can show " + band;
  return fmt::format("{:.2f} x as fast as the untuned module {}", over.median, band);
}

// Says how the module did beside the untuned one, and which tasks do not have their fastest trial.
std::string print_race(const NetworkRace& race) {
  std::string text =
      fmt::format("In turns: {:.3g} ms, the untuned module {:.3g} ms\n", race.ms, race.last_ms);
  if (race.fastest == "runner-up")
    text += "The network is fastest with the second fastest trial of each task\n";
  if (!race.taken_over.empty()) {
    text += "Faster in the network than the fastest trial:";
    for (const TakenOver& task : race.taken_over)
      text += fmt::format("\n  {}: the {} schedule", task.task, task.choice);
    text += "\n";
  }
  return text;
}

Json race_json(const NetworkRace& race) {
  Json taken_over = Json::array();
  for (const TakenOver& task : race.taken_over)
    taken_over.push_back({{"task", task.task}, {"schedule", task.choice}});
  return {{"fastest", race.fastest},
          {"ms", race.ms},
          {"untuned_ms", race.last_ms},
          {"speedup", race.over_last.median},
          {"speedup_low", race.over_last.low},
          {"speedup_high", race.over_last.high},
          {"taken_over", std::move(taken_over)}};
}

// Returns the existing files among those that a run leaves in its folder.
std::vector<std::string> written(const WorkDir& dir, const std::string& module) {
  std::vector<std::string> files;
  std::error_code code;
  for (const std::string& file : {dir.records(),
                                  dir.file("tuning_curve.svg"),
                                  dir.file("report.html"),
                                  dir.file("results.tsv"),
                                  module})
    if (!file.empty() && std::filesystem::exists(file, code)) files.push_back(file);
  return files;
}

// Session does the work; the code here reads options and shows results.
struct Tune {
  SourceOptions what;
  MeasurerOptions measure;
  ContestantOptions contestant;
  ExplorerOptions explorer;
  OfferOptions offers;
  std::string budget;                                   // text as given; empty: no limit of time
  int64_t early_stopping = 0, task_early_stopping = 0;  // trials without gain; 0: never
  bool fresh = false, continue_tuning = false, only_plan = false;
  std::string denormals = kDenormalsDefault;  // value for the module; trials flush denormals
  ModuleFileOptions module_file;
  std::string trace_file;
  EventOptions events;

  void add_to(CLI::App& app) {
    what.add_to(app);
    measure.add_to(app);
    measure.add_build_only(app);
    contestant.add_to(app);
    explorer.add_to(app, "candidates to measure, resumed runs included");
    offers.add_to(app);
    add_denormals(app, denormals);
    begin_group(app, OptionGroup::kBudget);
    add_option(app, "--budget TIME", budget)
        .help("time to tune, resumed runs included: 30s, 10m, 1h");
    add_option(app, "--early-stopping N", early_stopping)
        .help("end after so many trials without gain");
    add_option(app, "--task-early-stopping N", task_early_stopping).help("the same for each task");
    begin_group(app, OptionGroup::kFiles);
    add_option(app, "--fresh", fresh).help("set the folder's records aside and start anew");
    add_option(app, "--continue-tuning", continue_tuning)
        .help("go on even if no record there is of this model");
    add_option(app, "--trace FILE", trace_file)
        .writes()
        .replaces({FileKind::kJson})
        .help("write what this run did when, as Chrome's trace events, for Perfetto");
    begin_group(app, OptionGroup::kOutput);
    add_option(app, "--dry-run", only_plan).help("print the tasks and what would be done");
    module_file.add_to(
        app, "the module to write, a shared library; of a network also without -o, as DIR/NAME.so");
    events.add_to(app);
  }

  Result<TuneOptions> tune_options(const Target& target, const Contestant& mode) const {
    const bool elsewhere = !row_of(target.backend).on_host || measure.fleet.given() ||
                           measure.build_only();  // programs are not measured on this CPU
    TuneOptions tune{.early_stopping = early_stopping,
                     .task_early_stopping = task_early_stopping,
                     .measured_at_once = measure.build_only() ? kBuiltAtOnce
                                         : elsewhere          ? mode.search.round_size
                                                              : measure.jobs,
                     .seed = measure.seed,
                     .remeasure = !measure.build_only(),
                     .search_ahead = elsewhere && !measure.build_only(),
                     .search = mode.search,
                     .policy = mode.mode.policy,
                     .mode = mode.name};
    TRY_ASSIGN(tune.budget_s, parse_budget_s(budget));
    // Trials have no limit if only a budget is given.
    if (explorer.trials > 0 || budget.empty()) {
      tune.trials = explorer.trials > 0 ? explorer.trials : kDefaultTrials;
    }
    return tune;
  }

  /// A run that has ended.
  struct Finished {
    const Source& source;
    const Target& target;
    const Contestant& mode;
    Session& session;
    TuneEnd end;
    CoreTime busy;
    bool measured;  // whether any round was measured
    RunWatch& watch;
  };

  /// Returns the path of the module; empty if the run makes none.
  std::string module_of(const Finished& run) const {
    const bool unwanted = run.end == TuneEnd::kInterrupted || run.session.tuner().all_failed();
    return unwanted ? "" : module_path(run.source, run.session.dir().path());
  }

  /// Returns the path of a source's module; empty if none is made, as for an operator without -o.
  std::string module_path(const Source& source, const std::string& work_dir) const {
    if (!module_file.file.empty()) return module_file.file;
    return source.network ? work_dir + "/" + source.name + ".so" : "";
  }

  /// Returns the shape at which a module of several shapes is timed.
  static std::string print_greatest(const std::vector<Symbol>& symbols) {
    return print(symbols, box_of(symbols).max);
  }

  /// Returns the times of schedules at the shapes of a range, measured as far as they
  /// decide of which schedule a kernel is made. It measures twice, since the first times may leave
  /// other schedules in front. It takes no more trials than the search had.
  Result<RecordedSchedules> shape_times(const Finished& run,
                                        const ScheduleChoice& choice,
                                        ModuleOptions options) const {
    const std::string& path = run.session.dir().records();
    const Phase& phase = run.source.phases.front();
    if (phase.ranges == nullptr) return RecordedSchedules({}, run.target);
    constexpr int kPasses = 2;
    int64_t most = run.session.tuner().trials();
    for (int pass = 0;; ++pass) {
      TRY_ASSIGN(std::vector<Record> records, read_intact_records(path));
      RecordedSchedules known(std::move(records), run.target);
      if (pass == kPasses) return known;
      options.times = schedule_times(known);
      run.watch.phase("measure", "comparing schedules at other shapes");
      TRY_ASSIGN(std::vector<ShapeTrials> trials, shape_trials(phase, run.target, choice, options));
      limit_trials(trials, most);
      for (const ShapeTrials& task : trials) most -= std::ssize(task.candidates);
      TRY(run.session.measure_shapes(trials));
    }
  }

  /// Builds the module, and times it: in results.tsv, run.json, `summary`, and as printed. `race`
  /// is left empty if the module was not raced: it is for a range of shapes, or there is no task or
  /// no untuned module.
  Result<std::string> make_module(const Finished& run,
                                  const std::string& path,
                                  Json& summary,
                                  std::optional<NetworkRace>& race) const {
    Session& session = run.session;
    run.watch.phase("build", "building " + path);
    ModuleOptions options{measure.jobs, "", run.mode.search.forms};
    TRY_ASSIGN(options.flushes_denormals, flushes_denormals(denormals));
    const ScheduleChoice choice = schedule_choice(session.tuner());
    TRY_ASSIGN(const RecordedSchedules times, shape_times(run, choice, options));
    options.times = schedule_times(times);
    const bool of_ranges = std::ranges::any_of(
        run.source.phases, [](const Phase& phase) { return phase.ranges != nullptr; });
    if (of_ranges || run.source.tasks.empty()) {
      TRY(build_module(run.source.phases, run.target, choice, options, path));
    } else {
      // `pruner compile` without records makes the untuned module.
      const NamedChoice choices[] = {
          {"tuned", choice},
          {"runner-up", runner_up_choice(session.tuner())},
          {"untuned", nearest_choice(NearestSchedules(shipped_records(run.target)))}};
      TRY_ASSIGN(race, build_fastest(run.source.phases, run.target, choices, options, path));
    }
    if (race) summary["race"] = race_json(*race);
    TRY(session.note({{"race", race ? summary["race"] : Json()}}));  // no race of an earlier module
    run.watch.phase("time", "timing " + path);
    TRY_ASSIGN(LoadedModule module, load_module(path, run.target.threads));
    TRY_ASSIGN(const BenchResult time, module.bench(seeded_inputs(module.inputs(), 0), {}));
    TRY(append_result(session.dir().file("results.tsv"),
                      run.target,
                      run.source.partition(),
                      {run.source.name, run.mode.name, time.mean_ms}));
    TRY(session.note({{"end_to_end_ms", time.mean_ms}, {"end_to_end_std_ms", time.std_ms}}));
    if (!run.target.is_gpu())
      TRY(session.note({{"peaks", to_json(probe_peaks(run.target, kProbeSeconds))}}));
    TRY(session.note({{"numerics", module.numerics()}}));
    summary.update({{"module", path},
                    {"numerics", module.numerics()},
                    {"mean_ms", time.mean_ms},
                    {"std_ms", time.std_ms},
                    {"median_ms", time.median_ms}});
    std::optional<double> estimated_ms = session.tuner().total_latency_s();
    if (estimated_ms) *estimated_ms *= 1e3;
    return fmt::format("{}\nMean inference time (std dev): {:.2f} ms ({:.2f} ms)\n{}{}{}",
                       print_network(run.source.name, input_shapes(run.source.partition())),
                       time.mean_ms,
                       time.std_ms,
                       // The estimate of several shapes adds up all tuned shapes.
                       run.source.phases.front().ranges != nullptr
                           ? fmt::format("That is at {}\n", print_greatest(module.symbols()))
                           : explain_estimate(estimated_ms, time.mean_ms, time.std_ms, time.busy),
                       race ? print_race(*race) : "",
                       tell_precision(what, run.source, run.target));
  }

  /// Says how good the result is, what was written, and what to do next.
  Result<std::string> closing(const Finished& run,
                              const std::string& module,
                              const std::optional<NetworkRace>& race,
                              const Invocation& call) const {
    const WorkDir& dir = run.session.dir();
    const Tuner& tuner = run.session.tuner();
    std::string text;
    if (race) text += fmt::format("Result: {:.3g} ms, {}\n", race->ms, print_speedup(*race));
    if (tuner.total_latency_s() && !run.source.tasks.empty()) {
      TRY_ASSIGN(const TuningCurve curve, read_latency_curve(dir.curve()));
      if (const std::optional<TuneOutcome> outcome = tune_outcome(tuner, curve))
        text += (race ? "Estimate: " : "Result: ") + print(*outcome) + "\n";
    }
    text += fmt::format("Written: {}\n", fmt::join(written(dir, module), ", "));
    if (run.end == TuneEnd::kInterrupted) return text + "Next: the same command goes on\n";
    if (!run.measured) {
      const std::string left = nothing_left(run.end, run.session.options(), tuner);
      if (!left.empty()) text += left + "\n";
    }
    if (!module.empty())
      return text + fmt::format("Next: pruner bench --module {} --profile\n", module);
    if (tuner.all_failed()) return text;
    return text + fmt::format("Next: {}\n", compile_command(call, dir.records()));
  }

  /// The command that makes a module of the records.
  std::string compile_command(const Invocation& call, const std::string& records) const {
    std::string subject = what.task.empty() ? "" : "--task " + what.task;
    if (!what.ops.empty()) subject = "--op '" + what.ops.front() + "'";
    if (subject.empty()) return call.command_line + " -o NAME.so";
    return fmt::format("pruner compile {} --records {} -o NAME.so", subject, records);
  }

  /// Shows the results of the search: tables, a plot, and a network's module with its time.
  Result<int> finish(const Invocation& call, const Finished& run) const {
    Session& session = run.session;
    const Tuner& tuner = session.tuner();
    Json summary = tune_summary(tuner, run.end);
    summary["others_share"] = run.busy.share();
    summary["records"] = session.dir().records();
    TRY(session.note({{"others_share", run.busy.share()}}));
    if (const std::string others = print_busy(run.busy); !others.empty())
      log_warning("while kernels were timed, {}: the times, and the choice by them, are less sure",
                  others);
    const bool nothing = run.source.tasks.empty();
    if (!run.watch.json() && nothing)
      fmt::print("{}: there is nothing to tune: the network has no task\n", run.source.name);
    if (!run.watch.json() && !nothing) {
      fmt::print("{}{}",
                 print_task_table(task_rows(tuner)),
                 print_total(tuner.total_latency_s(), tuner.trials(), tuner.elapsed_s(), -1));
    }
    TRY(draw_curve(session.dir(), run.source.name, run.mode.name));
    const std::string module = module_of(run);
    std::optional<NetworkRace> race;
    if (!module.empty()) {
      TRY_ASSIGN(const std::string text, make_module(run, module, summary, race));
      run.watch.pause();
      if (!run.watch.json()) fmt::print("{}", text);
    }
    if (!nothing) TRY(write_page(session.dir(), measure.jobs));
    if (!run.watch.json()) {
      TRY_ASSIGN(const std::string text, closing(run, module, race, call));
      fmt::print("{}", text);
    }
    TRY(run.watch.done(summary));
    return exit_code_of(tuner, run.end, session.dir().records());
  }

  /// The end of --build-only: nothing is measured, so there is no result but the bundle.
  Result<int> finish_bundle(const Source& source,
                            const Built& built,
                            const Session& session,
                            TuneEnd end,
                            RunWatch& watch) const {
    const std::string& records = session.dir().records();
    TRY(watch.done(built_json(measure, source, built)));
    if (!watch.json()) fmt::print("{}", print_bundle(measure, source, built, records));
    return exit_code_of(session.tuner(), end, measure.bundle);
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

  /// Makes the measurer of this machine or of a fleet. With a fleet, the run in the work dir goes
  /// on with the results that workers have measured for it meanwhile.
  Result<std::unique_ptr<Measurer>> measurer_of(const Source& source,
                                                const Target& target,
                                                const TuneOptions& tune,
                                                const std::string& work_dir,
                                                const std::atomic<bool>& interrupted) const {
    TRY(measure.check(target));
    if (!measure.fleet.given())
      return make_measurer(measure, source, target, interrupted, {tune.origin, tune.mode});
    const MeasureOptions options = measure_options(measure, interrupted);
    TRY_ASSIGN(const WorkDir dir, WorkDir::open(work_dir));
    TRY_ASSIGN(const std::string name, run_name(dir));
    TRY_ASSIGN(auto fleet, make_fleet_measurer(measure.fleet, target, options, name));
    TRY(record_late_results(*fleet, source.tasks, tune, dir));
    return std::unique_ptr<Measurer>(std::move(fleet));
  }

  /// Holds what a search works on. read_problem() offers the schedules of --pool to `tune`.
  struct Problem {
    Source source;
    ModeModels models;
    std::vector<TransferSource> pool;
  };
  Result<Problem> read_problem(const Target& target,
                               Contestant& mode,
                               TuneOptions& tune,
                               bool quiet) const {
    TRY_ASSIGN(Source source, read_source(what, target));
    if (!module_file.file.empty()) TRY(check_one_operator(what));
    TRY(keep_matching(explorer.tasks, source.tasks));
    mode.models.warm_up_samples =
        trials_of_a_round_each(tune.search.round_size, tune.trials, source.tasks.size());
    TRY_ASSIGN(ModeModels models, make_models(mode));
    Problem problem{std::move(source), std::move(models), {}};
    if (!offers.pool.empty()) {
      TRY_ASSIGN(problem.pool, read_pool(offers, problem.source.tasks, measure.jobs, quiet));
      say_offers(problem.pool, problem.source.tasks);
      start_warm(tune, problem.pool, *problem.models.draft);
    }
    return problem;
  }

  /// Reports what there is to do, before the search begins.
  void tell_start(RunWatch& watch,
                  const Invocation& call,
                  const Source& source,
                  const Target& target,
                  const TuneOptions& tune,
                  const std::string& work_dir) const {
    const Json plan = dry_run(source, target, tune, work_dir);
    Json facts = {{"command", call.command_line}, {"input", source.name}};
    for (const char* key : {"work_dir", "trials", "budget_s"}) facts[key] = plan[key];
    watch.started(facts, source.tasks);
    watch.phase("search",
                fmt::format("{}: {} {}{}{}, into {}; building the first {} programs",
                            source.name,
                            source.tasks.size(),
                            source.tasks.size() == 1 ? "task" : "tasks",
                            plan["trials"].is_null() ? "" : fmt::format(", {} trials", tune.trials),
                            budget.empty() ? "" : ", " + budget,
                            work_dir,
                            plan["round_size"].get<int64_t>()));
  }

  /// Refuses options that would have no effect, and a file that the module may not replace, before
  /// anything is read.
  Result<Unit> check_options() const {
    TRY(check_offers(offers));
    if (fresh && continue_tuning)
      return Error("--fresh and --continue-tuning exclude each other: a new start has no records");
    if (measure.build_only() && !(module_file.file.empty() && trace_file.empty()))
      return Error("--build-only measures nothing: there is nothing for ",
                   module_file.file.empty() ? "--trace" : "-o",
                   " to write");
    return module_file.file.empty() ? Result<Unit>(Unit{}) : module_file.check(module_file.file);
  }

  Result<int> run(const Invocation& call) const {
    TRY(flushes_denormals(denormals));
    TRY(check_options());
    TRY_ASSIGN(const std::unique_ptr<RunWatch> watch, RunWatch::open(events, call));
    TRY_ASSIGN(const Target target, read_target(measure.target));
    TRY_ASSIGN(Contestant mode,
               read_contestant(contestant,
                               explorer.mode,
                               measure.models(target),
                               target,
                               !measure.target.device.empty()));
    TRY_ASSIGN(TuneOptions tune, tune_options(target, mode));
    if (!only_plan) watch->phase("read", "reading " + what.named_text());
    TRY_ASSIGN(Problem problem, read_problem(target, mode, tune, watch->json()));
    Source& source = problem.source;
    tune.share_shapes = source.network && source.phases.front().ranges != nullptr;
    const std::string work_dir =
        explorer.work_dir.empty() ? "out_" + source.name : explorer.work_dir;
    if (const std::string path = module_path(source, work_dir); !path.empty())
      TRY(module_file.check(path));
    if (only_plan) {
      const Json plan = dry_run(source, target, tune, work_dir);
      return call.show(plan, print_dry_run(plan, source));
    }

    if (!module_file.file.empty()) TRY(draw_constants(source, measure.seed));
    const std::atomic<bool>& interrupted = catch_interrupts();
    TRY_ASSIGN(const std::unique_ptr<Measurer> measurer,
               measurer_of(source, target, tune, work_dir, interrupted));
    TuneTrace trace;
    bool measured = false;
    Built built;
    const auto on_round = [&](const Tuner& tuner, const RoundSummary& summary) {
      measured = true;
      built.add(summary);
      if (measure.build_only()) return watch->phase("build", print_built(measure, source, built));
      if (!trace_file.empty()) trace.add(tuner, summary);
      RoundLine line = round_line(tuner, summary, tune.trials);
      line.busy = measurer->times().busy;
      watch->round(line);
    };
    const SessionOptions options = session_options(call, source, mode, tune, work_dir);
    TRY_ASSIGN(
        const std::unique_ptr<Session> session,
        Session::open(
            source.tasks, options, {*measurer, problem.models.models(), interrupted, on_round}));
    tell_start(*watch, call, source, target, tune, work_dir);
    TRY_ASSIGN(const TuneEnd end, session->run());
    watch->pause();
    release_interrupts();
    if (!trace_file.empty())
      TRY(write_file(trace_file, print_json(trace_json(trace.trace())) + "\n"));
    if (measure.build_only()) {
      const TuneEnd how = interrupted ? TuneEnd::kInterrupted : end;
      return finish_bundle(source, built, *session, how, *watch);
    }
    return finish(call,
                  {.source = source,
                   .target = target,
                   .mode = mode,
                   .session = *session,
                   .end = interrupted ? TuneEnd::kInterrupted : end,
                   .busy = measurer->times().busy,
                   .measured = measured,
                   .watch = *watch});
  }
};

}  // namespace

RunCommand make_tune(CLI::App& app) { return make_command<Tune>(app); }

}  // namespace pruner
