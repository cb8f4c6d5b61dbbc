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

/// Another program's time of the same network, as the user says it.
struct Peer {
  std::string name;
  double ms = 0;
};

/// What the run came to. The estimates add up kernels: each task's time, as often as it is called.
struct Verdict {
  std::string subject, mode, device;
  std::string status;                            // as run.json has it
  std::optional<double> untuned_s, tuned_s;      // estimates: of the untuned schedules, of the best
  std::optional<double> module_s, module_std_s;  // of the whole module, measured
  std::vector<Peer> peers;
  int64_t trials = 0, tasks = 0, tasks_without_time = 0;
  double spent_s = 0;
  double others_share = 0;  // of the cores' time, that other processes had meanwhile
};
HtmlSection verdict_section(const Verdict& verdict);

/// The curves of all runs, and with several of them a table.
HtmlSection curves_section(const Comparison& comparison);

/// What the machine can do at most; 0: not known.
struct Ceiling {
  double gflops = 0;                          // of float32
  std::map<std::string, double> unit_gflops;  // of units for narrow numbers, by precision
  double bandwidth_gbs = 0;
  std::string source;  // where the numbers are from, as a sentence's end
};

struct TaskFacts {
  std::string name, key = {};
  int weight = 1;                // calls in a run of the network
  double flops = -1, bytes = 0;  // negative: not known; that cannot be avoided
  std::string precision = {};    // of what its best kernel multiplies with; empty: not known
  std::optional<double> untuned_s = {}, best_s = {};
  int64_t trials = 0, failed = 0;

  /// Of all calls.
  std::optional<double> time_s() const;
};

/// The least seconds that a task's arithmetic and traffic take; nullopt where no ceiling is known.
std::optional<double> least_s(const TaskFacts& task, const Ceiling& ceiling);
/// The tasks' places, those with most time first, those without a time last.
std::vector<size_t> by_time(std::span<const TaskFacts> tasks);

HtmlSection tasks_section(std::span<const TaskFacts> tasks, const Ceiling& ceiling);
HtmlSection roofline_section(std::span<const TaskFacts> tasks, const Ceiling& ceiling);

/// Where the seconds of a run went.
struct Phases {
  double explore_s = 0, train_s = 0, build_s = 0, measure_s = 0, spent_s = 0;
};
HtmlSection phases_section(const std::optional<Phases>& phases);

/// Reasons by kind and first line of the message.
HtmlSection failures_section(const Reasons& failures, int64_t trials);

/// A measured program.
struct TrialFacts {
  size_t task = 0;
  std::string sketch;
  std::vector<std::pair<std::string, int32_t>> decisions;
  double measured_s = 0;
  double drafted_s = 0;           // 0: not known
  std::vector<double> repeats_s;  // empty: timed once, as it was slow
};

/// What models foretold before they learned of it.
struct Calibration {
  std::vector<TrialFacts> trials;
  std::string no_draft;            // why trials have no draft; empty: they have
  std::optional<PairCount> model;  // of each round's batch, by the model that chose it
};
HtmlSection calibration_section(const Calibration& calibration, std::span<const TaskFacts> tasks);

/// Share of the variance of log cost that the value of one decision explains alone, corrected for
/// the number of values (Kelley's epsilon squared): 0 of values that say nothing. nullopt of fewer
/// than two values, or of costs that are all the same. `values` and `costs_s` are of one length.
std::optional<double> explained_share(std::span<const int32_t> values,
                                      std::span<const double> costs_s);
HtmlSection decisions_section(std::span<const TrialFacts> trials, std::span<const TaskFacts> tasks);

/// A best program that was measured again.
struct Remeasured {
  size_t task = 0;
  double search_s = 0;  // what the search had measured
  std::vector<double> again_s;
};
struct Noise {
  std::vector<TrialFacts> trials;
  std::vector<Remeasured> remeasured;
  int64_t beside_others = 0;  // trials while other processes had a fifth of the cores' time or more
};
HtmlSection noise_section(const Noise& noise, std::span<const TaskFacts> tasks);

/// Name and value of what tells the run from others: command, versions, seed, hashes.
HtmlSection about_section(const std::vector<std::pair<std::string, std::string>>& facts);

}  // namespace pruner
