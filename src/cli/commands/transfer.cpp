// pruner transfer: a network and records of others -> their schedules measured on its tasks, and a
// module that is no slower than the one without any.
#include <fmt/format.h>

#include <filesystem>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/measurer.h"
#include "cli/module_file.h"
#include "cli/pool.h"
#include "cli/run_watch.h"
#include "cli/source_set.h"
#include "report/transfer_report.h"
#include "support/file.h"
#include "transfer/experiment.h"
#include "transfer/kernel_class.h"

namespace pruner {

namespace {

Json milliseconds(std::optional<double> seconds) { return seconds ? Json(1e3 * *seconds) : Json(); }

/// Returns the outcome of one task: its offers, trials, times and source.
Json task_json(const TunedTask& tuned, const TransferRun& run) {
  const Task& task = tuned.task->task;
  const Offers& offers = run.offers(task);
  const std::vector<Trial> best = tuned.history.best(1);
  Json json = {{"task", task.name},
               {"class", kernel_class(task.name)},
               {"weight", tuned.task->weight},
               {"offers", offers.offers.size()},
               {"not_adaptable", offers.not_adaptable},
               {"trials", tuned.trials},
               {"failed", tuned.failed},
               {"untuned_ms", milliseconds(run.untuned_s(tuned))},
               {"latency_ms", best.empty() ? Json() : Json(1e3 * best[0].cost_s)},
               {"source", Json()},
               {"source_task", Json()}};
  for (const Offer& offer : offers.offers) {
    if (best.empty() || offer.candidate != best[0].candidate) continue;
    json["source"] = run.sources()[offer.source].name;
    json["source_task"] = offer.task;
  }
  return json;
}

std::string cell(const Json& value) {
  return value.is_number() ? fmt::format("{:.4f}", value.get<double>()) : "-";
}

void print_tasks(const Json& tasks) {
  fmt::print("| {:>4} | {:>6} | {:>12} | {:>12} | {}\n",
             "ID",
             "offers",
             "untuned (ms)",
             "best (ms)",
             "task, and whose schedule it takes");
  for (size_t i = 0; i < tasks.size(); ++i) {
    const Json& task = tasks[i];
    const Json& from = task["source_task"];
    fmt::print("| {:>4} | {:>6} | {:>12} | {:>12} | {}{}\n",
               i,
               task["offers"].get<int64_t>(),
               cell(task["untuned_ms"]),
               cell(task["latency_ms"]),
               task["task"].get<std::string>(),
               from.is_null() ? "" : "  <-  " + from.get<std::string>());
  }
}

Json experiment_json(const std::vector<TransferTarget>& targets, const Target& target) {
  Json list = Json::array();
  for (const TransferTarget& one : targets) list.push_back(to_json(one));
  return {{"device", device_fingerprint(target)}, {"targets", list}};
}

Result<Unit> write_reports(const WorkDir& dir,
                           const std::vector<TransferTarget>& targets,
                           const Target& target) {
  TRY(write_file(dir.file("experiment.json"), print_json(experiment_json(targets, target)) + "\n"));
  TRY(write_file(dir.file("experiment.txt"), print_transfer_table(targets)));
  TRY(write_file(dir.file("experiment.tsv"), transfer_tsv(targets)));
  TRY(write_file(dir.file("fig_5a.svg"), speedup_svg(targets)));
  return write_file(dir.file("fig_5b.svg"), search_time_svg(targets));
}

/// The networks that an earlier run has done.
Result<std::vector<TransferTarget>> take_up(const std::string& path) {
  std::vector<TransferTarget> done;
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return done;
  TRY_ASSIGN(const std::string text, read_file(path));
  TRY_ASSIGN(const Json json, parse_json(text));
  TRY_ASSIGN(const Json targets, json_get<Json>(json, "targets"));
  for (const Json& target : targets) {
    const Result<TransferTarget> read = transfer_target_from_json(target);
    if (!read.ok()) return Error(path, ": ", read.error().message());
    done.push_back(*read);
  }
  return done;
}

// One network takes a pool's schedules; with --experiment each network those of each other one.
struct Transfer {
  SourceOptions what;
  MeasurerOptions measure;
  OfferOptions offers;
  ExperimentOptions options;      // a transfer takes some of these
  int64_t trials = 0, stops = 0;  // options of --experiment; 0: not given
  std::string experiment;
  ModuleFileOptions module_file;
  EventOptions events;

