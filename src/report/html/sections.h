// The sections of a run's page: plain numbers in, HTML out. Each says what its numbers are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/metrics.h"
#include "record/reasons.h"
#include "report/comparison.h"
#include "report/html/section.h"

namespace pruner {

/// `Peer` is another program's time for the same network, as the user gives it.
struct Peer {
  std::string name;
  double ms = 0;
};

/// The race that ended a run: the module and the untuned one, in turns.
struct ModuleRace {
  double untuned_s = 0, tuned_s = 0;                      // seconds of each module
  double speedup = 1, speedup_low = 1, speedup_high = 1;  // with a 95 % confidence interval
};

/// A run's outcome. Its estimates sum up kernels: each task's time, times its calls.
struct Verdict {
  std::string subject, mode, device;
  std::string status;                            // status in run.json
  std::optional<double> untuned_s, tuned_s;      // estimates: untuned schedules, best schedules
  std::optional<double> module_s, module_std_s;  // measured time of the whole module
  std::optional<ModuleRace> race = {};           // nullopt: the module was not raced
  std::vector<Peer> peers;
  int64_t trials = 0, tasks = 0, tasks_without_time = 0;
  double spent_s = 0;
  double others_share = 0;  // share of the cores' time that other processes had meanwhile
};
HtmlSection verdict_section(const Verdict& verdict);

/// The curves of all runs, and with several of them a table.
HtmlSection curves_section(const Comparison& comparison);

/// `Ceiling` holds the greatest rates of the machine; 0: not known.
struct Ceiling {
  double gflops = 0;                          // float32 rate
  std::map<std::string, double> unit_gflops;  // rates of units for narrow numbers, by precision
  double bandwidth_gbs = 0;
  std::string source;  // sentence that names the origin of the numbers
};

struct TaskFacts {
  std::string name, key = {};
  int weight = 1;                // calls in a run of the network
  double flops = -1, bytes = 0;  // negative flops: not known; bytes that must be moved
  std::string precision = {};    // precision of the best kernel's factors; empty: not known
  std::optional<double> untuned_s = {}, best_s = {};
  int64_t trials = 0, failed = 0;

  /// Returns the time of all calls.
  std::optional<double> time_s() const;
};

/// Returns the least seconds that a task's arithmetic and traffic take; nullopt without a ceiling.
std::optional<double> least_s(const TaskFacts& task, const Ceiling& ceiling);
/// Returns the tasks' indices, those with most time first, those without a time last.
std::vector<size_t> by_time(std::span<const TaskFacts> tasks);

HtmlSection tasks_section(std::span<const TaskFacts> tasks, const Ceiling& ceiling);
HtmlSection roofline_section(std::span<const TaskFacts> tasks, const Ceiling& ceiling);

/// `Phases` splits the seconds of a run.
struct Phases {
  double explore_s = 0, train_s = 0, build_s = 0, measure_s = 0, spent_s = 0;
};
HtmlSection phases_section(const std::optional<Phases>& phases);

/// Reasons by kind and first line of the message.
HtmlSection failures_section(const Reasons& failures, int64_t trials);

/// `TrialFacts` describes a measured program.
struct TrialFacts {
  size_t task = 0;
  std::string sketch;
  std::vector<std::pair<std::string, int32_t>> decisions;
  double measured_s = 0;
  double drafted_s = 0;           // 0: not known
  std::vector<double> repeats_s;  // empty: timed once, since the program was slow
};

/// `Calibration` compares measured programs with their predictions.
struct Calibration {
  std::vector<TrialFacts> trials;
  std::string no_draft;            // why trials have no draft; empty: trials have one
  std::optional<PairCount> model;  // pairs of each round's batch, by its model before it learned
};
HtmlSection calibration_section(const Calibration& calibration, std::span<const TaskFacts> tasks);

/// Returns the share of the variance of log cost that the value of one decision explains alone,
/// corrected for the number of values (Kelley's epsilon squared). Values that explain nothing have
/// 0. The result is nullopt for fewer than two values, as many values as programs, or equal costs.
/// `values` and `costs_s` have the same length.
std::optional<double> explained_share(std::span<const int32_t> values,
                                      std::span<const double> costs_s);
HtmlSection decisions_section(std::span<const TrialFacts> trials, std::span<const TaskFacts> tasks);

/// `Remeasured` is a best program that was measured again.
struct Remeasured {
  size_t task = 0;
  double search_s = 0;  // time that the search had measured
  std::vector<double> again_s;
};
struct Noise {
  std::vector<TrialFacts> trials;
  std::vector<Remeasured> remeasured;
  int64_t beside_others = 0;  // trials while other processes had a fifth of the cores' time or more
};
HtmlSection noise_section(const Noise& noise, std::span<const TaskFacts> tasks);

/// Prints the facts, name and value, that tell a run from others: command, versions, seed, hashes.
HtmlSection about_section(const std::vector<std::pair<std::string, std::string>>& facts);

}  // namespace pruner
