// pruner transfer --experiment: a set of networks -> each tuned, each from the schedules of each
// other, and what searches make of the same time (Transfer-Tuning, section 5; reference.md,
// experiment).
#include <fmt/format.h>

#include <filesystem>
#include <limits>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/measurer.h"
#include "cli/module_race.h"
#include "cli/pool.h"
#include "cli/schedules.h"
#include "cli/search_options.h"
#include "cli/source_set.h"
#include "cli/transfer_run.h"
#include "cli/version.h"
#include "report/progress.h"
#include "report/transfer_report.h"
#include "support/file.h"

namespace pruner {

namespace {

constexpr double kMinuteS = 60;     // between two stops, as published
constexpr double kStopShare = 0.5;  // ... of the transfer's own time
// A search's module is made where its estimate is at most this x that of the transferred network,
// and at most this x that of its last module.
constexpr double kNearEstimate = 1.05, kGain = 0.995;
// A warm start has come to where the cold search ended when its module's time is at most this x
// that one's; looked at every so many trials once its estimate is.
constexpr double kReached = 1.01;
constexpr int64_t kLookEvery = 50;

/// A network of the set.
struct Member {
  Source source;
  TransferSource schedules;  // of its own tuning
  double tuned_s = 0;
  double tuned_estimate_s = 0;
  int64_t tuned_trials = 0;
};

class Experiment {
 public:
  Experiment(const Options& options, const Target& target, std::string work_dir)
      : options_(options),
        target_(target),
        work_dir_(std::move(work_dir)),
        interrupted_(catch_interrupts()),
        live_(stderr) {}

  Result<int> run() {
    TRY(read_set());
    TRY_ASSIGN(const WorkDir dir, WorkDir::open(work_dir_));
    TRY(take_up());
    for (Member& member : members_) {
      TRY_ASSIGN(measurer_, make_measurer(options_, member.source, target_, interrupted_));
      TRY(tune(member));
      if (interrupted_) return kInterrupted;
    }
    for (const Member& member : members_) {
      const auto done = std::ranges::find(targets_, member.source.name, &TransferTarget::network);
      if (done != targets_.end()) continue;
      TRY_ASSIGN(measurer_, make_measurer(options_, member.source, target_, interrupted_));
      TRY(transfer_to(member));
      if (interrupted_) return kInterrupted;
      TRY(write_reports());
    }
    live_.finish();
    if (options_.json) {
      fmt::print("{}\n", print_json(as_json()));
    } else {
      fmt::print("{}", print_transfer_table(targets_));
    }
    return kDone;
  }

 private:
  std::string file(const std::string& name) const { return work_dir_ + "/" + name; }

  Result<Unit> read_set() {
    TRY_ASSIGN(const std::vector<SetMember> set, read_source_set(options_.experiment, options_));
    for (const SetMember& member : set) {
      Result<Source> source = read_member(member, target_);
      if (!source.ok()) return Error(options_.experiment, ": ", source.error().message());
      members_.push_back({*std::move(source), {}});
    }
    if (members_.size() < 2)
      return Error(options_.experiment, ": ", members_.size(), " networks; two or more are needed");
    return Unit{};
  }

  /// The networks that an earlier run has done.
  Result<Unit> take_up() {
    std::error_code code;
    if (!std::filesystem::exists(file("experiment.json"), code)) return Unit{};
    TRY_ASSIGN(const std::string text, read_file(file("experiment.json")));
    TRY_ASSIGN(const Json json, parse_json(text));
    TRY_ASSIGN(const Json targets, json_get<Json>(json, "targets"));
    for (const Json& target : targets) {
      const Result<TransferTarget> read = transfer_target_from_json(target);
      if (!read.ok()) return Error(file("experiment.json"), ": ", read.error().message());
      targets_.push_back(*read);
    }
    return Unit{};
  }

  Json as_json() const {
    Json targets = Json::array();
    for (const TransferTarget& target : targets_) targets.push_back(to_json(target));
    return {{"device", device_fingerprint(target_)}, {"targets", targets}};
  }

  Result<Unit> write_reports() const {
    TRY(write_file(file("experiment.json"), print_json(as_json()) + "\n"));
    TRY(write_file(file("experiment.txt"), print_transfer_table(targets_)));
    TRY(write_file(file("experiment.tsv"), transfer_tsv(targets_)));
    TRY(write_file(file("fig_5a.svg"), speedup_svg(targets_)));
    return write_file(file("fig_5b.svg"), search_time_svg(targets_));
  }

  auto shown(const std::string& what) {
    return [this, what](const Tuner& tuner, const RoundSummary& summary) {
      live_.show(what + ": " + print(round_line(tuner, summary, kNoTrialLimit)));
    };
  }

  TuneOptions tune_options() const {
    return {.trials = options_.trials > 0 ? options_.trials : kDefaultTrials,
            .measured_at_once = job_count(options_),
            .seed = static_cast<uint64_t>(options_.seed)};
  }