  void add_to(CLI::App& app) {
    what.add_to(app);
    measure.add_to(app);
    offers.add_to(app);
    begin_group(app, OptionGroup::kSearch);
    add_option(app, "--source FILE", offers.source)
        .help(
            "of the pool only this file; auto: that most like the network; as-published: that with "
            "the most schedules of its classes");
    add_option(app, "--verify N", options.verify)
        .help("schedules a task that are measured, by the draft's order", "all");
    add_option(app, "--load-model FILE", options.models.load_model)
        .help("weights of a PaCM; --verify then goes by its order");
    begin_group(app, OptionGroup::kInput);
    add_option(app, "--experiment FILE", experiment)
        .help("a set of networks as JSON: each from each other, against searches in the same time");
    begin_group(app, OptionGroup::kBudget);
    add_option(app, "--minute-check", options.minute_check)
        .help(
            "searches of --experiment are looked at every minute; otherwise each half of the "
            "transfer's time");
    add_option(app, "--stops N", stops, 1)
        .help("of --experiment: how often a search is looked at before it is given up", "30");
    add_option(app, "--n-trials N", trials, 1)
        .help("of --experiment: that each network is tuned with", "1000");
    begin_group(app, OptionGroup::kFiles);
    add_option(app, "--work-dir DIR", options.session.work_dir)
        .help("folder of the run's records and results; the same command again goes on");
    module_file.add_to(app, "the module to write, a shared library: NAME.so");
    events.add_to(app);
  }

  /// Fills in the options that depend on the target and on the source `name`.
  void complete(const std::string& name, const Target& target, const Invocation& call) {
    // --load-model is the only option of the models that the user sets here.
    const std::string weights = options.models.load_model;
    options.models = measure.models(target);
    options.models.load_model = weights;
    options.target = target;
    if (stops > 0) options.stops = stops;
    SessionOptions& session = options.session;
    session.tune.measured_at_once = measured_at_once(measure);
    session.tune.seed = measure.seed;
    session.tune.trials = trials > 0 ? trials : kDefaultTrials;
    if (session.work_dir.empty()) session.work_dir = "tt_" + name;
    session.command = call.command_line;
    session.version = kVersion;
    session.input = name;
  }

  /// Options that would have no effect are refused.
  Result<Unit> check_options() const {
    const bool several = !experiment.empty();
    for (const auto& [flag, given] : {std::pair("--minute-check", options.minute_check),
                                      {"--stops", stops > 0},
                                      {"--n-trials", trials > 0}})
      if (given && !several) return Error(flag, " is for the searches of --experiment");
    for (const auto& [flag, given] : {std::pair("--pool", !offers.pool.empty()),
                                      {"--dags", !offers.dags.empty()},
                                      {"--source", !offers.source.empty()},
                                      {"-o", !module_file.file.empty()}})
      if (given && several)
        return Error(flag, " is for one network; --experiment has its networks and their records");
    if (several && what.named())
      return Error(
          "--experiment ", experiment, " names the networks; leave out ", what.named_text());
    if (several) return Unit{};
    if (offers.pool.empty())
      return Error("transfer: no records are named; give those of tuned networks with --pool");
    if (!module_file.file.empty() && !(what.ops.empty() && what.task.empty()))
      return Error(
          "-o: transfer makes modules of networks; `pruner compile --records` makes one of "
          "an operator");
    if (!what.decode.empty())
      return Error(
          "--decode: transfer makes a module of one phase; `pruner tune --pool` makes both");
    return module_file.file.empty() ? Result<Unit>(Unit{}) : module_file.check(module_file.file);
  }

  /// Returns the path of a network's module.
  std::string module_path(const Source& source, const std::string& work_dir) const {
    return module_file.file.empty() ? work_dir + "/" + source.name + ".so" : module_file.file;
  }

  Result<int> run_experiment(const Invocation& call) {
    TRY_ASSIGN(const std::unique_ptr<RunWatch> watch, RunWatch::open(events, call));
    TRY_ASSIGN(const Target target, read_target(measure.target));
    TRY_ASSIGN(const std::vector<SetMember> set, read_source_set(experiment, what));
    std::vector<Source> networks;
    for (const SetMember& member : set) {
      watch->phase("read", "reading " + member.name);
      Result<Source> source = read_member(member, target);
      if (!source.ok()) return Error(experiment, ": ", source.error().message());
      TRY(draw_constants(*source, measure.seed));
      networks.push_back(*std::move(source));
    }
    if (networks.size() < 2)
      return Error(experiment, ": ", networks.size(), " networks; two or more are needed");
    complete("experiment", target, call);
    TRY_ASSIGN(const WorkDir dir, WorkDir::open(options.session.work_dir));
    TRY_ASSIGN(std::vector<TransferTarget> done, take_up(dir.file("experiment.json")));
    const std::atomic<bool>& interrupted = catch_interrupts();
    const ExperimentTools tools{
        .make_measurer =
            [&](const Source& network) {
              return make_measurer(measure, network, target, interrupted);
            },
        .stop = interrupted,
        .on_round =
            [&](const std::string& doing, const Tuner& tuner, const RoundSummary& summary) {
              RoundLine line = round_line(tuner, summary, kNoTrialLimit);
              line.run = doing;
              watch->round(line);
            },
        .on_target =
            [&](const std::vector<TransferTarget>& targets) {
              return write_reports(dir, targets, target);
            }};
    TRY_ASSIGN(const std::vector<TransferTarget> targets,
               pruner::run_experiment(networks, std::move(done), options, tools));
    if (interrupted) return kInterrupted;
    watch->pause();
    if (!watch->json()) fmt::print("{}", print_transfer_table(targets));
    TRY(watch->done(experiment_json(targets, target)));
    return kDone;
  }

