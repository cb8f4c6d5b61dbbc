// Options of the commands that measure, and the measurer that the options choose.
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

/// --build-only gives `kBuiltAtOnce` candidates to the builders at once: whole rounds.
inline constexpr int64_t kBuiltAtOnce = 64;

/// `kDefaultTrials` is the number of trials if the options name neither a number nor a time.
inline constexpr int64_t kDefaultTrials = 1000;

/// Holds the options of the commands that measure: where, and how.
struct MeasurerOptions {
  TargetOptions target;
  std::string devices;    // names of GPUs of the target's backend; empty: the first
  bool flush_l2 = false;  // empties a GPU's L2 before each timed call
  FleetRunOptions fleet;  // fleet whose workers measure; not given: this machine measures
  std::string bundle;     // file that programs are built into instead of being measured
  uint64_t seed = 0;      // seed of every random choice: search, models, measured inputs
  int jobs = 0;           // set by add_to()

  void add_to(CLI::App& app);
  void add_build_only(CLI::App& app);
  bool build_only() const { return !bundle.empty(); }
  /// Returns an error if an option has no effect on this target, or with the chosen measurer.
  Result<Unit> check(const Target& on) const;
  /// Returns the options of the models of a search on the target, for any kind of model.
  LearnedModelOptions models(const Target& on) const {
    return {.platform = on.device, .jobs = jobs, .seed = seed};
  }
};

/// Returns how the trials of a run are measured, on any measurer.
MeasureOptions measure_options(const MeasurerOptions& options,
                               const std::atomic<bool>& interrupted);
/// Returns the path of this program's file, which measurers start again as their workers.
Result<std::string> own_program();
/// Returns how many candidates a measurer gets at once; a fleet gets a round of the usual size.
int64_t measured_at_once(const MeasurerOptions& options);
/// Returns the numbers of "cuda:0,cuda:1", devices of the target's backend; 0 for an empty text.
Result<std::vector<int>> parse_devices(std::string_view text, const Target& target);
/// Returns where kernels find their constants in a network that touches `network_bytes` in a run; 0
/// means an operator alone. A GPU's operator is timed as libraries are, one call after the other.
WeightsFrom weights_from(const Target& target, const std::string& name, int64_t network_bytes);
/// Makes a measurer on this machine or a fleet; with --build-only it measures nothing. Its workers
/// are this program's own file with hidden commands; the measurer ends when `interrupted`. Kernels
/// find constants where the network does: in the last-level cache if the network fits. `labels`
/// are for a bundle. Errors: this machine, or one of --devices, does not run the target's code.
Result<std::unique_ptr<Measurer>> make_measurer(const MeasurerOptions& options,
                                                const Source& source,
                                                const Target& target,
                                                const std::atomic<bool>& interrupted,
                                                const TrialLabels& labels = {});

/// Makes the builder of --build-only for the tasks of a source. Errors: this machine makes no
/// code for the target, or the bundle cannot be written.
Result<std::shared_ptr<BundleBuild>> make_bundle_build(const MeasurerOptions& options,
                                                       const Source& source,
                                                       const Target& target,
                                                       const std::atomic<bool>& interrupted);
/// Counts how far --build-only is.
struct Built {
  int64_t programs = 0, failed = 0;  // failed: programs that could not be built

  void add(const RoundSummary& round) {
    programs += round.later;
    failed += std::ssize(round.failures);
  }
};
// These functions report on --build-only; print_bundle() adds the command that goes on at the end.
std::string print_built(const MeasurerOptions& options, const Source& source, const Built& built);
Json built_json(const MeasurerOptions& options, const Source& source, const Built& built);
std::string print_bundle(const MeasurerOptions& options,
                         const Source& source,
                         const Built& built,
                         const std::string& records);

/// Returns the exit code of a run that has ended. A run whose trials all failed is no success: a
/// line on standard error says why, and that `records` has each reason.
int exit_code_of(const Tuner& tuner, TuneEnd end, const std::string& records);

}  // namespace pruner
