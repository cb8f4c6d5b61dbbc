#include "transfer/experiment.h"

#include <algorithm>
#include <limits>

#include "deploy/race.h"
#include "tune/stopwatch.h"

namespace pruner {

namespace {

constexpr double kMinuteS = 60;     // between two stops, as published
constexpr double kStopShare = 0.5;  // share of the transfer's own time between stops
// A search's module is made if its estimate is at most kNearEstimate x the transferred network's,
// and at most kGain x its last module's.
constexpr double kNearEstimate = 1.05, kGain = 0.995;
// A warm start has reached the cold search's end when its module takes at most kReached x the tuned
// module's time. Once its estimate is as near, a module is timed every kLookEvery trials.
constexpr double kReached = 1.01;
constexpr int64_t kLookEvery = 50;

/// Holds a network of the set, and the results of its own tuning.
struct Member {
  const Source& network;
  TransferSource schedules = {};
  TransferTarget target = {.network = network.name};  // the transfers are added to it
  double tuned_estimate_s = 0;
};

class Experiment {
 public:
  Experiment(const std::vector<Source>& networks,
             std::vector<TransferTarget> done,
             const ExperimentOptions& options,
             const ExperimentTools& tools)
      : options_(options), tools_(tools), targets_(std::move(done)) {
    for (const Source& network : networks) members_.push_back({network});
  }

  Result<std::vector<TransferTarget>> run() {
    for (Member& member : members_) {
      TRY_ASSIGN(measurer_, tools_.make_measurer(member.network));
      TRY(tune(member));
      if (tools_.stop) return targets_;
    }
    for (const Member& member : members_) {
      const auto done = std::ranges::find(targets_, member.network.name, &TransferTarget::network);
      if (done != targets_.end()) continue;
      TRY_ASSIGN(measurer_, tools_.make_measurer(member.network));
      TRY(transfer_to(member));
      if (tools_.stop) return targets_;
      TRY(tools_.on_target(targets_));
    }
    return targets_;
  }

 private:
  std::string file(const std::string& name) const { return options_.session.work_dir + "/" + name; }

  auto shown(const std::string& what) const {
    return [this, what](const Tuner& tuner, const RoundSummary& summary) {
      tools_.on_round(what, tuner, summary);
    };
  }
  /// Returns the options of a session in a folder of the work dir.
  SessionOptions session_of(const Member& member, const std::string& folder) const {
    SessionOptions session = options_.session;
    session.work_dir = file(folder);
    session.input = member.network.name;
    return session;
  }

  /// Finds the network's own schedules: a session of --n-trials.
  Result<Unit> tune(Member& member) {
    TRY_ASSIGN(const ModeModels models, make_models("pruner", options_.models));
    TRY_ASSIGN(
        const std::unique_ptr<Session> session,
        Session::open(
            member.network.tasks,
            session_of(member, "tuned/" + member.network.name),
            {*measurer_, models.models(), tools_.stop, shown("tune " + member.network.name)}));
    TRY(session->run());
    TRY_ASSIGN(const std::vector<Record> records, session->dir().read_records());
    member.schedules =
        make_source(member.network.name, records, device_fingerprint(options_.target));
    member.target.tuned_trials = session->tuner().trials();
    member.target.tuned_s = session->tuner().elapsed_s();
    member.tuned_estimate_s = session->tuner().total_latency_s().value_or(0);
    return Unit{};
  }

  /// Builds a module of the network beside the others of its race.
  Result<double> build(const Member& member,
                       const ScheduleChoice& choice,
                       const std::string& name) {
    const auto start = std::chrono::steady_clock::now();
    TRY_ASSIGN(const WorkDir dir, WorkDir::open(file("modules")));
    TRY(build_module(member.network.phases,
                     options_.target,
                     choice,
                     {options_.models.jobs, "", {}},
                     dir.file(name + ".so")));
    return seconds_since(start);
  }

  Result<std::unique_ptr<TransferRun>> transfer(const Member& member,
                                                std::vector<TransferSource> sources,
                                                const std::string& from) {
    const std::string& name = member.network.name;
    TransferOptions transfer = options_;
    transfer.session = session_of(member, "transfer/" + name + "/" + from);
    TRY_ASSIGN(std::unique_ptr<TransferRun> run,
               TransferRun::open(member.network.tasks,
                                 std::move(sources),
                                 transfer,
                                 {*measurer_, tools_.stop, shown(name + " <- " + from)}));
    TRY(run->run());
    return run;
  }

