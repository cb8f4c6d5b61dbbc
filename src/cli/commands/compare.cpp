// pruner compare: modes side by side, seed by seed, on networks or operators -> the summary tables,
// what the runs can show, curves and plots. --ablate compares a mode with and without its parts.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <ranges>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/measurer.h"
#include "cli/run_watch.h"
#include "cli/search_options.h"
#include "cli/source_set.h"
#include "deploy/module.h"
#include "deploy/race.h"
#include "report/ablation_table.h"
#include "report/network_time.h"
#include "support/file.h"
#include "support/log.h"
#include "support/temporary_folder.h"
#include "tune/compare.h"
#include "tune/work_dir.h"

namespace pruner {

namespace {

constexpr int64_t kFirstRound = 2;  // candidates of each task, in every mode
constexpr const char* kUsualModes = "ansor-as-published,pruner-as-published,ansor,pruner";

/// Takes up the seeds of this comparison that the folder holds; a seed that was cut short begins
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
  TRY(write_file(dir.file("comparison.txt"),
                 print_comparison(comparison) + print_conclusions(comparison)));
  TRY(write_file(dir.file("comparison.json"), print_json(comparison_json(comparison)) + "\n"));
  TRY(write_file(dir.file("curves.tsv"), curves_tsv(comparison)));
  return write_file(dir.file("curves.svg"), curves_svg(comparison));
}

Result<Unit> write_reports(const WorkDir& dir, const ComparisonSet& set) {
  TRY(write_file(dir.file("comparison.txt"), print_comparison_set(set) + print_conclusions(set)));
  TRY(write_file(dir.file("comparison.json"), print_json(comparison_set_json(set)) + "\n"));
  TRY(write_file(dir.file("performance.tsv"), performance_tsv(set)));
  TRY(write_file(dir.file("performance.svg"), performance_svg(set)));
  TRY(write_file(dir.file("search_time.tsv"), search_time_tsv(set)));
  return write_file(dir.file("search_time.svg"), search_time_svg(set));
}

/// Holds a network of the run, and its results so far.
struct Member {
  SetMember named;
  bool network;          // else one operator
  std::string work_dir;  // folder of this network's reports and records
  ComparedNetwork compared;
};

// The seeds that the folders hold are taken up first, so that the same command goes on.
class Compare {
 public:
  void add_to(CLI::App& app) {
    what_.add_to(app);
    measure_.add_to(app);
    measure_.add_build_only(app);
    begin_group(app, OptionGroup::kSearch);
    add_option(app, "--modes NAMES", contest_.modes)
        .help(
            "two or more modes, e.g. ansor,pruner; each may have -as-published, +INGREDIENT or "
            "-without-PART behind it; the first is the measure",
            "ansor and pruner, as published and with ingredients");
    add_option(app, "--ablate MODE", ablate_)
        .help(
            "what each ingredient of the mode gives: adds the mode with and without it to --modes");
    add_option(app, "--parts NAMES", parts_)
        .help("parts that --ablate looks at: ingredients, statement, dataflow, draft, ...",
              "the mode's ingredients, or those that it can take");
    contest_.add_to(app);
    explorer_.add_to(app, "candidates to measure in each mode, resumed runs included");
    events_.add_to(app);
  }

  Result<int> run(const Invocation& call) {
    interrupted_ = &catch_interrupts();
    TRY_ASSIGN(watch_, RunWatch::open(events_, call));
    TRY(read_options());
    TRY(read_members());
    if (measure_.build_only()) return build_only(call);
    trials_to_do_ = trials_to_do();
    for (Member& member : members_) {
      TRY(compare(member));
      if (members_.size() > 1) TRY(write_set());
      if (!pairs_.empty()) TRY(write_ablation());
      if (*interrupted_) break;
    }
    watch_->pause();
    TRY(print_results());
    return *interrupted_ ? kInterrupted : kDone;
  }

 private:
  // --seed, --seed + 1, ...
  auto seeds() const {
    return std::views::iota(measure_.seed, measure_.seed + static_cast<uint64_t>(contest_.seeds));
  }

