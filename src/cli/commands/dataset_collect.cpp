// pruner dataset collect: source -> Collection -> a file of records.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/measurer.h"
#include "dataset/collection.h"
#include "report/live_view.h"
#include "report/tune_report.h"

namespace pruner {

namespace {

struct Collect {
  SourceOptions what;
  MeasurerOptions measure;
  std::string forms, tasks;  // texts as given: a list, a regular expression
  double eps_greedy = -1;    // < 0: not given
  CollectOptions collect;

  void add_to(CLI::App& app) {
    what.add_to(app);
    measure.add_to(app);
    measure.add_build_only(app);
    add_forms(app, forms);
    add_option(app, "--eps-greedy SHARE", eps_greedy)
        .help("share of the programs that is drawn uniformly; the rest are mutations of drawn ones",
              "0.5");
    begin_group(app, OptionGroup::kBudget);
    add_option(app, "--programs-per-task N", collect.programs_per_task, 1)
        .help("programs to measure, resumed runs included", "1000");
    add_tasks(app, tasks);
    // The command reads a file that is there, and says which line is no record.
    add_out_file(app,
                 collect.file,
                 "the record file to write; one that is there goes on",
                 {FileKind::kJson, FileKind::kPacked, FileKind::kText});
  }

  /// Checks the options, and reads those that are texts.
  Result<Unit> read_options() {
    if (collect.file.empty())
      return Error("dataset collect: no file to write is named; give one with -o FILE");
    if (eps_greedy > 1) return Error("--eps-greedy is ", eps_greedy, ", at most 1");
    collect.measured_at_once = measured_at_once(measure);
    collect.seed = measure.seed;
    if (eps_greedy >= 0) collect.uniform_share = eps_greedy;
    TRY_ASSIGN(collect.forms, read_forms(forms));
    return Unit{};
  }

  Result<int> run(const Invocation& call) {
    TRY(read_options());
    TRY_ASSIGN(const Target target, read_target(measure.target));
    TRY_ASSIGN(Source source, read_source(what, target));
    TRY(keep_matching(tasks, source.tasks));

    const std::atomic<bool>& interrupted = catch_interrupts();
    TRY_ASSIGN(const std::unique_ptr<Measurer> measurer,
               make_measurer(measure, source, target, interrupted, {kCollectOrigin, ""}));
    LiveView live(stderr, call.quiet);
    const int64_t wanted = collect.programs_per_task * static_cast<int64_t>(source.tasks.size());
    Built built;
    const auto on_round = [&](const Tuner& tuner, const RoundSummary& summary) {
      built.add(summary);
      if (!measure.build_only()) return live.show(round_line(tuner, summary, wanted));
      live.say(print_built(measure, source, built));
    };
    TRY_ASSIGN(const std::unique_ptr<Collection> collection,
               Collection::open(source.tasks, collect, {*measurer, interrupted, on_round}));
    TRY_ASSIGN(const TuneEnd end, collection->run());
    live.finish();

    if (measure.build_only()) {
      call.show(built_json(measure, source, built),
                print_bundle(measure, source, built, collect.file));
      return exit_code_of(collection->tuner(), end, measure.bundle);
    }
    const Tuner& tuner = collection->tuner();
    call.show(tune_summary(tuner, end),
              fmt::format("{}{}: {} programs of {} tasks\n",
                          print_task_table(task_rows(tuner)),
                          collect.file,
                          tuner.trials(),
                          source.tasks.size()));
    return exit_code_of(tuner, end, collect.file);
  }
};

}  // namespace

RunCommand make_dataset_collect(CLI::App& app) { return make_command<Collect>(app); }

}  // namespace pruner
