#include "search/mode.h"

#include <algorithm>

#include "model/shipped_weights.h"

namespace pruner {

// The share, from 0 to 1, of scores by the program's own weights beside the logarithm of the
// draft's scores, before anything was measured. This value chooses best on operators that the
// weights were not trained on.
static constexpr double kTrustInShipped = 0.3;

std::string_view update_mode(const SearchMode& mode) {
  if (mode.model.empty()) return "draft only";
  if (!mode.learns()) return mode.model;
  if (mode.model.ends_with("-no-update")) return "offline";
  return mode.model.ends_with("-siamese-update") ? "momentum" : "online";
}

bool needs_weights(const SearchMode& mode) {
  return mode.model.ends_with("-no-update") || mode.model.ends_with("-siamese-update");
}

Result<const SearchMode*> find_mode(std::string_view name) {
  std::string names;
  for (const SearchMode& mode : kSearchModes) {
    if (mode.name == name || (!mode.alias.empty() && mode.alias == name)) return &mode;
    names.append(names.empty() ? "" : ", ").append(mode.name);
    if (!mode.alias.empty()) names.append(" (").append(mode.alias).append(")");
  }
  return Error("cost model ", name, " is unknown; use one of ", names);
}

Result<SearchMode> usable_mode(const SearchMode& mode, bool allow_untrained) {
  if (!mode.learns()) return mode;
  const Result<Unit> able = find_libraries_of(mode.model);
  if (able.ok()) return mode;
  SearchMode without = mode;
  without.model = "untrained";
  if (allow_untrained) return without;
  return Error("cost model ",
               mode.name,
               ": ",
               able.error().message(),
               "; --allow-untrained goes on without the model");
}

std::string display_name(std::string_view given, const SearchMode& mode) {
  return std::string(given) + (mode.model == "untrained" ? "-untrained" : "");
}

Result<ModeModels> make_models(const SearchMode& mode,
                               const SearchPolicy& policy,
                               const LearnedModelOptions& options,
                               const Ablation& ablation,
                               DraftForm form) {
  const DraftOptions draft{options.jobs, ablation.penalties, form};
  ModeModels made{
      policy.as_published ? make_draft_model(draft) : make_calibrated_draft_model(draft), nullptr};
  if (mode.model == "random") {
    made.verify = make_random_model(options.seed);
  } else if (mode.model == "untrained") {
    made.verify = make_untrained_model();
  } else if (!mode.model.empty()) {
    TRY_ASSIGN(std::unique_ptr<LearnedModel> learned, make_learned_model(mode.model, options));
    made.verify = make_feature_model(std::move(learned), options.jobs, ablation.features);
    if (policy.drafts && !policy.as_published && !options.as_published)
      made.verify = make_stacked_model(*made.draft,
                                       std::move(made.verify),
                                       options.load_model == kShippedWeights ? kTrustInShipped : 0);
  }
  return made;
}

Result<ModeModels> make_models(std::string_view mode, const LearnedModelOptions& options) {
  TRY_ASSIGN(const SearchMode* named, find_mode(mode));
  TRY_ASSIGN(const SearchMode usable, usable_mode(*named, /*allow_untrained=*/false));
  return make_models(usable, *usable.policy, options);
}

Result<const SearchPolicy*> find_policy(std::string_view name) {
  std::string names;
  for (const SearchPolicy* policy : kSearchPolicies) {
    if (policy->name == name) return policy;
    names.append(names.empty() ? "" : " or ").append(policy->name);
  }
  return Error("policy ", name, " is unknown; use ", names);
}

}  // namespace pruner
