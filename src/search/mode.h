// The modes of `--cost-model`: a policy, and the model that verifies what it finds. All share
// space, code generator, measurement and features.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "analysis/draft_form.h"
#include "search/ablation.h"
#include "search/search.h"

namespace pruner {

struct SearchMode {
  std::string_view name;
  std::string_view alias;
  const SearchPolicy* policy;
  // make_learned_model()'s; "" none, "random" random scores, "untrained" one that has nothing to
  // say
  std::string_view model;

  bool learns() const { return !model.empty() && model != "random" && model != "untrained"; }
};

/// The published systems by their names, and the reference's names of modes.
inline constexpr SearchMode kSearchModes[] = {
    {"pam", "pruner", &kPrunerPolicy, "pam"},
    {"pam-siamese-update", "moa-pruner", &kPrunerPolicy, "pam-siamese-update"},
    {"pam-no-update", "pacm-no-update", &kPrunerPolicy, "pam-no-update"},
    {"mlp", "ansor", &kAnsorPolicy, "mlp"},
    {"mlp-no-update", "tenset-mlp", &kAnsorPolicy, "mlp-no-update"},
    {"tlp-no-update", "tlp", &kAnsorPolicy, "tlp-no-update"},
    {"xgb", "ansor-xgb", &kAnsorPolicy, "xgb"},
    {"xgb-no-update", "", &kAnsorPolicy, "xgb-no-update"},
    {"metaschedule", "", &kMetaSchedulePolicy, "xgb-metaschedule"},
    {"draft-only", "draft", &kPrunerPolicy, ""},
    {"random", "", &kAnsorPolicy, "random"},
};

/// What runs a search in a mode.
struct ModeModels {
  std::unique_ptr<CostModel> draft, verify;

  SearchModels models() const { return {*draft, verify.get()}; }
};

/// How its model changes while it tunes: "online", "offline" (not at all), "momentum", "draft
/// only", "random" or "untrained".
std::string_view update_mode(const SearchMode& mode);
/// Whether it does not begin without weights (--load-model).
bool needs_weights(const SearchMode& mode);
/// The mode of a name; the error lists them.
Result<const SearchMode*> find_mode(std::string_view name);
/// The mode, where its model can do here what it is there for: train if it learns while tuning, and
/// score. Otherwise an error that names the package, or, if `allow_untrained`, the mode without its
/// model ("untrained"), which whoever shows its results has to say.
Result<SearchMode> usable_mode(const SearchMode& mode, bool allow_untrained);
/// What results of it are called: the name that was given, "ansor-untrained".
std::string display_name(std::string_view given, const SearchMode& mode);
/// Its models, for a policy: one that drafts verifies by the learned model and the draft together,
/// unless as published; `form`: the draft's on a GPU. Errors: weights are missing, or are no
/// weights of this model.
Result<ModeModels> make_models(const SearchMode& mode,
                               const SearchPolicy& policy,
                               const LearnedModelOptions& options,
                               const Ablation& ablation = {},
                               DraftForm form = DraftForm::kOurs);

/// Those of a mode by its name and its own policy.
Result<ModeModels> make_models(std::string_view mode, const LearnedModelOptions& options);

/// The policy of a name, or an error that lists them.
Result<const SearchPolicy*> find_policy(std::string_view name);

}  // namespace pruner
