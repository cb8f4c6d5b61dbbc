#include "cli/transfer_run.h"

#include <algorithm>

#include "cli/pool.h"
#include "cli/search_options.h"
#include "cli/version.h"

namespace pruner {

Result<std::unique_ptr<TransferRun>> TransferRun::open(const Options& options,
                                                       const Source& source,
                                                       std::vector<TransferSource> sources,
                                                       const std::string& work_dir,
                                                       const TransferTools& tools) {
  TRY_ASSIGN(ModeModels models,
             read_models(options, options.load_model.empty() ? "draft-only" : "pam-no-update"));
  std::unique_ptr<TransferRun> run(new TransferRun(std::move(sources), std::move(models)));
  SessionOptions session{.tune = {.measured_at_once = job_count(options),
                                  .seed = static_cast<uint64_t>(options.seed),
                                  .policy = &kTransferPolicy,
                                  .origin = "transfer"},
                         .work_dir = work_dir,
                         .command = options.command_line,
                         .version = kVersion,
                         .input = source.name};
  session.tune.offers = [r = run.get(), most = options.verify](const Task& task,
                                                               const Space& space) {
    return r->offer(task, space, most);
  };
  TRY_ASSIGN(run->session_,
             Session::open(source.tasks,
                           session,
                           {tools.measurer, {*run->models_.draft}, tools.stop, tools.on_round}));
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
