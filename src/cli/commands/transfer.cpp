// pruner transfer: a network and records of others -> their schedules measured on its tasks, and a
// module that is no slower than the one without any.
#include <fmt/format.h>

#include <filesystem>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/measurer.h"
#include "cli/pool.h"
#include "cli/source_set.h"
#include "report/progress.h"
#include "report/transfer_report.h"
#include "support/file.h"
#include "transfer/experiment.h"
#include "transfer/kernel_class.h"

namespace pruner {

namespace {

Json milliseconds(std::optional<double> seconds) { return seconds ? Json(1e3 * *seconds) : Json(); }

/// What became of one task.
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

// Without --experiment one network takes the schedules of a pool; with it each of a set of each.
struct Transfer {
  SourceOptions what;
  MeasurerOptions measure;
  OfferOptions offers;
  ExperimentOptions options;  // of which a transfer takes what it has
  std::string experiment, out_file;

  void add_to(CLI::App& app) {
    what.add_to(app);
    measure.add_to(app);
    offers.add_to(app);
    options.session.tune.trials = kDefaultTrials;
    add_option(app, "--source", offers.source)
        .help(
            "of the pool only this file; auto: that most like the network; as-published: that with "
            "the most schedules of its classes");
    add_option(app, "--verify", options.verify)
        .help("schedules a task that are measured, by the draft's order; 0: all");
    add_option(app, "--load-model", options.models.load_model)
        .help("weights of a PaCM; --verify then goes by its order");
    add_option(app, "--experiment", experiment)
        .help("a set of networks as JSON: each from each other, against searches in the same time");
    add_option(app, "--minute-check", options.minute_check)
        .help(
            "searches of --experiment are looked at every minute; otherwise each half of the "
            "transfer's time");
    add_option(app, "--stops", options.stops, 1)
        .help("of --experiment: how often a search is looked at before it is given up (30)");
    add_option(app, "--n-trials", options.session.tune.trials, 1)
        .help("of --experiment: that each network is tuned with (1000)");
    add_option(app, "--work-dir", options.session.work_dir)
        .help("folder of the run; the same again resumes");
    add_out_file(app, out_file);
  }

  /// `name`: of what is worked on.
  void complete(const std::string& name, const Target& target, const Invocation& call) {
    // The only one of the models' options that is the user's here.
    const std::string weights = options.models.load_model;
    options.models = measure.models(target);
    options.models.load_model = weights;
    options.target = target;
    SessionOptions& session = options.session;
    session.tune.measured_at_once = measured_at_once(measure);
    session.tune.seed = measure.seed;
    if (session.work_dir.empty()) session.work_dir = "tt_" + name;
    session.command = call.command_line;
    session.version = kVersion;
    session.input = name;
  }

  Result<int> run_experiment(const Invocation& call) {
    TRY_ASSIGN(const Target target, read_target(measure.target));
    TRY_ASSIGN(const std::vector<SetMember> set, read_source_set(experiment, what));
    std::vector<Source> networks;
    for (const SetMember& member : set) {
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
    LiveLine live(stderr);
    const ExperimentTools tools{
        .make_measurer =
            [&](const Source& network) {
              return make_measurer(measure, network, target, interrupted);
            },
        .stop = interrupted,
        .on_round =
            [&](const std::string& doing, const Tuner& tuner, const RoundSummary& summary) {
              live.show(doing + ": " + print(round_line(tuner, summary, kNoTrialLimit)));
            },
        .on_target =
            [&](const std::vector<TransferTarget>& targets) {
              return write_reports(dir, targets, target);
            }};
    TRY_ASSIGN(const std::vector<TransferTarget> targets,
               pruner::run_experiment(networks, std::move(done), options, tools));
    if (interrupted) return kInterrupted;
    live.finish();
    return call.show(experiment_json(targets, target), print_transfer_table(targets));
  }

  Result<int> run(const Invocation& call) {
    if (!experiment.empty()) return run_experiment(call);
    if (offers.pool.empty())
      return Error("transfer: no records are named; give those of tuned networks with --pool");
    TRY_ASSIGN(const Target target, read_target(measure.target));
    TRY_ASSIGN(const Source source, read_source(what, target));
    TRY_ASSIGN(std::vector<TransferSource> sources,
               read_pool(offers, source.tasks, measure.jobs, call.json));
    say_offers(sources, source.tasks);

    const std::atomic<bool>& interrupted = catch_interrupts();
    TRY_ASSIGN(const std::unique_ptr<Measurer> measurer,
               make_measurer(measure, source, target, interrupted));
    complete(source.name, target, call);
    LiveLine live(stderr);
    const auto on_round = [&](const Tuner& tuner, const RoundSummary& summary) {
      live.show(print(round_line(tuner, summary, kNoTrialLimit)));
    };
    TRY_ASSIGN(const std::unique_ptr<TransferRun> run,
               TransferRun::open(
                   source.tasks, std::move(sources), options, {*measurer, interrupted, on_round}));
    TRY_ASSIGN(TuneEnd end, run->run());
    live.finish();
    release_interrupts();
    if (interrupted) end = TuneEnd::kInterrupted;

    const Tuner& tuner = run->tuner();
    Json tasks = Json::array(), names = Json::array();
    for (const TunedTask& tuned : tuner.tasks()) tasks.push_back(task_json(tuned, *run));
    for (const TransferSource& from : run->sources()) names.push_back(from.name);
    Json summary = {{"sources", names},
                    {"tasks", tasks},
                    {"trials", tuner.trials()},
                    {"search_s", tuner.elapsed_s()}};
    if (!call.json) {
      print_tasks(tasks);
      fmt::print("{} trials of the schedules of {} sources, {:.1f} s\n",
                 tuner.trials(),
                 run->sources().size(),
                 tuner.elapsed_s());
    }
    if (source.network && end != TuneEnd::kInterrupted && !tuner.all_failed()) {
      const std::string path = out_file.empty() ? run->dir().file(source.name + ".so") : out_file;
      TRY_ASSIGN(const KeptModule made,
                 run->make_module(source.partition(), target, path, measure.jobs));
      const char* kept = made.transferred() ? "transferred" : "untuned";
      summary.update({{"module", path},
                      {"untuned_ms", made.untuned_ms},
                      {"transferred_ms", made.transferred_ms},
                      {"kept", kept},
                      {"build_s", made.build_s},
                      {"check_s", made.check_s}});
      if (!call.json)
        fmt::print("Inference time: {:.2f} ms untuned, {:.2f} ms transferred; {} is the {} one\n",
                   made.untuned_ms,
                   made.transferred_ms,
                   path,
                   kept);
    }
    if (call.json) fmt::print("{}\n", print_json(summary));
    return exit_code_of(tuner, end, run->dir().records());
  }
};

}  // namespace

RunCommand make_transfer(CLI::App& app) { return make_command<Transfer>(app); }

}  // namespace pruner
