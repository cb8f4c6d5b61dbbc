#include "transfer/transfer_run.h"

#include <algorithm>
#include <cstdio>

#include "deploy/race.h"
#include "support/output_file.h"
#include "tune/stopwatch.h"

namespace pruner {

Result<std::unique_ptr<TransferRun>> TransferRun::open(std::span<const WeightedTask> tasks,
                                                       std::vector<TransferSource> sources,
                                                       const TransferOptions& options,
                                                       const TransferTools& tools) {
  TRY_ASSIGN(ModeModels models,
             make_models(options.models.load_model.empty() ? "draft-only" : "pam-no-update",
                         options.models));
  std::unique_ptr<TransferRun> run(new TransferRun(std::move(sources), std::move(models)));
  SessionOptions session = options.session;
  session.tune.trials = kNoTrialLimit;
  session.tune.policy = &kTransferPolicy;
  session.tune.origin = "transfer";
  session.tune.offers = [r = run.get(), most = options.verify](const Task& task,
                                                               const Space& space) {
    return r->offer(task, space, most);
  };
  TRY_ASSIGN(
      run->session_,
      Session::open(
          tasks, session, {tools.measurer, {*run->models_.draft}, tools.stop, tools.on_round}));
  return run;
}

std::vector<Candidate> TransferRun::offer(const Task& task, const Space& space, int64_t most) {
  const Offers& found = offers_[task.key] = offers_for(sources_, task, space);
  CostModel& model = models_.verify ? *models_.verify : *models_.draft;
  return ranked_offers(found, task, space, model, most);
}

std::optional<double> TransferRun::untuned_s(const TunedTask& tuned) const {
  const std::vector<Trial>& trials = tuned.history.trials();
  const auto found = std::ranges::find(trials, offers(tuned.task->task).untuned, &Trial::candidate);
  if (found == trials.end() || found->cost_s == kWorstCost) return std::nullopt;
  return found->cost_s;
}

std::optional<Trial> TransferRun::best_transferred(const TunedTask& tuned) const {
  const std::vector<Offer>& offered = offers(tuned.task->task).offers;
  for (const Trial& trial : tuned.history.trials()) {
    if (trial.cost_s == kWorstCost) break;  // the fastest come first
    if (std::ranges::find(offered, trial.candidate, &Offer::candidate) != offered.end())
      return trial;
  }
  return std::nullopt;
}

Result<KeptModule> TransferRun::make_module(const Partition& partition,
                                            const Target& target,
                                            const std::string& path,
                                            int jobs) const {
  TRY_ASSIGN(const OutputFile output, OutputFile::open(path));
  const std::string untuned = output.beside("untuned.so");
  const ModuleOptions options{jobs, "", {}};
  const auto start = std::chrono::steady_clock::now();
  TRY(build_module(partition, target, schedule_choice(tuner()), options, output.path()));
  KeptModule made{.build_s = seconds_since(start)};
  const ScheduleChoice none = [](const Task&, const Space&) { return std::nullopt; };
  TRY(build_module(partition, target, none, options, untuned));
  TRY_ASSIGN(const std::vector<double> ms, race_modules({output.path(), untuned}, target.threads));
  made.transferred_ms = ms[0];
  made.untuned_ms = ms[1];
  if (!made.transferred() && std::rename(untuned.c_str(), output.path().c_str()) != 0)
    return cannot_write(path);
  TRY(output.commit());
  made.check_s = seconds_since(start) - made.build_s;
  return made;
}

ScheduleChoice TransferRun::published_choice() const {
  return [this](const Task& task, const Space&) -> std::optional<Candidate> {
    for (const TunedTask& tuned : tuner().tasks()) {
      if (tuned.task->task.key != task.key) continue;
      const std::optional<Trial> best = best_transferred(tuned);
      return best ? std::optional(best->candidate) : std::nullopt;
    }
    return std::nullopt;
  };
}

}  // namespace pruner