  /// Builds the programs of every mode and seed into one bundle. Nothing compares their times, but
  /// each record that is measured of them says its mode.
  Result<int> build_only(const Invocation& call) {
    if (members_.size() > 1)
      return Error("--build-only: one network or operator goes into a bundle");
    if (!explorer_.work_dir.empty())
      return Error("--build-only compares nothing: there is nothing for --work-dir to hold");
    TRY_ASSIGN(const Source source, read_network(members_.front().named));
    TRY_ASSIGN(const std::shared_ptr<BundleBuild> build,
               make_bundle_build(measure_, source, target_, *interrupted_));
    TRY_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make(""));
    Built built;
    for (const uint64_t seed : seeds()) {
      CompareOptions compare{.tune = tune_, .work_dir = folder.path("")};
      compare.tune.seed = seed;
      compare.tune.remeasure = false;
      const auto measurer_of = [&](const Contestant& contestant) {
        watch_->phase("build", fmt::format("seed {} {}", seed, contestant.name));
        return build->measurer({compare.tune.origin, contestant.name});
      };
      const auto on_round = [&](const Contestant&, const Tuner&, const RoundSummary& summary) {
        built.add(summary);
      };
      TRY(build_modes(source.tasks, contestants_, compare, {measurer_of, *interrupted_, on_round}));
    }
    watch_->pause();
    call.show(built_json(measure_, source, built),
              print_bundle(measure_, source, built, "RECORDS.json"));
    return *interrupted_ ? kInterrupted : kDone;
  }

  Result<Unit> read_options() {
    TRY_ASSIGN(target_, read_target(measure_.target));
    TRY(read_modes());
    TRY_ASSIGN(contestants_,
               read_contestants(contest_, explorer_.mode, measure_.models(target_), &target_));
    if (contestants_.size() < 2)
      return Error(
          "--modes: ", contestants_.size(), " given, two or more are compared, e.g. ansor,pruner");
    const int64_t trials = explorer_.trials;
    tune_ = {.trials = trials > 0 ? trials : kDefaultTrials,
             .first_round_size = kFirstRound,
             .measured_at_once = measured_at_once(measure_)};
    return Unit{};
  }

  /// Completes --modes by --ablate, or by the modes that are compared unless others are given.
  Result<Unit> read_modes() {
    if (contest_.seeds < kLeastSeeds)
      log_warning("--seeds {}: too few for a conclusion, which needs {} or more",
                  contest_.seeds,
                  kLeastSeeds);
    if (ablate_.empty() && !parts_.empty())
      return Error("--parts ", parts_, ": belongs to --ablate MODE");
    if (!ablate_.empty()) {
      TRY_ASSIGN(pairs_, ablated_pairs(ablate_, parts_, target_));
      contest_.modes = ablated_modes(contest_.modes, ablate_, pairs_);
    }
    if (contest_.modes.empty()) contest_.modes = kUsualModes;
    return Unit{};
  }

  Result<Source> read_network(const SetMember& named) const {
    TRY_ASSIGN(Source source, read_member(named, target_));
    TRY(keep_matching(explorer_.tasks, source.tasks));
    if (source.tasks.empty())
      return Error(source.name, ": there is nothing to compare: the network has no task");
    return source;
  }

  /// Reads the networks and their folders, so that errors are reported before any measuring.
  Result<Unit> read_members() {
    TRY_ASSIGN(const std::vector<SetMember> networks, listed_networks(what_));
    for (const SetMember& named : networks) {
      watch_->phase("read", "reading " + named.source.named_text());
      TRY_ASSIGN(const Source source, read_network(named));
      for (const Member& member : members_)
        if (member.compared.name == source.name) return Error(source.name, ": is there twice");
      Member& member = members_.emplace_back(Member{named, source.network, {}, {source.name, {}}});
      member.work_dir = work_dir_of(source.name, networks.size() > 1);
      Comparison& comparison = member.compared.comparison;
      comparison.subject = fmt::format("{}, {} trials", source.name, tune_.trials);
      comparison.device = device_fingerprint(target_);
      for (const Contestant& contestant : contestants_)
        comparison.modes.push_back({contestant.name,
                                    std::string(update_mode(contestant.mode)),
                                    print(contestant.search.ingredients)});
      TRY(take_up(member.work_dir, comparison));
    }
    return Unit{};
  }

  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  std::string work_dir_of(const std::string& network, bool several) const {
    const std::string& given = explorer_.work_dir;
    if (!several) return given.empty() ? "cmp_" + network : given;
    return set_dir() + "/" + network;
  }
  std::string set_dir() const {
    if (!explorer_.work_dir.empty()) return explorer_.work_dir;
    const std::string set = std::filesystem::path(what_.set).stem().string();
    const bool operators = what_.source.ops.size() > 1;
    return "cmp_" + (!set.empty() ? set : operators ? "operators" : "networks");
  }

