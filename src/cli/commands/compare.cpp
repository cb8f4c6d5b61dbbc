// pruner compare: modes side by side, seed by seed -> the summary table, curves and a plot.
#include <fmt/format.h>

#include <filesystem>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/measurer.h"
#include "cli/search_options.h"
#include "cli/source.h"
#include "report/comparison.h"
#include "report/progress.h"
#include "support/file.h"
#include "tune/compare.h"
#include "tune/work_dir.h"

namespace pruner {

namespace {

constexpr int64_t kFirstRound = 2;  // candidates of each task, in every mode

/// Takes up the seeds that the folder holds of this comparison; a seed that was cut short begins
/// anew.
Result<Unit> take_up(const std::string& work_dir, Comparison& comparison) {
  const std::string path = work_dir + "/comparison.json";
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return Unit{};
  TRY_ASSIGN(const std::string text, read_file(path));
  const Result<Json> json = parse_json(text);
  if (!json.ok()) return Error(path, ": ", json.error().message());
  const Result<std::vector<TuningCurve>> curves = complete_curves(*json, comparison);
  if (!curves.ok())
    return Error(path, ": ", curves.error().message(), "; choose another folder with --work-dir");
  comparison.curves = *curves;
  return Unit{};
}

Result<Unit> write_reports(const WorkDir& dir, const Comparison& comparison) {
  TRY(write_file(dir.file("comparison.txt"), print_comparison(comparison)));
  TRY(write_file(dir.file("comparison.json"), print_json(comparison_json(comparison)) + "\n"));
  TRY(write_file(dir.file("curves.tsv"), curves_tsv(comparison)));
  return write_file(dir.file("curves.svg"), curves_svg(comparison));
}

}  // namespace

Result<int> run_compare(const Options& options) {
  TRY_ASSIGN(const Target target, read_target(options));
  TRY_ASSIGN(const std::vector<Contestant> contestants, read_contestants(options, &target));
  if (contestants.size() < 2)
    return Error(
        "--modes: ", contestants.size(), " given, two or more are compared, e.g. ansor,pruner");
  CompareOptions compare{.tune = {.trials = options.trials > 0 ? options.trials : kDefaultTrials,
                                  .round_size = options.round_size,
                                  .first_round_size = kFirstRound,
                                  .measured_at_once = job_count(options)},
                         .work_dir = {}};
  TRY_ASSIGN(Source source, read_source(options, target));
  TRY(keep_matching(options, source.tasks));
  Comparison comparison{.subject = fmt::format("{}, {} trials", source.name, compare.tune.trials),
                        .device = device_fingerprint(target),
                        .modes = {},
                        .curves = {}};
  for (const Contestant& contestant : contestants)
    comparison.modes.push_back({contestant.name, std::string(update_mode(contestant.mode))});
  compare.work_dir = options.work_dir.empty() ? "cmp_" + source.name : options.work_dir;
  TRY(take_up(compare.work_dir, comparison));
  TRY_ASSIGN(const WorkDir dir, WorkDir::open(compare.work_dir));
  TRY(write_reports(dir, comparison));

  const std::atomic<bool>& interrupted = catch_interrupts();
  TRY_ASSIGN(const std::unique_ptr<Measurer> measurer,
             make_measurer(options, source, target, interrupted));
  LiveLine live(stderr);
  const auto on_round =
      [&](const Contestant& contestant, const Tuner& tuner, const RoundSummary& summary) {
        live.show(fmt::format("seed {} {}: {}",
                              compare.tune.seed,
                              contestant.name,
                              print(round_line(tuner, summary, compare.tune.trials))));
      };
  for (int64_t i = 0; i < options.seeds && !interrupted; ++i) {
    compare.tune.seed = static_cast<uint64_t>(options.seed + i);
    if (comparison.curve(contestants.front().name, compare.tune.seed) != nullptr) continue;
    for (const Contestant& contestant : contestants)
      TRY(set_aside_records(dir.path(), contestant.name, compare.tune.seed));
    TRY_ASSIGN(
        const std::vector<TuningCurve> curves,
        compare_modes(source.tasks, contestants, compare, {*measurer, interrupted, on_round}));
    comparison.curves.insert(comparison.curves.end(), curves.begin(), curves.end());
    TRY(write_reports(dir, comparison));  // what is done so far
  }
  live.finish();
  options.json ? fmt::print("{}\n", print_json(comparison_json(comparison)))
               : fmt::print("{}", print_comparison(comparison));
  return interrupted ? kInterrupted : kDone;
}

}  // namespace pruner
