// Modes on one problem under equal conditions: each has a tuner of its own, which take turns, a
// round each, on one measurer. What the tuners thought best on the way is measured again at the
// end, in turns, and those times make the curves.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "search/mode.h"
#include "tune/curve.h"
#include "tune/tune.h"

namespace pruner {

/// A mode that is compared.
struct Contestant {
  std::string name;  // in every table, legend, file and record: "pruner", "ansor-untrained"
  SearchMode mode;   // its policy is the one that searches
  LearnedModelOptions models;  // seed and clock are the run's
  Ablation ablation = {};
  SearchOptions search = {};
  DraftForm draft_form = DraftForm::kOurs;  // on a GPU
};

Result<ModeModels> make_models(const Contestant& contestant);

struct CompareOptions {
  TuneOptions tune;  // options of every mode, but for its name and its search
  std::string work_dir;
};

struct CompareTools {
  Measurer& measurer;
  const std::atomic<bool>& stop;
  std::function<void(const Contestant&, const Tuner&, const RoundSummary&)> on_round;
};

/// The records of one run in the work dir.
std::string compared_records(const std::string& work_dir, const std::string& mode, uint64_t seed);

/// Makes room for a run that begins anew: its records become *.json.1, or the next free number.
Result<Unit> set_aside_records(const std::string& work_dir, const std::string& mode, uint64_t seed);

/// Holds the tools that programs of several modes are built with.
struct BuildTools {
  /// Makes a measurer for each contestant, whose results are `later`.
  std::function<std::unique_ptr<Measurer>(const Contestant&)> measurer_of;
  const std::atomic<bool>& stop;
  std::function<void(const Contestant&, const Tuner&, const RoundSummary&)> on_round;
};

/// Builds the programs that each contestant proposes, one contestant after the other. Nothing is
/// measured, so there is nothing to compare yet.
Result<Unit> build_modes(std::span<const WeightedTask> tasks,
                         std::span<const Contestant> contestants,
                         const CompareOptions& options,
                         const BuildTools& tools);

/// Runs one seed: a curve for each contestant, in their order; incomplete when stopped. Errors: a
/// model lacks its weights, or the records are there already.
Result<std::vector<TuningCurve>> compare_modes(std::span<const WeightedTask> tasks,
                                               std::span<const Contestant> contestants,
                                               const CompareOptions& options,
                                               const CompareTools& tools);

}  // namespace pruner
