// A round takes the same programs as the mode's policy (search/policies), and a share at random.
// The policy ranks drafts, which the learned model and the draft verify together, or the learned
// model ranks all programs alone. No program has neighbours here, and nothing evolves. A batch is
// the first of the ranks: nobody knows which schedules of foreign records are alike
// (search/doubt.h).
#include "dataset/simulation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/stacking.h"
#include "search/batch.h"
#include "tune/scheduler.h"

namespace pruner {

namespace {

using Ids = std::vector<size_t>;  // indices of programs of a task

/// `RunTask` is the state of a task in a run.
struct RunTask {
  const PooledTask* pool;
  Ids left;  // programs that were not measured, in the pool's order
  double known_s;
  double best_s = kWorstCost;
  double unit_s = 0;  // best time of the first valid round; 0: none yet
};

class Simulation {
 public:
  Simulation(const ProgramPool& pool,
             const SimulationOptions& options,
             std::unique_ptr<LearnedModel> model)
      : options_(options),
        drafts_(options.mode->policy->drafts),
        model_(std::move(model)),
        rng_(options.seed),
        scheduler_(std::vector<ScheduledTask>(pool.tasks.size())) {
    for (const PooledTask& task : pool.tasks) {
      tasks_.push_back({.pool = &task, .left = Ids(task.size()), .known_s = task.best_s()});
      std::iota(tasks_.back().left.begin(), tasks_.back().left.end(), size_t{0});
    }
    curve_.mode = options.name;
    curve_.seed = options.seed;
    curve_.trials = std::min(options.trials, pool.size());
    curve_.complete = true;
  }

  Result<TuningCurve> run() {
    const auto size =
        round_size(options_.round_size, options_.trials, static_cast<int64_t>(tasks_.size()));
    size_t cold = 0;  // tasks have a round each before the scheduler has a say
    while (trials_ < curve_.trials && !all_found()) {
      const std::optional<size_t> next =
          cold < tasks_.size() ? std::optional(cold++) : scheduler_.next(rng_);
      if (!next) break;
      TRY(round(*next, std::min(size, curve_.trials - trials_)));
    }
    curve_.search_s = seconds_;
    return std::move(curve_);
  }

 private:
  bool all_found() const {
    return std::ranges::all_of(tasks_, [](const RunTask& t) { return t.best_s <= t.known_s; });
  }

  Result<Unit> round(size_t index, int64_t count) {
    RunTask& task = tasks_[index];
    const Ids batch = choose(task, std::min(static_cast<size_t>(count), task.left.size()));
    for (const size_t id : batch) measure(task, id);
    std::erase_if(task.left,
                  [&](size_t id) { return std::ranges::find(batch, id) != batch.end(); });
    if (task.unit_s == 0 && task.best_s < kWorstCost) task.unit_s = task.best_s;
    scheduler_.finish_round(index, task.unit_s > 0 ? task.best_s / task.unit_s : kWorstCost);
    if (task.left.empty()) scheduler_.mark_dead(index);
    return learn(index, batch);
  }

  void measure(RunTask& task, size_t id) {
    const PooledTrial& trial = task.pool->trials[id];
    ++trials_;
    seconds_ += trial.spent_s;
    if (trial.cost_s >= task.best_s) return;
    task.best_s = trial.cost_s;
    double logs = 0;
    for (const RunTask& t : tasks_) {
      if (t.best_s >= kWorstCost) return;
      logs += std::log(t.best_s);
    }
    const double mean_s = std::exp(logs / static_cast<double>(tasks_.size()));
    curve_.points.push_back({trials_, seconds_, mean_s});
  }

  Result<Unit> learn(size_t index, const Ids& batch) {
    if (model_ == nullptr) return Unit{};
    const PooledTask& task = *tasks_[index].pool;
    if (stacks()) weigh(task, batch);
    std::vector<TrainingSample> samples;
    for (const size_t id : batch)
      samples.push_back({static_cast<int32_t>(index), task.features[id], task.trials[id].cost_s});
    const Result<Unit> learned = model_->update(samples);
    if (!learned.ok()) return Error(options_.name, ": ", learned.error().message());
    return Unit{};
  }

