// pruner simulate: tuning runs whose device is a log -> trials to the log's best, curves, a plot.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "cli/commands.h"
#include "cli/measurer.h"
#include "cli/record_files.h"
#include "cli/recorded_source.h"
#include "cli/search_options.h"
#include "dataset/simulation.h"
#include "report/live_view.h"
#include "report/simulation_table.h"
#include "support/file.h"
#include "support/log.h"
#include "tune/work_dir.h"

namespace pruner {

namespace {

// Reads the log. Its GPU programs have draft scores of --psa's GPU, without --psa of an A100.
Result<ProgramPool> read_pool(const RecordedOptions& options) {
  TRY_ASSIGN(const std::vector<RecordPath> files,
             read_record_paths(options.records, "simulate --records"));
  PoolOptions pool{.jobs = options.jobs};
  TRY_ASSIGN(pool.gpu, read_draft_gpu(options.draft.device));
  if (!pool.gpu) pool.gpu = default_draft_gpu();
  TRY_ASSIGN(pool.form, read_draft_form(options.draft.form));
  ansor::WorkloadTable workloads;
  RecordedPrograms programs(workloads);
  TRY(add_dags(options, workloads, programs));
  TRY_ASSIGN(ProgramPool read, read_program_pool(files, programs, pool));
  TRY(check_intact(read.summary, files));
  return read;
}

void warn_without_draft(const ProgramPool& pool) {
  const auto drafted = [](const PooledTask& task) {
    return std::ranges::any_of(task.draft_scores, [](double score) { return score > 0; });
  };
  const auto without = std::ranges::count_if(pool.tasks, std::not_fn(drafted));
  if (without > 0)
    log_warning(
        "{} tasks have no draft (there is none of TVM's records of CPUs): in its place "
        "stands chance",
        without);
}

Result<Unit> write_reports(const std::string& work_dir, const SimulatedRuns& runs) {
  if (work_dir.empty()) return Unit{};
  TRY_ASSIGN(const WorkDir dir, WorkDir::open(work_dir));
  TRY(write_file(dir.file("simulation.txt"), print_simulation(runs)));
  TRY(write_file(dir.file("simulation.json"), print_json(simulation_json(runs)) + "\n"));
  TRY(write_file(dir.file("curves.tsv"), simulation_tsv(runs)));
  return write_file(dir.file("curves.svg"), curves_svg(runs.comparison));
}

struct Simulate {
  RecordedOptions recorded;
  ContestOptions contest{.modes = "pam", .weights = {}};
  ModeOptions mode;
  int64_t trials = kDefaultTrials;
  uint64_t first_seed = 0;  // first of contest.seeds seeds
  std::string work_dir;

  void add_to(CLI::App& app) {
    recorded.add_to(app);
    begin_group(app, OptionGroup::kSearch);
    add_option(app, "--modes,--mode,--cost-model NAMES", contest.modes)
        .help("one or more modes, e.g. random,ansor-xgb,pruner", "pam");
    contest.add_to(app);
    mode.add_log_options_to(app);
    begin_group(app, OptionGroup::kBudget);
    add_option(app, "--n-trials N", trials, 1).help("programs to look up in each run", "1000");
    add_seed(app, first_seed);
    begin_group(app, OptionGroup::kFiles);
    add_option(app, "--work-dir DIR", work_dir)
        .help("folder for simulation.txt and .json, curves.tsv and .svg");
  }

  Result<int> run(const Invocation& call) const {
    const Result<Target> device = parse_target(recorded.target.name, 0);
    const LearnedModelOptions models{
        .platform = device.ok() ? device->device : "", .jobs = recorded.jobs, .seed = first_seed};
    TRY_ASSIGN(const std::vector<Contestant> contestants,
               read_contestants(contest, mode, models, nullptr));
    for (const Contestant& contestant : contestants) {
      if (!split_mode_name(contestant.name).changes.empty() ||
          contestant.mode.policy == &kMetaSchedulePolicy)
        return Error(
            "--modes: ", contestant.name, ": nothing evolves in a log; `compare` takes that");
    }
    SimulationOptions simulation{.trials = trials};
    if (mode.round_size > 0) simulation.round_size = mode.round_size;
    TRY_ASSIGN(const ProgramPool pool, read_pool(recorded));
    warn_of_pool(pool);
    warn_without_draft(pool);
    SimulatedRuns runs{.comparison = {.subject = fmt::format("{} programs of {} tasks, {} trials",
                                                             pool.size(),
                                                             pool.tasks.size(),
                                                             simulation.trials),
                                      .device = "a log",
                                      .modes = {},
                                      .curves = {},
                                      .latency_name = "geometric mean of the tasks' latencies (ms)",
                                      .seconds_name = "seconds that the log spent on measuring"},
                       .best_s = best_known_s(pool),
                       .tasks = static_cast<int64_t>(pool.tasks.size()),
                       .programs = pool.size()};
    for (const Contestant& contestant : contestants)
      runs.comparison.modes.push_back({contestant.name, std::string(update_mode(contestant.mode))});
    LiveView live(stderr, call.quiet);
    for (const Contestant& contestant : contestants) {
      simulation.mode = &contestant.mode;
      simulation.name = contestant.name;
      simulation.draft_size = contestant.search.draft_size;
      simulation.eps_greedy = contestant.search.eps_greedy;
      simulation.models = contestant.models;
      for (uint64_t seed = first_seed; seed < first_seed + contest.seeds; ++seed) {
        live.say(fmt::format("{}, seed {}", contestant.name, seed));
        simulation.seed = seed;
        TRY_ASSIGN(TuningCurve curve, simulate(pool, simulation));
        runs.comparison.curves.push_back(std::move(curve));
        TRY(write_reports(work_dir, runs));  // reports of the runs so far
      }
    }
    live.finish();
    return call.show(simulation_json(runs), print_simulation(runs));
  }
};

}  // namespace

RunCommand make_simulate(CLI::App& app) { return make_command<Simulate>(app); }

}  // namespace pruner