  /// Measures each seed's curves and its modules' times that a network's folder does not hold yet.
  Result<Unit> compare(Member& member) {
    Comparison& comparison = member.compared.comparison;
    TRY_ASSIGN(const WorkDir dir, WorkDir::open(member.work_dir));
    TRY(write_reports(dir, comparison));
    if (done(member)) return Unit{};
    TRY_ASSIGN(const Source source, read_network(member.named));
    TRY_ASSIGN(const std::unique_ptr<Measurer> measurer,
               make_measurer(measure_, source, target_, *interrupted_));
    watch_->started(
        {{"input", source.name}, {"work_dir", member.work_dir}, {"trials", tune_.trials}},
        source.tasks);
    watch_->phase("search",
                  fmt::format("{}: {} tasks, {} trials in each of {} modes, {} seeds, into {}",
                              source.name,
                              source.tasks.size(),
                              tune_.trials,
                              contestants_.size(),
                              contest_.seeds,
                              member.work_dir));
    for (const uint64_t seed : seeds()) {
      if (*interrupted_) break;
      if (comparison.curve(contestants_.front().name, seed) == nullptr) {
        TRY_ASSIGN(const std::vector<TuningCurve> curves, run_seed(source, seed, dir, *measurer));
        comparison.curves.insert(comparison.curves.end(), curves.begin(), curves.end());
        TRY(write_reports(dir, comparison));
      }
      if (!lacks_times(member, seed)) continue;
      TRY(measure_modules(source, dir, seed, comparison));
      TRY(write_reports(dir, comparison));
    }
    return Unit{};
  }

  /// Returns the trials of all networks, seeds and modes that no folder has yet.
  int64_t trials_to_do() const {
    int64_t runs = 0;
    for (const Member& member : members_)
      for (const uint64_t seed : seeds())
        runs += member.compared.comparison.curve(contestants_.front().name, seed) == nullptr;
    return runs * std::ssize(contestants_) * tune_.trials;
  }

  /// Whether the modules of a seed that was complete have not been timed.
  bool lacks_times(const Member& member, uint64_t seed) const {
    const TuningCurve* first = member.compared.comparison.curve(contestants_.front().name, seed);
    return member.network && first->complete && !first->end_to_end_s;
  }
  bool done(const Member& member) const {
    for (const uint64_t seed : seeds()) {
      if (member.compared.comparison.curve(contestants_.front().name, seed) == nullptr ||
          lacks_times(member, seed))
        return false;
    }
    return true;
  }

  Result<std::vector<TuningCurve>> run_seed(const Source& source,
                                            uint64_t seed,
                                            const WorkDir& dir,
                                            Measurer& measurer) {
    for (const Contestant& contestant : contestants_)
      TRY(set_aside_records(dir.path(), contestant.name, seed));
    CompareOptions compare{.tune = tune_, .work_dir = dir.path()};
    compare.tune.seed = seed;
    const std::string network = members_.size() > 1 ? source.name + ", " : "";
    const auto on_round =
        [&](const Contestant& contestant, const Tuner& tuner, const RoundSummary& summary) {
          RoundLine line = round_line(tuner, summary, tune_.trials);
          line.run = fmt::format("{}seed {} {}", network, seed, contestant.name);
          if (!summary.final) trials_done_ += summary.ok + summary.failed;
          line.elapsed_s = seconds();
          line.eta_s = eta_s(seconds(), trials_done_, trials_to_do_);
          line.busy = measurer.times().busy;
          watch_->round(line);
        };
    return compare_modes(source.tasks, contestants_, compare, {measurer, *interrupted_, on_round});
  }

