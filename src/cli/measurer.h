// What the commands that measure have in common: the measurer of this machine, as the options say.
#pragma once

#include <atomic>
#include <memory>

#include "bundle/build_only_measurer.h"
#include "cli/fleet_options.h"
#include "cli/source.h"
#include "measure/measure.h"
#include "model/learned_model.h"
#include "tune/tune.h"

namespace pruner {

/// Candidates that --build-only gives to the builders at once: rounds whole.
inline constexpr int64_t kBuiltAtOnce = 64;

/// Trials of a run whose options name neither a number nor a time.
inline constexpr int64_t kDefaultTrials = 1000;

/// What the commands that measure take: where, and how.
struct MeasurerOptions {
  TargetOptions target;
  std::string devices;    // of the target's backend; empty: the first
  bool flush_l2 = false;  // a GPU's, before each timed call
  FleetRunOptions fleet;  // whose workers measure; this machine, if it is not given
  std::string bundle;     // that programs are built into instead of being measured
  uint64_t seed = 0;      // of every random choice: search, models, measured inputs
  int jobs = 0;           // set by add_to()

  void add_to(CLI::App& app);
  void add_build_only(CLI::App& app);
  bool build_only() const { return !bundle.empty(); }
  /// An error where an option has no effect on this target, or on whoever measures.
  Result<Unit> check(const Target& on) const;
  /// What the models of a search on the target are made with, whatever they are.
  LearnedModelOptions models(const Target& on) const {
    return {.platform = on.device, .jobs = jobs, .seed = seed};
  }
};

/// How the trials of a run are measured, wherever.
MeasureOptions measure_options(const MeasurerOptions& options,
                               const std::atomic<bool>& interrupted);
/// This program's file, which measurers start again as their workers.
Result<std::string> own_program();
/// How many candidates a run gives to the measurer at once: to a fleet a round of the usual size.
int64_t measured_at_once(const MeasurerOptions& options);
/// The numbers of "cuda:0,cuda:1", devices of the target's backend; of nothing: the first.
Result<std::vector<int>> parse_devices(std::string_view text, const Target& target);
/// Where the kernels of a network find their constants that touches so many bytes in a run; 0: of
/// an operator alone, of which a GPU's are timed as libraries are, one call after the other.
WeightsFrom weights_from(const Target& target, const std::string& name, int64_t network_bytes);
/// Of this machine, a fleet's, or with --build-only one that measures nothing. Its workers are this
/// program's own file, with the hidden commands; it ends when `interrupted`. Kernels find their
/// constants where the network does: of one that fits, in the last-level cache. `labels` are for a
/// bundle. Errors: this machine, or a device of --devices, does not run code for the target.
Result<std::unique_ptr<Measurer>> make_measurer(const MeasurerOptions& options,
                                                const Source& source,
                                                const Target& target,
                                                const std::atomic<bool>& interrupted,
                                                const TrialLabels& labels = {});

/// What --build-only builds with, for the tasks of a source. Errors: this machine makes no code for
/// the target, or the bundle cannot be written.
Result<std::shared_ptr<BundleBuild>> make_bundle_build(const MeasurerOptions& options,
                                                       const Source& source,
                                                       const Target& target,
                                                       const std::atomic<bool>& interrupted);
/// How far --build-only is.
struct Built {
  int64_t programs = 0, failed = 0;  // failed: of these, to be built

  void add(const RoundSummary& round) {
    programs += round.later;
    failed += std::ssize(round.failures);
  }
};
// What --build-only says of it; at its end with the command that goes on.
std::string print_built(const MeasurerOptions& options, const Source& source, const Built& built);
Json built_json(const MeasurerOptions& options, const Source& source, const Built& built);
std::string print_bundle(const MeasurerOptions& options,
                         const Source& source,
                         const Built& built,
                         const std::string& records);

/// The exit code of a run that has ended. One of which every trial failed is no success: a line on
/// standard error says why, and that `records` has each reason.
int exit_code_of(const Tuner& tuner, TuneEnd end, const std::string& records);

}  // namespace pruner
