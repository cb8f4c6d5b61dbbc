#include "cli/search_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "cli/recorded_source.h"
#include "cli/source.h"
#include "model/shipped_weights.h"
#include "support/log.h"

namespace pruner {

namespace {

/// An option that sets a constant of the search.
struct ConstantRow {
  const char* flag;
  const char* help;
  const char* usual;
  SearchConstant constant;
  void (*set)(SearchOptions& search, int64_t value);
  bool of_logs = false;  // also acts if the device is a log
};

constexpr ConstantRow kConstants[] = {
    {"--population",
     "candidates a generation",
     "1536; of ansor 2048, of metaschedule 512",
     kPopulation,
     [](SearchOptions& s, int64_t v) {
       s.random_samples = s.evolve.population = static_cast<int>(v);
     }},
    {"--islands",
     "parts of it that evolve alone",
     "4",
     kIslands,
     [](SearchOptions& s, int64_t v) { s.evolve.islands = static_cast<int>(v); }},
    {"--draft-generations",
     "generations by the draft",
     "2",
     kDraftGenerations,
     [](SearchOptions& s, int64_t v) { s.draft_generations = static_cast<int>(v); }},
    {"--draft-size",
     "drafts that are verified",
     "512",
     kDraftSize,
     [](SearchOptions& s, int64_t v) { s.draft_size = static_cast<size_t>(v); },
     true},
    {"--redraft-every",
     "rounds of a task verified from the same drafts",
     "2",
     kRedraftEvery,
     [](SearchOptions& s, int64_t v) { s.redraft_every = static_cast<int>(v); }},
    {"--verify-generations",
     "generations by the learned model",
     "1; of ansor and metaschedule 4",
     kVerifyGenerations,
     [](SearchOptions& s, int64_t v) { s.verify_generations = static_cast<int>(v); }},
};

void add_constants(CLI::App& app, ModeOptions& options, bool of_logs) {
  for (const ConstantRow& row : kConstants) {
    if (row.of_logs != of_logs) continue;
    const std::string flag = std::string(row.flag) + " N";
    add_option(app, flag.c_str(), options.constants[row.constant]).help(row.help, row.usual);
  }
}

/// Returns the constants that a mode's search reads; without a model nothing is verified.
unsigned constants_of(const SearchMode& mode, const Ingredients& ingredients) {
  constexpr unsigned kOfVerifying = kVerifyGenerations | kDraftSize | kRedraftEvery;
  unsigned read = mode.policy->constants;
  if (mode.model.empty()) read &= ~kOfVerifying;
  if (!ingredients.has(Ingredient::kIslands)) read &= ~static_cast<unsigned>(kIslands);
  return read;
}

Result<SearchOptions> search_options(const ModeOptions& options, const Contestant& contestant) {
  SearchOptions search = contestant.search;
  TRY_ASSIGN(search.forms, read_forms(options.forms));
  search.evolve.jobs = contestant.models.jobs;
  if (options.round_size > 0) search.round_size = options.round_size;
  const unsigned taken = constants_of(contestant.mode, search.ingredients);
  // A constant that would have no effect is an error, not ignored.
  const auto refused = [&](const char* flag) {
    return Error(flag, ": the search of ", contestant.name, " has no such constant");
  };
  for (const ConstantRow& row : kConstants) {
    const auto given = options.constants.find(row.constant);
    if (given == options.constants.end() || given->second == 0) continue;
    if ((taken & row.constant) == 0) return refused(row.flag);
    row.set(search, given->second);
  }
  if (options.eps_greedy > 1) return Error("--eps-greedy is ", options.eps_greedy, ", at most 1");
  if (options.eps_greedy < 0) return search;
  if ((taken & kEpsGreedy) == 0) return refused("--eps-greedy");
  search.eps_greedy = options.eps_greedy;
  return search;
}

/// Returns the policy `name`; empty: the mode's own, or a policy that drafts if `drafts` is set.
Result<const SearchPolicy*> policy_of(const std::string& name,
                                      const SearchMode& mode,
                                      bool drafts) {
  if (!name.empty()) {
    const Result<const SearchPolicy*> policy = find_policy(name);
    if (!policy.ok()) return Error("--policy: ", policy.error().message());
    if (*policy == &kAnsorPolicy && mode.model.empty())
      return Error("--policy ansor asks a learned model; --cost-model ", mode.name, " has none");
    return policy;
  }
  return drafts && mode.model != "random" ? &kPrunerPolicy : mode.policy;
}

constexpr std::string_view kAsPublished = "as-published";
constexpr std::string_view kFromScratch = "none";  // value of --load-model

/// Leaves out a contestant's ingredients if --search says as-published.
Result<Unit> publish(const ModeOptions& options, Contestant& contestant) {
  if (options.search.empty()) return Unit{};
  if (options.search != kAsPublished)
    return Error("--search: \"", options.search, "\" is not as-published");
  if (!contestant.mode.policy->published)
    return Error("--search as-published: the policy ",
                 contestant.mode.policy->name,
                 " has no published form");
  if (contestant.search.ingredients.empty()) return Unit{};
  contestant.search.ingredients = {};
  contestant.name.append("-").append(kAsPublished);
  return Unit{};
}

/// Returns whether the program has weights for the target: for CPUs, but not for logs of them.
bool has_own_weights(const Target* target) { return target != nullptr && !target->is_gpu(); }

/// Makes a contestant of a mode, with the changes that its name makes to the mode.
Result<Contestant> varied(const std::string& name,
                          const SearchMode& mode,
                          const LearnedModelOptions& models,
                          bool own_weights) {
  const Result<ModeVariant> variant = vary_mode(mode, split_mode_name(name).changes, own_weights);
  if (!variant.ok()) return Error(name, ": ", variant.error().message());
  Contestant contestant{name, variant->mode, models, variant->ablation};
  contestant.search = variant->mode.policy->options;
  contestant.search.ingredients = variant->ingredients;
  return contestant;
}

/// Settles the ingredients of a contestant's models. A model that goes on without training has no
/// ingredients of training. `--train as-published` leaves these out, too, and --load-model the
/// program's own weights.
void settle_training(Contestant& contestant, bool own_weights) {
  const Ingredients usable = usable_ingredients(contestant.mode, own_weights);
  Ingredients& ingredients = contestant.search.ingredients;
  ingredients = ingredients.without(Ingredients::all().without(usable));
  if (contestant.models.as_published)
    ingredients = ingredients.without(
        {Ingredient::kIncrementalTraining, Ingredient::kStackedDraft, Ingredient::kWeights});
  const bool incremental = ingredients.has(Ingredient::kIncrementalTraining);
  if (usable.has(Ingredient::kIncrementalTraining) && !incremental)
    contestant.models.as_published = true;
  if (!contestant.models.load_model.empty())
    ingredients = ingredients.without({Ingredient::kWeights});
  if (ingredients.has(Ingredient::kWeights)) contestant.models.load_model = kShippedWeights;
}

/// Completes a contestant whose mode and policy are known: the needs of its model, its constants,
/// its name.
Result<Contestant> complete(const ModeOptions& options,
                            Contestant contestant,
                            const Target* target) {
  TRY_ASSIGN(contestant.mode, usable_mode(contestant.mode, options.allow_untrained));
  settle_training(contestant, has_own_weights(target));
  TRY_ASSIGN(contestant.search, search_options(options, contestant));
  if (target != nullptr) {
    TRY_ASSIGN(contestant.draft_form, read_draft_form(options.psa_form, *target));
  }
  contestant.name = display_name(contestant.name, contestant.mode);
  return contestant;
}

}  // namespace

void ModeOptions::add_to(CLI::App& app) {
  add_log_options_to(app);
  add_constants(app, *this, /*of_logs=*/false);
  add_forms(app, forms);
  add_psa_form(app, psa_form);
  begin_group(app, OptionGroup::kSearch);
  add_option(app, "--search NAME", search)
      .help("as-published: the search and its training as the papers have them, no ingredient");
}

void ModeOptions::add_log_options_to(CLI::App& app) {
  begin_group(app, OptionGroup::kSearch);
  add_option(app, "--num-measures-per-round,--num-measure-per-iter N", round_size, 1)
      .help("trials a round", "10; of metaschedule 64");
  add_option(app, "--allow-untrained", allow_untrained)
      .help("a mode whose model cannot train here goes on without it, as MODE-untrained");
  add_option(app, "--train NAME", training)
      .help("as-published: refit from scratch after every round");
  add_option(app, "--momentum-period N", momentum_period)
      .help("rounds between trainings of pam-siamese-update", "4");
  add_constants(app, *this, /*of_logs=*/true);
  add_option(app, "--eps-greedy SHARE", eps_greedy)
      .help("share of a batch that is drawn at random", "0.1; of ansor and metaschedule 0.05");
}

void ExplorerOptions::add_to(CLI::App& app, const char* trials_help) {
  mode.add_to(app);
  add_tasks(app, tasks);
  begin_group(app, OptionGroup::kBudget);
  add_option(app, "--n-trials N", trials, 1).help(trials_help, "1000");
  begin_group(app, OptionGroup::kFiles);
  add_option(app, "--work-dir DIR", work_dir)
      .help("folder of the run's records and results; the same command again goes on");
}

void ContestantOptions::add_to(CLI::App& app) {
  begin_group(app, OptionGroup::kSearch);
  add_option(app, "--cost-model,--model MODE", cost_model)
      .help(
          "how candidates are found and ranked: pam (pruner), pam-siamese-update (moa-pruner), mlp "
          "(ansor), mlp-no-update (tenset-mlp), tlp-no-update (tlp), xgb (ansor-xgb), "
          "metaschedule, draft-only, random, ...; +INGREDIENT, -without-PART and -as-published may "
          "follow",
          "pam");
  add_option(app, "--load-model FILE", load_model)
      .help(
          "weights of a learned cost model: .pkl, .pth, safetensors, or xgboost's JSON; none: from "
          "scratch",
          "of pam on a CPU the program's own");
  add_option(app, "--policy NAME", policy)
      .help("pruner (draft, then verify), ansor, or uniform (no model)");
}

void ContestOptions::add_to(CLI::App& app) {
  begin_group(app, OptionGroup::kSearch);
  add_option(app, "--seeds N", seeds, 1).help("runs of each mode, from --seed on", "5");
  add_option(app, "--load-model FILE", weights)
      .help("MODE=FILE, once a mode: its weights; FILE alone: of the modes that need some");
}

/// Returns `models` with the values of --train and --momentum-period, for any mode.
static Result<LearnedModelOptions> model_options(const ModeOptions& options,
                                                 LearnedModelOptions models) {
  if (!options.training.empty() && options.training != kAsPublished)
    return Error("--train: \"", options.training, "\" is not as-published");
  models.as_published = !options.training.empty();
  if (options.momentum_period > 0) models.momentum_period = options.momentum_period;
  return models;
}

Result<Contestant> read_contestant(const ContestantOptions& options,
                                   const ModeOptions& how,
                                   LearnedModelOptions models,
                                   const Target& target,
                                   bool drafts) {
  TRY_ASSIGN(const SearchMode* found, find_mode(split_mode_name(options.cost_model).base));
  SearchMode mode = *found;
  const bool from_scratch = options.load_model == kFromScratch;
  if (!from_scratch) models.load_model = options.load_model;
  TRY_ASSIGN(models, model_options(how, std::move(models)));
  if (!mode.learns() && !models.load_model.empty())
    log_warning(
        "--load-model {}: the cost model {} has no use for it", options.load_model, mode.name);
  TRY_ASSIGN(mode.policy, policy_of(options.policy, mode, drafts));
  TRY_ASSIGN(Contestant contestant,
             varied(options.cost_model, mode, std::move(models), has_own_weights(&target)));
  if (from_scratch)
    contestant.search.ingredients = contestant.search.ingredients.without({Ingredient::kWeights});
  if (contestant.mode.policy != found->policy)
    contestant.name.append("-policy-").append(contestant.mode.policy->name);
  TRY(publish(how, contestant));
  return complete(how, std::move(contestant), &target);
}

/// Gives the modes the weights of --load-model.
static Result<Unit> add_weights(const std::vector<std::string>& given,
                                std::vector<Contestant>& contestants) {
  for (const std::string& text : given) {
    const size_t equals = text.find('=');
    const std::string name = equals == std::string::npos ? "" : text.substr(0, equals);
    bool used = false;
    for (Contestant& contestant : contestants) {
      if (name.empty() ? !needs_weights(contestant.mode) || !contestant.models.load_model.empty()
                       : name != contestant.name)
        continue;
      contestant.models.load_model = text.substr(name.empty() ? 0 : equals + 1);
      used = true;
    }
    if (!used) return Error("--load-model ", text, ": no mode of --modes takes it; give MODE=FILE");
  }
  // An error in the weights is reported before anything is measured.
  for (const Contestant& contestant : contestants) {
    const Result<ModeModels> models = make_models(contestant);
    if (!models.ok()) return Error("--modes: ", contestant.name, ": ", models.error().message());
  }
  return Unit{};
}

static std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream in(text);
  for (std::string name; std::getline(in, name, ',');) names.push_back(name);
  return names;
}