  /// Builds a module of the schedules that each mode found, and times the modules in turns. The
  /// modules are not kept, since the records make them again.
  Result<Unit> measure_modules(const Source& source,
                               const WorkDir& dir,
                               uint64_t seed,
                               Comparison& comparison) const {
    watch_->phase("time", fmt::format("timing the modules of seed {}", seed));
    TRY_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make(dir.path()));
    std::vector<std::string> paths;
    for (const Contestant& contestant : contestants_) {
      TRY_ASSIGN(std::vector<Record> records,
                 read_intact_records(compared_records(dir.path(), contestant.name, seed)));
      const RecordedSchedules found(std::move(records), target_);
      paths.push_back(folder.path(contestant.name + ".so"));
      TRY(build_module(source.phases,
                       target_,
                       schedule_choice(found),
                       {measure_.jobs, "", contestant.search.forms},
                       paths.back()));
    }
    TRY_ASSIGN(const std::vector<double> ms, race_modules(paths, target_.threads));
    for (size_t i = 0; i < contestants_.size(); ++i) {
      const std::string& mode = contestants_[i].name;
      for (TuningCurve& curve : comparison.curves)
        if (curve.mode == mode && curve.seed == seed) curve.end_to_end_s = ms[i] / 1e3;
      TRY(append_result(
          dir.file("results.tsv"), target_, source.partition(), {source.name, mode, ms[i]}));
    }
    return Unit{};
  }

  /// The networks with a seed that was not cut short.
  ComparisonSet set() const {
    ComparisonSet set;
    for (const Member& member : members_) {
      const std::vector<TuningCurve>& curves = member.compared.comparison.curves;
      if (std::ranges::any_of(curves, &TuningCurve::complete)) set.push_back(member.compared);
    }
    return set;
  }

  Result<Unit> write_set() const {
    TRY_ASSIGN(const WorkDir dir, WorkDir::open(set_dir()));
    return write_reports(dir, set());
  }

  Result<Unit> write_ablation() const {
    TRY_ASSIGN(const WorkDir dir,
               WorkDir::open(members_.size() > 1 ? set_dir() : members_.front().work_dir));
    TRY(write_file(dir.file("ablation.txt"), print_ablation(set(), pairs_)));
    return write_file(dir.file("ablation.tsv"), ablation_tsv(set(), pairs_));
  }

  /// Returns what the command prints: the tables and the conclusions, or the ablation alone.
  std::string printed() const {
    if (!pairs_.empty()) return print_ablation(set(), pairs_);
    const Comparison& one = members_.front().compared.comparison;
    if (members_.size() == 1) return print_comparison(one) + print_conclusions(one);
    return print_comparison_set(set()) + print_conclusions(set());
  }

  Result<Unit> print_results() const {
    const bool several = members_.size() > 1;
    if (!watch_->json()) fmt::print("{}", printed());
    Json json = several ? comparison_set_json(set())
                        : comparison_json(members_.front().compared.comparison);
    if (!pairs_.empty()) json["ablation"] = ablation_json(set(), pairs_);
    TRY(watch_->done(json));
    if (several && set().empty()) log_warning("no network has a seed yet that was not cut short");
    return Unit{};
  }

  NetworkListOptions what_;
  MeasurerOptions measure_;
  ContestOptions contest_;
  std::string ablate_, parts_;
  std::vector<AblatedPair> pairs_;  // pairs of --ablate
  ExplorerOptions explorer_;
  const std::atomic<bool>* interrupted_ = nullptr;  // set when it runs
  EventOptions events_;
  std::unique_ptr<RunWatch> watch_;  // set when it runs
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  int64_t trials_done_ = 0, trials_to_do_ = 0;  // trials of this run without the re-measuring ones
  std::vector<Contestant> contestants_;         // the others are compared with the first
  TuneOptions tune_;
  Target target_;
  std::vector<Member> members_;
};

}  // namespace

RunCommand make_compare(CLI::App& app) { return make_command<Compare>(app); }

}  // namespace pruner
