#include "search/mode.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
  return Error("cost model \"", name, "\" is unknown; use one of ", names);
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
                               const Ingredients& ingredients,
                               const LearnedModelOptions& options,
                               const Ablation& ablation,
                               DraftForm form) {
  const DraftOptions draft{options.jobs, ablation.penalties, form};
  const bool calibrates = ingredients.has(Ingredient::kCalibration);
  ModeModels made{calibrates ? make_calibrated_draft_model(draft) : make_draft_model(draft),
                  nullptr};
  if (mode.model == "random") {
    made.verify = make_random_model(options.seed);
  } else if (mode.model == "untrained") {
    made.verify = make_untrained_model();
  } else if (!mode.model.empty()) {
    TRY_ASSIGN(std::unique_ptr<LearnedModel> learned, make_learned_model(mode.model, options));
    made.verify = make_feature_model(std::move(learned), options.jobs, ablation.features);
    if (ingredients.has(Ingredient::kStackedDraft))
      made.verify = make_stacked_model(*made.draft,
                                       std::move(made.verify),
                                       options.load_model == kShippedWeights ? kTrustInShipped : 0);
  }
  return made;
}

Result<ModeModels> make_models(std::string_view mode, const LearnedModelOptions& options) {
  TRY_ASSIGN(const SearchMode* named, find_mode(mode));
  TRY_ASSIGN(const SearchMode usable, usable_mode(*named, /*allow_untrained=*/false));
  return make_models(usable, usable.policy->options.ingredients, options);
}

Ingredients usable_ingredients(const SearchMode& mode, bool own_weights) {
  Ingredients usable = mode.policy->takes;
  if (!mode.learns())
    usable = usable.without({Ingredient::kStackedDraft, Ingredient::kIncrementalTraining});
  if (mode.model.ends_with("-no-update"))
    usable = usable.without({Ingredient::kIncrementalTraining});
  if (mode.model != "pam" || !own_weights) usable = usable.without({Ingredient::kWeights});
  return usable;
}

static constexpr std::string_view kAsPublished = "-as-published", kWithout = "-without-";

ModeName split_mode_name(std::string_view name) {
  const size_t end = std::min({name.find(kAsPublished), name.find(kWithout), name.find('+')});
  return {name.substr(0, end), end > name.size() ? "" : name.substr(end)};
}

/// Takes a word from the front of `changes`: the word ends where the next change begins.
static std::string_view take_word(std::string_view& changes) {
  const std::string_view word = split_mode_name(changes).base;
  changes.remove_prefix(word.size());
  return word;
}

static Result<Unit> add_ingredient(ModeVariant& variant, std::string_view name, bool own_weights) {
  const Ingredients usable = usable_ingredients(variant.mode, own_weights);
  const Ingredients left = usable.without(variant.ingredients);
  const std::optional<Ingredient> ingredient = parse_ingredient(name);
  const std::string can = "; it can take " + print(left);
  if (!ingredient) return Error("no ingredient is named \"", name, "\"", can);
  if (variant.ingredients.has(*ingredient)) return Error("it has ", name, " already", can);
  if (!usable.has(*ingredient)) return Error("it cannot take ", name, can);
  variant.ingredients = variant.ingredients.with(*ingredient);
  return Unit{};
}

// A draft is of Pruner's policy, which goes on without one if a model ranks what it finds. Its
// penalties also count where it scores beside the model. Of the features, PaCM alone sees the data
// flow, and TLP no statements.
std::vector<std::string_view> published_parts(const ModeVariant& variant) {
  const SearchMode& mode = variant.mode;
  const bool drafts = mode.policy == &kPrunerPolicy;
  std::vector<std::string_view> parts;
  if (drafts || variant.ingredients.has(Ingredient::kStackedDraft))
    parts.assign(std::begin(kPenaltyNames), std::end(kPenaltyNames));
  if (mode.learns() && !mode.model.starts_with("tlp")) parts.push_back("statement");
  if (mode.model.starts_with("pam")) parts.push_back("dataflow");
  if (drafts && !mode.model.empty()) parts.push_back("draft");
  return parts;
}

static Result<Unit> leave_out(ModeVariant& variant, std::string_view name) {
  if (const std::optional<Ingredient> ingredient = parse_ingredient(name);
      ingredient && variant.ingredients.has(*ingredient)) {
    variant.ingredients = variant.ingredients.without({*ingredient});
    return Unit{};
  }
  const std::vector<std::string_view> parts = published_parts(variant);
  if (std::ranges::find(parts, name) == parts.end())
    return Error("it has nothing named \"",
                 name,
                 "\"; leave out ",
                 print(variant.ingredients),
                 ", or of the published search ",
                 parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, ", ")));
  variant.ablation = *without_part(variant.ablation, name);
  if (variant.ablation.drafts) return Unit{};
  // Without a draft the learned model has to order whole populations: Ansor's search, with all
  // ingredients that it can take.
  variant.mode.policy = &kAnsorPolicy;
  const Ingredients usable = usable_ingredients(variant.mode, /*own_weights=*/false);
  variant.ingredients = variant.ingredients.without(Ingredients::all().without(usable));
  return Unit{};
}

Result<ModeVariant> vary_mode(const SearchMode& mode, std::string_view changes, bool own_weights) {
  const Ingredients unusable = Ingredients::all().without(usable_ingredients(mode, own_weights));
  ModeVariant variant{mode, mode.policy->options.ingredients.without(unusable)};
  bool published = false;
  while (!changes.empty()) {
    if (changes.starts_with(kAsPublished)) {
      if (!variant.mode.policy->published)
        return Error("the policy ", variant.mode.policy->name, " has no published form");
      if (published) return Error("it is as published already");
      published = true;
      changes.remove_prefix(kAsPublished.size());
      variant.ingredients = {};
    } else if (changes.starts_with(kWithout)) {
      changes.remove_prefix(kWithout.size());
      TRY(leave_out(variant, take_word(changes)));
    } else if (changes.starts_with('+')) {
      changes.remove_prefix(1);
      TRY(add_ingredient(variant, take_word(changes), own_weights));
    } else {
      return Error("\"", changes, "\" is no change of a mode");
    }
  }
  return variant;
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
