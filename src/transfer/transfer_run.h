// Schedules of other networks measured on the tasks of one: a session of the policy `transfer`, and
// the modules that come of it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "deploy/module.h"
#include "measure/measure.h"
#include "search/mode.h"
#include "transfer/pool.h"
#include "tune/session.h"

namespace pruner {

struct TransferOptions {
  SessionOptions session;      // its policy is ignored
  LearnedModelOptions models;  // with weights a PaCM ranks schedules, else the draft
  int64_t verify = 0;          // schedules of a task that are measured, the best ranked; 0: all
};

/// Holds the times of a network's transferred module and of its module without any search.
struct KeptModule {
  double transferred_ms = 0, untuned_ms = 0;
  double build_s = 0;  // time to build the transferred module
  double check_s = 0;  // time to build the other module, and of the race

  bool transferred() const { return transferred_ms <= untuned_ms; }
};

/// Holds the tools of a transfer; all tools outlive the run.
struct TransferTools {
  Measurer& measurer;
  const std::atomic<bool>& stop;
  std::function<void(const Tuner& tuner, const RoundSummary& summary)> on_round;
};

class TransferRun {
 public:
  /// Opens the work dir (Session::open()); the tasks outlive the run.
  static Result<std::unique_ptr<TransferRun>> open(std::span<const WeightedTask> tasks,
                                                   std::vector<TransferSource> sources,
                                                   const TransferOptions& options,
                                                   const TransferTools& tools);

  Result<TuneEnd> run() { return session_->run(); }
  const Tuner& tuner() const { return session_->tuner(); }
  const WorkDir& dir() const { return session_->dir(); }
  const std::vector<TransferSource>& sources() const { return sources_; }
  const Offers& offers(const Task& task) const { return offers_.at(task.key); }

  /// Returns the seconds of the task's schedule that needs no search; nullopt if not measured.
  std::optional<double> untuned_s(const TunedTask& tuned) const;
  /// Returns the fastest of the task's transferred schedules; nullopt if none was valid.
  std::optional<Trial> best_transferred(const TunedTask& tuned) const;
  /// Builds the network at `path` with transferred schedules and without, times both modules in
  /// turns, and keeps the faster one.
  Result<KeptModule> make_module(const Partition& partition,
                                 const Target& target,
                                 const std::string& path,
                                 int jobs) const;
  /// Returns Transfer-Tuning's own choice (reference.md, choice): any valid schedule of another
  /// task before the task's own, which counts as a second.
  ScheduleChoice published_choice() const;

 private:
  TransferRun(std::vector<TransferSource> sources, ModeModels models)
      : sources_(std::move(sources)), models_(std::move(models)) {}
  std::vector<Candidate> offer(const Task& task, const Space& space, int64_t most);

  std::vector<TransferSource> sources_;
  ModeModels models_;
  std::map<std::string, Offers> offers_;  // offers by task key
  std::unique_ptr<Session> session_;
};

}  // namespace pruner
