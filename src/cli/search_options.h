// --cost-model, --modes, --policy, --search and the searches' constants -> who searches, with what.
#pragma once

#include "cli/options.h"
#include "search/mode.h"
#include "tune/compare.h"

namespace pruner {

/// What --train, --load-model and the rest say of the models of any mode.
Result<LearnedModelOptions> read_model_options(const Options& options);

/// Who searches in `tune`: the mode of --cost-model, its policy unless --policy names one or --psa
/// asks for a draft, as published with --search as-published. Errors: a mode or policy is unknown,
/// its model has no library here (unless --allow-untrained: the name says it then), it does not
/// read a constant that is given, --psa-form is of another kind of target.
Result<Contestant> read_contestant(const Options& options, const Target& target);
/// The modes of --modes, each with its weights of --load-model. Errors: also a mode that is there
/// twice, and weights that are missing, of no mode, or no weights of it. `target`: null where the
/// device is a log.
Result<std::vector<Contestant>> read_contestants(const Options& options, const Target* target);

/// The models of a mode that is not the user's choice, with --load-model's weights.
Result<ModeModels> read_models(const Options& options, std::string_view name);

}  // namespace pruner