  void weigh(const PooledTask& task, Ids batch) {
    std::erase_if(batch, [&](size_t id) {
      return task.trials[id].cost_s >= kFailedCost || task.draft_scores[id] <= 0;
    });
    const std::vector<float> learned = scores(task, batch);
    if (learned.empty()) return;
    std::vector<float> drafted;
    std::vector<double> times_s;
    for (const size_t id : batch) {
      drafted.push_back(static_cast<float>(task.draft_scores[id]));
      times_s.push_back(task.trials[id].cost_s);
    }
    stacking_.weigh(drafted, learned, times_s);
  }

  /// Returns whether the draft has a say beside the learned model.
  bool stacks() const { return drafts_ && !options_.models.as_published; }

  /// Returns the learned model's scores; empty if the model has nothing to say.
  std::vector<float> scores(const PooledTask& task, const Ids& ids) {
    if (model_ == nullptr || !model_->ready() || ids.empty()) return {};
    std::vector<ProgramFeatures> programs;
    for (const size_t id : ids) programs.push_back(task.features[id]);
    return model_->predict(programs);
  }

  Ids choose(const RunTask& task, size_t count) {
    const size_t num_random =
        options_.mode->model == "random" ? count : draw_share(options_.eps_greedy, count, rng_);
    Ids batch = count > num_random ? ranked(task) : Ids();
    batch.resize(std::min(batch.size(), count - std::min(count, num_random)));
    for (const size_t id : shuffled(task.left)) {
      if (batch.size() >= count) break;
      if (std::ranges::find(batch, id) == batch.end()) batch.push_back(id);
    }
    return batch;
  }

  Ids shuffled(Ids ids) {
    for (size_t i = ids.size(); i > 1; --i)
      std::swap(ids[i - 1], ids[rng_.below(static_cast<int64_t>(i))]);
    return ids;
  }

  /// Returns the programs of the task that were not measured, the most promising first.
  Ids ranked(const RunTask& task) {
    const PooledTask& pool = *task.pool;
    Ids ids = shuffled(task.left);  // programs of equal score stand in random order
    if (drafts_) {
      sort_by(ids, [&](size_t id) { return pool.draft_scores[id]; });
      if (model_ != nullptr && ids.size() > options_.draft_size) ids.resize(options_.draft_size);
    }
    const std::vector<float> learned = scores(pool, ids);
    if (learned.empty()) return ids;
    std::vector<double> score(pool.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto drafted = static_cast<float>(pool.draft_scores[ids[i]]);
      const bool both = stacks() && drafted > 0;
      score[ids[i]] = static_cast<double>(both ? stacking_.score(drafted, learned[i]) : learned[i]);
    }
    sort_by(ids, [&](size_t id) { return score[id]; });
    return ids;
  }

  template <typename Score>
  static void sort_by(Ids& ids, const Score& score) {
    std::ranges::stable_sort(ids, std::greater(), score);
  }

  const SimulationOptions& options_;
  bool drafts_;
  std::unique_ptr<LearnedModel> model_;
  Stacking stacking_;
  Rng rng_;
  std::vector<RunTask> tasks_;
  Scheduler scheduler_;
  TuningCurve curve_;
  int64_t trials_ = 0;
  double seconds_ = 0;
};

}  // namespace

double best_known_s(const ProgramPool& pool) {
  double logs = 0;
  for (const PooledTask& task : pool.tasks) logs += std::log(task.best_s());
  return std::exp(logs / static_cast<double>(pool.tasks.size()));
}

Result<TuningCurve> simulate(const ProgramPool& pool, const SimulationOptions& options) {
  const std::string_view name = options.mode->model;
  std::unique_ptr<LearnedModel> model;
  if (options.mode->learns()) {
    LearnedModelOptions models = options.models;
    models.seed = options.seed;
    models.time_box_s = kNoTimeBox;
    models.warm_up_samples =
        trials_of_a_round_each(options.round_size, options.trials, pool.tasks.size());
    TRY_ASSIGN(model, make_learned_model(name, models));
  }
  return Simulation(pool, options, std::move(model)).run();
}

}  // namespace pruner
