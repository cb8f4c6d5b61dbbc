// The modes of `--cost-model`: a policy, the model that verifies what the policy finds, and the
// ingredients of both. All modes share space, code generator, measurement and features.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

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

/// The models that a search in a mode uses.
struct ModeModels {
  std::unique_ptr<CostModel> draft, verify;

  SearchModels models() const { return {*draft, verify.get()}; }
};

/// Returns how the mode's model changes during tuning: "online", "offline" (not at all),
/// "momentum", "draft only", "random" or "untrained".
std::string_view update_mode(const SearchMode& mode);
/// Whether the mode cannot begin without weights (--load-model).
bool needs_weights(const SearchMode& mode);
/// Returns the mode of a name; the error lists the modes.
Result<const SearchMode*> find_mode(std::string_view name);
/// Returns the mode if its model works here: the model can train, if the mode learns while tuning,
/// and score. Otherwise returns an error that names the missing package or, if `allow_untrained`,
/// the mode without its model ("untrained"). Whoever shows results must name that mode.
Result<SearchMode> usable_mode(const SearchMode& mode, bool allow_untrained);
/// Returns the name of the mode's results: the name that was given, or "ansor-untrained".
std::string display_name(std::string_view given, const SearchMode& mode);
/// Makes the mode's models: kCalibration and kStackedDraft of `ingredients` say how the draft takes
/// part. `form` is the draft's form on a GPU. Fails if weights are missing or belong to another
/// model.
Result<ModeModels> make_models(const SearchMode& mode,
                               const Ingredients& ingredients,
                               const LearnedModelOptions& options,
                               const Ablation& ablation = {},
                               DraftForm form = DraftForm::kOurs);

/// Makes the models of the mode of a name, with the ingredients of the mode's own policy.
Result<ModeModels> make_models(std::string_view mode, const LearnedModelOptions& options);

/// Returns the ingredients that a mode can use: its policy's, without those of a learned model or
/// of training that the mode does not have. `own_weights` says whether the program has weights for
/// the target.
Ingredients usable_ingredients(const SearchMode& mode, bool own_weights);

/// `ModeName` is the name of a mode, cut in two: "pruner" and "-as-published+neighbours".
struct ModeName {
  std::string_view base, changes;
};
ModeName split_mode_name(std::string_view name);

/// A mode with its ingredients, and without the parts that were left out.
struct ModeVariant {
  SearchMode mode;
  Ingredients ingredients;
  Ablation ablation = {};
};
/// Returns the parts of the published search that the variant has and can do without: those of
/// without_part() (ablation.h).
std::vector<std::string_view> published_parts(const ModeVariant& variant);
/// Applies the changes of a mode's name, from left to right: "-as-published" leaves out every
/// ingredient, "+INGREDIENT" adds one, and "-without-PART" leaves out an ingredient or a part of
/// the published search. The error of an ingredient lists those that the mode can take or has.
Result<ModeVariant> vary_mode(const SearchMode& mode, std::string_view changes, bool own_weights);

/// Returns the policy of a name; the error lists the policies.
Result<const SearchPolicy*> find_policy(std::string_view name);

}  // namespace pruner
