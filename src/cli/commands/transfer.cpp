// pruner transfer: a network and records of others -> their schedules measured on its tasks, and a
// module that is no slower than the one without any.
#include <fmt/format.h>

#include <filesystem>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/measurer.h"
#include "cli/module_race.h"
#include "cli/pool.h"
#include "cli/schedules.h"
#include "cli/transfer_run.h"
#include "report/progress.h"
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

/// The module with what was transferred, unless the one without is faster; times of both.
Result<Json> make_module(const Source& source,
                         const Target& target,
                         const Tuner& tuner,
                         const std::string& path,
                         const ModuleOptions& options) {
  const std::string untuned = path + ".untuned.so";
  const auto start = std::chrono::steady_clock::now();
  TRY(build_module(source.partition, target, schedule_choice(tuner), options, path));
  const double build_s = seconds_since(start);
  const ScheduleChoice none = [](const Task&, const Space&) { return std::nullopt; };
  TRY(build_module(source.partition, target, none, options, untuned));
  TRY_ASSIGN(const std::vector<double> ms, race_modules({path, untuned}, target.threads));
  const bool slower = ms[0] > ms[1];
  std::error_code code;
  if (slower) {
    std::filesystem::rename(untuned, path, code);
  } else {
    std::filesystem::remove(untuned, code);
  }
  if (code) return Error(untuned, ": ", code.message());
  return Json{{"module", path},
              {"untuned_ms", ms[1]},
              {"transferred_ms", ms[0]},
              {"kept", slower ? "untuned" : "transferred"},
              {"build_s", build_s},
              {"check_s", seconds_since(start) - build_s}};
}

}  // namespace

Result<int> run_transfer(const Options& options) {
  if (!options.experiment.empty()) return run_transfer_experiment(options);
  if (options.pool.empty())
    return Error("transfer: no records are named; give those of tuned networks with --pool");
  TRY_ASSIGN(const Target target, read_target(options));
  TRY_ASSIGN(const Source source, read_source(options, target));
  TRY_ASSIGN(std::vector<TransferSource> sources, read_pool(options, source.tasks));
  say_offers(sources, source.tasks);

  const std::atomic<bool>& interrupted = catch_interrupts();
  TRY_ASSIGN(const std::unique_ptr<Measurer> measurer,
             make_measurer(options, source, target, interrupted));
  LiveLine live(stderr);
  const auto on_round = [&](const Tuner& tuner, const RoundSummary& summary) {
    live.show(print(round_line(tuner, summary, kNoTrialLimit)));
  };
  const std::string work_dir = options.work_dir.empty() ? "tt_" + source.name : options.work_dir;
  TRY_ASSIGN(
      const std::unique_ptr<TransferRun> run,
      TransferRun::open(
          options, source, std::move(sources), work_dir, {*measurer, interrupted, on_round}));
  TRY_ASSIGN(const TuneEnd end, run->run());
  live.finish();

  const Tuner& tuner = run->tuner();
  Json tasks = Json::array(), names = Json::array();
  for (const TunedTask& tuned : tuner.tasks()) tasks.push_back(task_json(tuned, *run));
  for (const TransferSource& from : run->sources()) names.push_back(from.name);
  Json summary = {{"sources", names},
                  {"tasks", tasks},
                  {"trials", tuner.trials()},
                  {"search_s", tuner.elapsed_s()}};
  if (!options.json) {
    print_tasks(tasks);
    fmt::print("{} trials of the schedules of {} sources, {:.1f} s\n",
               tuner.trials(),
               run->sources().size(),
               tuner.elapsed_s());
  }
  if (source.network && end != TuneEnd::kInterrupted) {
    const std::string path =
        options.out_file.empty() ? run->dir().file(source.name + ".so") : options.out_file;
    TRY_ASSIGN(const Json made,
               make_module(source, target, tuner, path, {job_count(options), "", {}}));
    summary.update(made);
    if (!options.json) {
      fmt::print("Inference time: {:.2f} ms untuned, {:.2f} ms transferred; {} is the {} one\n",
                 made["untuned_ms"].get<double>(),
                 made["transferred_ms"].get<double>(),
                 path,
                 made["kept"].get<std::string>());
    }
  }
  if (options.json) fmt::print("{}\n", print_json(summary));
  return end == TuneEnd::kInterrupted ? kInterrupted : kDone;
}

}  // namespace pruner
