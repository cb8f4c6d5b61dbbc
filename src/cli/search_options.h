// --cost-model, --modes, --policy, --search and the searches' constants -> who searches, with what.
#pragma once

#include <map>

#include "cli/options.h"
#include "search/mode.h"
#include "tune/compare.h"

namespace pruner {

/// How the modes search; what is not given is each one's own.
struct ModeOptions {
  int64_t round_size = 0;                         // trials; 0: not given
  std::string training, search, forms, psa_form;  // as given; empty: not
  bool allow_untrained = false;
  int momentum_period = 0;                           // rounds; 0: not given
  std::map<SearchConstant, int64_t> constants = {};  // 0: not given
  double eps_greedy = -1;                            // < 0: not given

  void add_to(CLI::App& app);
  /// Those that act in a log too.
  void add_log_options_to(CLI::App& app);
};

/// What a run of modes on this machine takes besides.
struct ExplorerOptions {
  ModeOptions mode;
  int64_t trials = 0;           // 0: not given
  std::string tasks, work_dir;  // tasks: a regular expression; empty: all

  void add_to(CLI::App& app, const char* trials_help);  // what --n-trials says
};

/// The mode of `tune`.
struct ContestantOptions {
  std::string cost_model = "pam", load_model, policy;

  void add_to(CLI::App& app);
};

/// The modes of a comparison, with commas between them.
struct ContestOptions {
  std::string modes;                 // names of `--cost-model`, with -as-published or -without-PART
  std::vector<std::string> weights;  // FILE or MODE=FILE
  int64_t seeds = 3;                 // runs of each mode, from --seed on

  void add_to(CLI::App& app);  // without --modes
};

/// Who searches in `tune`: the mode of --cost-model, its policy unless --policy names one or the
/// device of --psa asks for a draft, as published with --search as-published. `models`: threads,
/// seed and device of its models. Errors: a mode or policy is unknown, its model has no library
/// here (unless --allow-untrained: the name says it then), it does not read a constant that is
/// given, --psa-form is of another kind of target.
Result<Contestant> read_contestant(const ContestantOptions& options,
                                   const ModeOptions& how,
                                   LearnedModelOptions models,
                                   const Target& target,
                                   bool drafts);
/// The modes of --modes, each with its weights of --load-model. Errors: also a mode that is there
/// twice, and weights that are missing, of no mode, or no weights of it. `target`: null where the
/// device is a log.
Result<std::vector<Contestant>> read_contestants(const ContestOptions& options,
                                                 const ModeOptions& how,
                                                 LearnedModelOptions models,
                                                 const Target* target);

}  // namespace pruner