  /// The network's own schedules: a session of --n-trials.
  Result<Unit> tune(Member& member) {
    TRY_ASSIGN(const ModeModels models, read_models(options_, "pruner"));
    const SessionOptions session_options{.tune = tune_options(),
                                         .work_dir = file("tuned/" + member.source.name),
                                         .command = options_.command_line,
                                         .version = kVersion,
                                         .input = member.source.name};
    TRY_ASSIGN(
        const std::unique_ptr<Session> session,
        Session::open(
            member.source.tasks,
            session_options,
            {*measurer_, models.models(), interrupted_, shown("tune " + member.source.name)}));
    TRY(session->run());
    TRY_ASSIGN(const std::vector<Record> records, session->dir().read_records());
    member.schedules = make_source(member.source.name, records, device_fingerprint(target_));
    member.tuned_trials = session->tuner().trials();
    member.tuned_s = session->tuner().elapsed_s();
    member.tuned_estimate_s = session->tuner().total_latency_s().value_or(0);
    return Unit{};
  }

  /// Builds a module of the network beside the others of its race.
  Result<double> build(const Member& member,
                       const ScheduleChoice& choice,
                       const std::string& name) {
    const auto start = std::chrono::steady_clock::now();
    TRY_ASSIGN(const WorkDir dir, WorkDir::open(file("modules")));
    TRY(build_module(member.source.partition,
                     target_,
                     choice,
                     {job_count(options_), "", {}},
                     dir.file(name + ".so")));
    return seconds_since(start);
  }

  Result<std::unique_ptr<TransferRun>> transfer(const Member& member,
                                                std::vector<TransferSource> sources,
                                                const std::string& from) {
    const std::string& name = member.source.name;
    TRY_ASSIGN(std::unique_ptr<TransferRun> run,
               TransferRun::open(options_,
                                 member.source,
                                 std::move(sources),
                                 file("transfer/" + name + "/" + from),
                                 {*measurer_, interrupted_, shown(name + " <- " + from)}));
    TRY(run->run());
    return run;
  }

  Result<Unit> transfer_to(const Member& member) {
    TransferTarget target{.network = member.source.name,
                          .tuned_trials = member.tuned_trials,
                          .tuned_s = member.tuned_s};
    std::vector<TransferSource> others;
    for (const Member& other : members_)
      if (&other != &member) others.push_back(other.schedules);
    target.chosen = best_source(others, member.source.tasks);

    std::vector<std::string> names = {"untuned", "tuned", "published"};
    const ScheduleChoice none = [](const Task&, const Space&) { return std::nullopt; };
    TRY(build(member, none, "untuned"));
    TRY_ASSIGN(std::vector<Record> records,
               read_intact_records(file("tuned/" + member.source.name + "/records.json")));
    const RecordedSchedules tuned(std::move(records), target_);
    TRY(build(member, schedule_choice(tuned), "tuned"));
    double estimate_s = 0;  // of the transferred network
    for (size_t s = 0; s <= others.size(); ++s) {
      const bool pool = s == others.size();
      const std::string from = pool ? "pool" : others[s].name;
      TRY_ASSIGN(const std::unique_ptr<TransferRun> run,
                 transfer(member, pool ? others : std::vector<TransferSource>{others[s]}, from));
      if (interrupted_) return Unit{};
      TransferredNetwork found{
          .source = from, .trials = run->tuner().trials(), .search_s = run->tuner().elapsed_s()};
      TRY_ASSIGN(found.build_s, build(member, schedule_choice(run->tuner()), "from_" + from));
      names.push_back("from_" + from);
      if (s == target.chosen) {
        TRY(build(member, run->published_choice(), "published"));
        estimate_s = run->tuner().total_latency_s().value_or(0);
      }
      (pool ? target.pool : target.one_to_one.emplace_back()) = found;
    }
    TRY_ASSIGN(const std::vector<double> ms, race(names));
    target.untuned_ms = ms[0];
    target.tuned_ms = ms[1];
    target.published_choice_ms = ms[2];
    for (size_t s = 0; s < others.size(); ++s) target.one_to_one[s].latency_ms = ms[3 + s];
    target.pool.latency_ms = ms.back();
    for (const char* mode : {"ansor", "pruner"}) {
      TRY_ASSIGN(const SearchRival rival, compete(member, target, estimate_s, mode));
      if (interrupted_) return Unit{};
      target.rivals.push_back(rival);
    }
    TRY_ASSIGN(target.warm_start, warm_start(member, others));
    if (!interrupted_) targets_.push_back(std::move(target));
    return Unit{};
  }

  Result<std::vector<double>> race(std::vector<std::string> names) const {
    for (std::string& name : names) name = file("modules/" + name + ".so");
    return race_modules(names, target_.threads);
  }

