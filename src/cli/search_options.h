// --cost-model, --modes, --policy, --search and the searches' constants -> who searches, with what.
#pragma once

#include <map>

#include "cli/options.h"
#include "report/ablation_table.h"
#include "search/mode.h"
#include "tune/compare.h"

namespace pruner {

/// Holds how the modes search. For an option that is not given, each mode has a value of its own.
struct ModeOptions {
  int64_t round_size = 0;                         // trials; 0: not given
  std::string training, search, forms, psa_form;  // texts as given; empty: not given
  bool allow_untrained = false;
  int momentum_period = 0;                           // rounds; 0: not given
  std::map<SearchConstant, int64_t> constants = {};  // 0: not given
  double eps_greedy = -1;                            // < 0: not given

  void add_to(CLI::App& app);
  /// Adds the options that act if the device is a log, too.
  void add_log_options_to(CLI::App& app);
};

/// Holds the mode options, and the options that only a run of modes on this machine takes.
struct ExplorerOptions {
  ModeOptions mode;
  int64_t trials = 0;           // 0: not given
  std::string tasks, work_dir;  // tasks: a regular expression; empty: all

  void add_to(CLI::App& app, const char* trials_help);  // trials_help: the help of --n-trials
};

/// The mode of `tune`.
struct ContestantOptions {
  std::string cost_model = "pam", load_model, policy;

  void add_to(CLI::App& app);
};

/// The modes of a comparison, with commas between them.
struct ContestOptions {
  std::string modes;                 // names of `--cost-model`, with changes (vary_mode())
  std::vector<std::string> weights;  // FILE or MODE=FILE
  int64_t seeds = kLeastSeeds;       // runs of each mode, from --seed on

  void add_to(CLI::App& app);  // without --modes
};

/// Returns the contestant of `tune`: the mode of --cost-model, without ingredients if --search says
/// as-published. Its policy is the mode's own unless --policy names one, or `drafts`
/// asks for a draft. `models` holds threads, seed and device of its models. Errors: a mode or
/// policy is unknown, or its model has no library here (unless --allow-untrained, which the name
/// then says). Also: a given constant is not read, or --psa-form is of another kind of target.
Result<Contestant> read_contestant(const ContestantOptions& options,
                                   const ModeOptions& how,
                                   LearnedModelOptions models,
                                   const Target& target,
                                   bool drafts);
/// Returns the modes of --modes, each with its weights of --load-model. Further errors: a mode that
/// is named twice, and weights that are missing, of no mode, or not of their mode's model. `target`
/// is null if the device is a log.
Result<std::vector<Contestant>> read_contestants(const ContestOptions& options,
                                                 const ModeOptions& how,
                                                 LearnedModelOptions models,
                                                 const Target* target);

/// Returns the pairs of modes that --ablate MODE compares, one for each part of --parts: the mode,
/// and the mode without a part that it has, or with an ingredient that it has not. Without --parts,
/// the parts are the ingredients that the mode has, or those that it can take if it has none.
Result<std::vector<AblatedPair>> ablated_pairs(const std::string& mode,
                                               const std::string& parts,
                                               const Target& target);
/// Returns --modes with the modes of the pairs behind them. Without --modes, the first mode is
/// `mode` as published.
std::string ablated_modes(const std::string& modes,
                          const std::string& mode,
                          std::span<const AblatedPair> pairs);

}  // namespace pruner