  Result<int> run(const Invocation& call) {
    TRY(check_options());
    if (!experiment.empty()) return run_experiment(call);
    TRY_ASSIGN(const std::unique_ptr<RunWatch> watch, RunWatch::open(events, call));
    TRY_ASSIGN(const Target target, read_target(measure.target));
    watch->phase("read", "reading " + what.named_text());
    TRY_ASSIGN(const Source source, read_source(what, target));
    if (source.tasks.empty())
      return Error(
          source.name,
          ": there is nothing to transfer: the network has no task; `pruner compile` makes "
          "its module");
    if (source.phases.front().ranges != nullptr)
      return Error(
          "--dim: transfer makes a module of one shape; `pruner tune --pool` makes one of "
          "several");
    TRY_ASSIGN(std::vector<TransferSource> sources,
               read_pool(offers, source.tasks, measure.jobs, watch->json()));
    say_offers(sources, source.tasks);

    const std::atomic<bool>& interrupted = catch_interrupts();
    TRY_ASSIGN(const std::unique_ptr<Measurer> measurer,
               make_measurer(measure, source, target, interrupted));
    complete(source.name, target, call);
    if (source.network) TRY(module_file.check(module_path(source, options.session.work_dir)));
    int64_t planned = 0;  // trials
    const auto on_round = [&](const Tuner& tuner, const RoundSummary& summary) {
      RoundLine line = round_line(tuner, summary, planned);
      line.eta_s = eta_s(tuner.elapsed_s(), tuner.trials(), planned);
      line.busy = measurer->times().busy;
      watch->round(line);
    };
    TRY_ASSIGN(const std::unique_ptr<TransferRun> run,
               TransferRun::open(
                   source.tasks, std::move(sources), options, {*measurer, interrupted, on_round}));
    int64_t offered = 0;
    for (const TunedTask& tuned : run->tuner().tasks()) offered += std::ssize(tuned.offered);
    planned = offered + std::ssize(source.tasks);  // with each task's own schedule without search
    watch->started({{"command", call.command_line},
                    {"input", source.name},
                    {"work_dir", options.session.work_dir},
                    {"trials", planned}},
                   source.tasks);
    watch->phase("search",
                 fmt::format("{}: {} schedules of {} sources for {} tasks, into {}",
                             source.name,
                             offered,
                             run->sources().size(),
                             source.tasks.size(),
                             options.session.work_dir));
    TRY_ASSIGN(TuneEnd end, run->run());
    watch->pause();
    release_interrupts();
    if (interrupted) end = TuneEnd::kInterrupted;
    return finish(*watch, source, target, *run, end);
  }

  /// The table of the tasks, and a network's module beside the untuned one.
  Result<int> finish(RunWatch& watch,
                     const Source& source,
                     const Target& target,
                     TransferRun& run,
                     TuneEnd end) const {
    const Tuner& tuner = run.tuner();
    Json tasks = Json::array(), names = Json::array();
    for (const TunedTask& tuned : tuner.tasks()) tasks.push_back(task_json(tuned, run));
    for (const TransferSource& from : run.sources()) names.push_back(from.name);
    Json summary = {{"sources", names},
                    {"tasks", tasks},
                    {"trials", tuner.trials()},
                    {"search_s", tuner.elapsed_s()}};
    if (!watch.json()) {
      print_tasks(tasks);
      fmt::print("{} trials of the schedules of {} sources, {:.1f} s\n",
                 tuner.trials(),
                 run.sources().size(),
                 tuner.elapsed_s());
    }
    if (source.network && end != TuneEnd::kInterrupted && !tuner.all_failed()) {
      const std::string path = module_path(source, run.dir().path());
      watch.phase("build", "building and timing " + path);
      TRY_ASSIGN(const KeptModule made,
                 run.make_module(source.partition(), target, path, measure.jobs));
      watch.pause();
      const char* kept = made.transferred() ? "transferred" : "untuned";
      summary.update({{"module", path},
                      {"untuned_ms", made.untuned_ms},
                      {"transferred_ms", made.transferred_ms},
                      {"kept", kept},
                      {"build_s", made.build_s},
                      {"check_s", made.check_s}});
      if (!watch.json())
        fmt::print("Inference time: {:.2f} ms untuned, {:.2f} ms transferred; {} is the {} one\n",
                   made.untuned_ms,
                   made.transferred_ms,
                   path,
                   kept);
    }
    TRY(watch.done(summary));
    return exit_code_of(tuner, end, run.dir().records());
  }
};

}  // namespace

RunCommand make_transfer(CLI::App& app) { return make_command<Transfer>(app); }

}  // namespace pruner
