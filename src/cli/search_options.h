// --cost-model, --policy and the explorer's constants -> a policy, its options and its models.
#pragma once

#include "cli/options.h"
#include "search/mode.h"
#include "tune/compare.h"

namespace pruner {

/// The mode's policy, unless --policy names one, or --psa asks for a draft.
Result<const SearchPolicy*> read_policy(const Options& options, const SearchMode& mode);
Result<SearchOptions> read_search_options(const Options& options);
/// What --train, --load-model and the rest say of the models of any mode.
Result<LearnedModelOptions> read_model_options(const Options& options);
/// `warm_up_samples`: see LearnedModelOptions.
Result<ModeModels> read_models(const Options& options,
                               const SearchMode& mode,
                               const SearchPolicy& policy,
                               int64_t warm_up_samples = 0);
/// The modes of --modes, each with its weights of --load-model. Errors: a mode is unknown or there
/// twice; weights are missing, of no mode, or no weights of it.
Result<std::vector<Contestant>> read_contestants(const Options& options);

}  // namespace pruner
