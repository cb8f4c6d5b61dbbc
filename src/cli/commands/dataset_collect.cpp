// pruner dataset collect: source -> Collection -> a file of records.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/measurer.h"
#include "cli/schedules.h"
#include "dataset/collection.h"
#include "report/progress.h"
#include "report/tune_report.h"

namespace pruner {

namespace {

Result<CollectOptions> collect_options(const Options& options) {
  if (options.out_file.empty())
    return Error("dataset collect: no file to write is named; give one with -o FILE");
  if (options.eps_greedy > 1) return Error("--eps-greedy is ", options.eps_greedy, ", at most 1");
  CollectOptions collect{.file = options.out_file,
                         .programs_per_task = options.programs_per_task,
                         .forms = {},
                         .measured_at_once = job_count(options),
                         .seed = static_cast<uint64_t>(options.seed)};
  TRY_ASSIGN(collect.forms, read_forms(options));
  if (options.eps_greedy >= 0) collect.uniform_share = options.eps_greedy;
  return collect;
}

}  // namespace

Result<int> run_dataset_collect(const Options& options) {
  TRY_ASSIGN(const CollectOptions collect, collect_options(options));
  TRY_ASSIGN(const Target target, read_target(options));
  TRY_ASSIGN(Source source, read_source(options, target));
  TRY(keep_matching(options, source.tasks));

  const std::atomic<bool>& interrupted = catch_interrupts();
  TRY_ASSIGN(const std::unique_ptr<Measurer> measurer,
             make_measurer(options, source, target, interrupted));
  LiveLine live(stderr);
  const int64_t wanted = collect.programs_per_task * static_cast<int64_t>(source.tasks.size());
  const auto on_round = [&](const Tuner& tuner, const RoundSummary& summary) {
    live.show(print(round_line(tuner, summary, wanted)));
  };
  TRY_ASSIGN(const std::unique_ptr<Collection> collection,
             Collection::open(source.tasks, collect, {*measurer, interrupted, on_round}));
  TRY_ASSIGN(const TuneEnd end, collection->run());
  live.finish();

  const Tuner& tuner = collection->tuner();
  if (options.json) {
    fmt::print("{}\n", print_json(tune_summary(tuner, end)));
  } else {
    fmt::print("{}{}: {} programs of {} tasks\n",
               print_task_table(task_rows(tuner)),
               collect.file,
               tuner.trials(),
               source.tasks.size());
  }
  return end == TuneEnd::kInterrupted ? kInterrupted : kDone;
}

}  // namespace pruner