Result<std::vector<Contestant>> read_contestants(const ContestOptions& options,
                                                 const ModeOptions& how,
                                                 LearnedModelOptions models,
                                                 const Target* target) {
  TRY_ASSIGN(models, model_options(how, std::move(models)));
  std::vector<Contestant> contestants;
  for (const std::string& name : split_list(options.modes)) {
    const Result<const SearchMode*> mode = find_mode(split_mode_name(name).base);
    if (!mode.ok()) return Error("--modes: ", mode.error().message());
    Result<Contestant> contestant = varied(name, **mode, models, has_own_weights(target));
    if (!contestant.ok()) return Error("--modes: ", contestant.error().message());
    TRY(publish(how, *contestant));
    if (std::ranges::find(contestants, contestant->name, &Contestant::name) != contestants.end())
      return Error("--modes: ", contestant->name, " is there twice");
    contestants.push_back(*contestant);
  }
  TRY(add_weights(options.weights, contestants));
  for (Contestant& contestant : contestants) {
    TRY_ASSIGN(contestant, complete(how, std::move(contestant), target));
  }
  return contestants;
}

Result<std::vector<AblatedPair>> ablated_pairs(const std::string& mode,
                                               const std::string& parts,
                                               const Target& target) {
  const ModeName cut = split_mode_name(mode);
  const Result<const SearchMode*> base = find_mode(cut.base);
  if (!base.ok()) return Error("--ablate: ", base.error().message());
  const bool own_weights = has_own_weights(&target);
  const Result<ModeVariant> variant = vary_mode(**base, cut.changes, own_weights);
  if (!variant.ok()) return Error("--ablate ", mode, ": ", variant.error().message());
  const Ingredients usable = usable_ingredients(variant->mode, own_weights);
  const Ingredients& had = variant->ingredients;
  // `compare` offers a task no schedules of others.
  const Ingredients usual = (had.empty() ? usable : had).without({Ingredient::kOffers});
  std::vector<AblatedPair> pairs;
  for (const std::string& name : split_list(parts.empty() ? print(usual, ",") : parts)) {
    const std::optional<Ingredient> ingredient = parse_ingredient(name);
    const bool takes = ingredient && usable.has(*ingredient);
    const std::vector<std::string_view> published = published_parts(*variant);
    if (!takes && std::ranges::find(published, name) == published.end())
      return Error("--parts: ",
                   mode,
                   " has or takes ",
                   print(usable),
                   ", and of the published search ",
                   published.empty() ? "none" : fmt::format("{}", fmt::join(published, ", ")),
                   ", not \"",
                   name,
                   "\"");
    if (std::ranges::find(pairs, name, &AblatedPair::part) != pairs.end())
      return Error("--parts: ", name, " is there twice");
    if (takes && !had.has(*ingredient)) {
      pairs.push_back({name, mode + "+" + name, mode});
    } else {
      pairs.push_back({name, mode, mode + "-without-" + name});
    }
  }
  return pairs;
}

std::string ablated_modes(const std::string& modes,
                          const std::string& mode,
                          std::span<const AblatedPair> pairs) {
  std::vector<std::string> names = split_list(modes);
  const auto add = [&](const std::string& name) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  if (names.empty()) add(std::string(split_mode_name(mode).base) + "-as-published");
  add(mode);
  for (const AblatedPair& pair : pairs) {
    add(pair.with);
    add(pair.without);
  }
  return fmt::format("{}", fmt::join(names, ","));
}

}  // namespace pruner