  Result<Unit> transfer_to(const Member& member) {
    TransferTarget target = member.target;
    std::vector<TransferSource> others;
    for (const Member& other : members_)
      if (&other != &member) others.push_back(other.schedules);
    target.chosen = best_source(others, member.network.tasks);

    std::vector<std::string> names = {"untuned", "tuned", "published"};
    const ScheduleChoice none = [](const Task&, const Space&) { return std::nullopt; };
    TRY(build(member, none, "untuned"));
    TRY_ASSIGN(std::vector<Record> records,
               read_intact_records(file("tuned/" + member.network.name + "/records.json")));
    const RecordedSchedules tuned(std::move(records), options_.target);
    TRY(build(member, schedule_choice(tuned), "tuned"));
    double estimate_s = 0;  // estimate of the transferred network
    for (size_t s = 0; s <= others.size(); ++s) {
      const bool pool = s == others.size();
      const std::string from = pool ? "pool" : others[s].name;
      TRY_ASSIGN(const std::unique_ptr<TransferRun> run,
                 transfer(member, pool ? others : std::vector<TransferSource>{others[s]}, from));
      if (tools_.stop) return Unit{};
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
      if (tools_.stop) return Unit{};
      target.rivals.push_back(rival);
    }
    TRY_ASSIGN(target.warm_start, warm_start(member, others));
    if (!tools_.stop) targets_.push_back(std::move(target));
    return Unit{};
  }

  Result<std::vector<double>> race(std::vector<std::string> names) const {
    for (std::string& name : names) name = file("modules/" + name + ".so");
    return race_modules(names, options_.target.threads);
  }

  /// Runs a mode's search until its module is as fast as the transferred one, or stops are over.
  Result<SearchRival> compete(const Member& member,
                              const TransferTarget& target,
                              double estimate_s,
                              const std::string& mode_name) {
    SearchRival rival{.mode = mode_name};
    const double own_s = target.transferred().search_s;
    const double apart_s = options_.minute_check ? kMinuteS : kStopShare * own_s;
    TRY_ASSIGN(const SearchMode* mode, find_mode(mode_name));
    TRY_ASSIGN(const ModeModels models, make_models(mode_name, options_.models));
    TuneOptions tune = options_.session.tune;
    tune.trials = kNoTrialLimit;
    tune.mode = mode_name;
    tune.policy = mode->policy;
    tune.search = mode->policy->options;
    TRY_ASSIGN(RecordWriter writer, fresh_writer(member.network.name + "-" + mode_name));
    std::optional<Tuner> tuner;
    const auto on_round = [&](const RoundSummary& summary) {
      shown(member.network.name + ", " + mode_name)(*tuner, summary);
    };
    tuner.emplace(member.network.tasks,
                  tune,
                  TuneTools{*measurer_, models.models(), writer, tools_.stop, on_round});
    double looked_s = std::numeric_limits<double>::infinity();  // estimate of the last module
    const std::string transferred = "from_" + target.transferred().source;
    for (int64_t stop = 0; stop < options_.stops && !rival.matched; ++stop) {
      std::optional<TuneEnd> end;
      while (!end && tuner->elapsed_s() < own_s + static_cast<double>(stop) * apart_s) {
        TRY_ASSIGN(end, tuner->step());
      }
      if (tools_.stop) break;
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

  /// Finds the trials that a search needs to come to where the cold search ended, if it begins with
  /// the schedules of the others.
  Result<WarmStart> warm_start(const Member& member, const std::vector<TransferSource>& others) {
    WarmStart found{.cold_trials = member.target.tuned_trials};
    TRY_ASSIGN(const ModeModels models, make_models("pruner", options_.models));
    TuneOptions tune = options_.session.tune;
    start_warm(tune, others, *models.draft);
    TRY_ASSIGN(RecordWriter writer, fresh_writer(member.network.name + "-warm"));
    std::optional<Tuner> tuner;
    const auto on_round = [&](const RoundSummary& summary) {
      shown(member.network.name + ", warm start")(*tuner, summary);
    };
    tuner.emplace(member.network.tasks,
                  tune,
                  TuneTools{*measurer_, models.models(), writer, tools_.stop, on_round});
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

  /// Opens the records of a search that begins anew.
  Result<RecordWriter> fresh_writer(const std::string& name) const {
    TRY_ASSIGN(const WorkDir dir, WorkDir::open(file("searches/" + name)));
    TRY(dir.set_aside());
    return RecordWriter::open(dir.records());
  }

  const ExperimentOptions& options_;
  const ExperimentTools& tools_;
  std::unique_ptr<Measurer> measurer_;  // measurer of the current member
  std::vector<Member> members_;
  std::vector<TransferTarget> targets_;
};

}  // namespace

std::optional<double> TransferTarget::share_of_gain(double latency_ms, double least) const {
  if (untuned_ms / tuned_ms < least) return std::nullopt;
  return (untuned_ms / latency_ms - 1) / (untuned_ms / tuned_ms - 1);
}

Result<std::vector<TransferTarget>> run_experiment(const std::vector<Source>& networks,
                                                   std::vector<TransferTarget> done,
                                                   const ExperimentOptions& options,
                                                   const ExperimentTools& tools) {
  return Experiment(networks, std::move(done), options, tools).run();
}

}  // namespace pruner