  /// A mode's search until its module is as fast as the transferred one, or its stops are over.
  Result<SearchRival> compete(const Member& member,
                              const TransferTarget& target,
                              double estimate_s,
                              const std::string& mode_name) {
    SearchRival rival{.mode = mode_name};
    const double own_s = target.transferred().search_s;
    const double apart_s = options_.minute_check ? kMinuteS : kStopShare * own_s;
    TRY_ASSIGN(const SearchMode* mode, find_mode(mode_name));
    TRY_ASSIGN(const ModeModels models, read_models(options_, mode_name));
    TuneOptions tune = tune_options();
    tune.trials = kNoTrialLimit;
    tune.mode = mode_name;
    tune.policy = mode->policy;
    tune.search = mode->policy->options;
    TRY_ASSIGN(RecordWriter writer, fresh_writer(member.source.name + "-" + mode_name));
    std::optional<Tuner> tuner;
    const auto on_round = [&](const RoundSummary& summary) {
      shown(member.source.name + ", " + mode_name)(*tuner, summary);
    };
    tuner.emplace(member.source.tasks,
                  tune,
                  TuneTools{*measurer_, models.models(), writer, interrupted_, on_round});
    double looked_s = std::numeric_limits<double>::infinity();  // estimate of the last module
    const std::string transferred = "from_" + target.transferred().source;
    for (int64_t stop = 0; stop < options_.stops && !rival.matched; ++stop) {
      std::optional<TuneEnd> end;
      while (!end && tuner->elapsed_s() < own_s + static_cast<double>(stop) * apart_s) {
        TRY_ASSIGN(end, tuner->step());
      }
      if (interrupted_) break;
      rival.match_s = tuner->elapsed_s();
      rival.match_trials = tuner->trials();
      const std::optional<double> total_s = tuner->total_latency_s();
      const bool near = total_s && *total_s <= kNearEstimate * estimate_s;
      if (stop > 0 && (!near || *total_s > kGain * looked_s)) continue;
      looked_s = total_s.value_or(looked_s);
      TRY(build(member, schedule_choice(*tuner), "rival"));
      TRY_ASSIGN(const std::vector<double> ms, race({"rival", transferred, "untuned"}));
      if (stop == 0) {
        rival.equal_time_ms = ms[0] / ms[2] * target.untuned_ms;
        rival.equal_time_trials = tuner->trials();
      }
      rival.matched = ms[0] <= std::min(ms[1], ms[2]);
      if (end) break;
    }
    return rival;
  }

  /// The trials that a search needs to come to where the cold one ended, when it begins with the
  /// schedules of the others.
  Result<WarmStart> warm_start(const Member& member, const std::vector<TransferSource>& others) {
    WarmStart found{.cold_trials = member.tuned_trials};
    TRY_ASSIGN(const ModeModels models, read_models(options_, "pruner"));
    TuneOptions tune = tune_options();
    start_warm(tune, others, *models.draft);
    TRY_ASSIGN(RecordWriter writer, fresh_writer(member.source.name + "-warm"));
    std::optional<Tuner> tuner;
    const auto on_round = [&](const RoundSummary& summary) {
      shown(member.source.name + ", warm start")(*tuner, summary);
    };
    tuner.emplace(member.source.tasks,
                  tune,
                  TuneTools{*measurer_, models.models(), writer, interrupted_, on_round});
    std::optional<TuneEnd> end;
    for (int64_t next_look = 0; !end && !found.reached;) {
      TRY_ASSIGN(end, tuner->step());
      const std::optional<double> total_s = tuner->total_latency_s();
      const bool near = total_s && *total_s <= kReached * member.tuned_estimate_s;
      if (!near || (tuner->trials() < next_look && !end)) continue;
      next_look = tuner->trials() + kLookEvery;
      TRY(build(member, schedule_choice(*tuner), "warm"));
      TRY_ASSIGN(const std::vector<double> ms, race({"warm", "tuned"}));
      found.reached = ms[0] <= kReached * ms[1];
    }
    found.trials = tuner->trials();
    found.seconds = tuner->elapsed_s();
    return found;
  }

  /// Records of a search that begins anew.
  Result<RecordWriter> fresh_writer(const std::string& name) const {
    TRY_ASSIGN(const WorkDir dir, WorkDir::open(file("searches/" + name)));
    TRY(dir.set_aside());
    return RecordWriter::open(dir.records());
  }

  const Options& options_;
  const Target& target_;
  std::string work_dir_;
  const std::atomic<bool>& interrupted_;
  LiveLine live_;
  std::unique_ptr<Measurer> measurer_;  // of the member at hand
  std::vector<Member> members_;
  std::vector<TransferTarget> targets_;
};

}  // namespace

Result<int> run_transfer_experiment(const Options& options) {
  TRY_ASSIGN(const Target target, read_target(options));
  const std::string work_dir = options.work_dir.empty() ? "tt_experiment" : options.work_dir;
  return Experiment(options, target, work_dir).run();
}

}  // namespace pruner
