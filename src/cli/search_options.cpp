#include "cli/search_options.h"

#include <algorithm>
#include <sstream>

#include "cli/recorded_source.h"
#include "cli/schedules.h"
#include "cli/source.h"
#include "support/log.h"

namespace pruner {

namespace {

/// An option that sets a constant of the search.
struct ConstantRow {
  const char* flag;
  int64_t Options::*given;
  SearchConstant constant;
  void (*set)(SearchOptions& search, int64_t value);
};

constexpr ConstantRow kConstants[] = {
    {"--population",
     &Options::population,
     kPopulation,
     [](SearchOptions& s, int64_t v) {
       s.random_samples = s.evolve.population = static_cast<int>(v);
     }},
    {"--islands",
     &Options::islands,
     kIslands,
     [](SearchOptions& s, int64_t v) { s.evolve.islands = static_cast<int>(v); }},
    {"--draft-generations",
     &Options::draft_generations,
     kDraftGenerations,
     [](SearchOptions& s, int64_t v) { s.draft_generations = static_cast<int>(v); }},
    {"--draft-size",
     &Options::draft_size,
     kDraftSize,
     [](SearchOptions& s, int64_t v) { s.draft_size = static_cast<size_t>(v); }},
    {"--redraft-every",
     &Options::redraft_every,
     kRedraftEvery,
     [](SearchOptions& s, int64_t v) { s.redraft_every = static_cast<int>(v); }},
    {"--verify-generations",
     &Options::verify_generations,
     kVerifyGenerations,
     [](SearchOptions& s, int64_t v) { s.verify_generations = static_cast<int>(v); }},
};

/// The constants that a mode's search reads: without a model nothing is verified.
unsigned constants_of(const SearchMode& mode) {
  constexpr unsigned kOfVerifying = kVerifyGenerations | kDraftSize | kRedraftEvery;
  const SearchPolicy& policy = *mode.policy;
  const bool verifies = !mode.model.empty() || policy.as_published;
  return policy.constants & ~(verifies ? 0 : kOfVerifying);
}

Result<SearchOptions> search_options(const Options& options,
                                     const std::string& name,
                                     const SearchMode& mode) {
  SearchOptions search = mode.policy->options;
  TRY_ASSIGN(search.forms, read_forms(options));
  search.evolve.jobs = job_count(options);
  const unsigned taken = constants_of(mode);
  const auto refused = [&](const char* flag) {
    return Error(flag, ": the search of ", name, " has no such constant");
  };
  for (const ConstantRow& row : kConstants) {
    if (options.*row.given <= 0) continue;
    if ((taken & row.constant) == 0) return refused(row.flag);
    row.set(search, options.*row.given);
  }
  if (options.eps_greedy > 1) return Error("--eps-greedy is ", options.eps_greedy, ", at most 1");
  if (options.eps_greedy < 0) return search;
  if ((taken & kEpsGreedy) == 0) return refused("--eps-greedy");
  search.eps_greedy = options.eps_greedy;
  return search;
}

/// --policy's, or the mode's own; --psa asks for one that drafts.
Result<const SearchPolicy*> policy_of(const Options& options, const SearchMode& mode) {
  if (!options.policy.empty()) {
    const Result<const SearchPolicy*> policy = find_policy(options.policy);
    if (!policy.ok()) return Error("--policy: ", policy.error().message());
    if (*policy == &kAnsorPolicy && mode.model.empty())
      return Error("--policy ansor asks a learned model; --cost-model ", mode.name, " has none");
    return policy;
  }
  const bool drafts = !options.device_abstraction.empty() && mode.model != "random";
  return drafts ? &kPrunerPolicy : mode.policy;
}

constexpr std::string_view kAsPublished = "as-published";

/// Makes the contestant's search the published one.
Result<Unit> publish(Contestant& contestant) {
  const SearchPolicy* published = contestant.mode.policy->published;
  if (published == nullptr)
    return Error("--search as-published: the policy ",
                 contestant.mode.policy->name,
                 " has no published form");
  contestant.mode.policy = published;
  return Unit{};
}

/// What remains of a contestant when its mode and policy are known: what its model needs, its
/// constants, its name.
Result<Contestant> complete(const Options& options, Contestant contestant, const Target* target) {
  if (!options.search.empty() && options.search != kAsPublished)
    return Error("--search: \"", options.search, "\" is not as-published");
  if (!options.search.empty() && !contestant.mode.policy->as_published) {
    TRY(publish(contestant));
    contestant.name.append("-").append(kAsPublished);
  }
  TRY_ASSIGN(contestant.mode, usable_mode(contestant.mode, options.allow_untrained));
  TRY_ASSIGN(contestant.search, search_options(options, contestant.name, contestant.mode));
  if (target != nullptr) {
    TRY_ASSIGN(contestant.draft_form, read_draft_form(options, *target));
  }
  contestant.name = display_name(contestant.name, contestant.mode);
  return contestant;
}

}  // namespace

Result<Contestant> read_contestant(const Options& options, const Target& target) {
  TRY_ASSIGN(const SearchMode* mode, find_mode(options.cost_model));
  TRY_ASSIGN(const LearnedModelOptions models, read_model_options(options));
  if (!mode->learns() && !options.load_model.empty())
    log_warning(
        "--load-model {}: the cost model {} has no use for it", options.load_model, mode->name);
  Contestant contestant{options.cost_model, *mode, models};
  TRY_ASSIGN(contestant.mode.policy, policy_of(options, *mode));
  if (contestant.mode.policy != mode->policy)
    contestant.name.append("-policy-").append(contestant.mode.policy->name);
  return complete(options, std::move(contestant), &target);
}

Result<LearnedModelOptions> read_model_options(const Options& options) {
  if (!options.training.empty() && options.training != "as-published")
    return Error("--train: \"", options.training, "\" is not as-published");
  const Result<Target> target = parse_target(options.target, 0);  // checked where it is used
  LearnedModelOptions model{.load_model = options.load_model,
                            .platform = target.ok() ? target->device : "",
                            .jobs = static_cast<int>(job_count(options)),
                            .as_published = !options.training.empty(),
                            .seed = static_cast<uint64_t>(options.seed)};
  if (options.momentum_period > 0)
    model.momentum_period = static_cast<int>(options.momentum_period);
  return model;
}

Result<ModeModels> read_models(const Options& options, std::string_view name) {
  TRY_ASSIGN(const SearchMode* found, find_mode(name));
  TRY_ASSIGN(const LearnedModelOptions model, read_model_options(options));
  TRY_ASSIGN(const SearchMode mode, usable_mode(*found, /*allow_untrained=*/false));
  return make_models(mode, *mode.policy, model);
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
  // What is wrong with weights is said before anything is measured.
  for (const Contestant& contestant : contestants) {
    const Result<ModeModels> models = make_models(contestant);
    if (!models.ok()) return Error("--modes: ", contestant.name, ": ", models.error().message());
  }
  return Unit{};
}

/// "pruner", "pruner-as-published", or "pruner-without-dataflow": a mode without one of its parts.
static Result<Contestant> named_contestant(const std::string& name,
                                           const LearnedModelOptions& models) {
  constexpr std::string_view kWithout = "-without-";
  const std::string published = "-" + std::string(kAsPublished);
  const bool as_published = name.ends_with(published);
  const std::string of = name.substr(0, name.size() - (as_published ? published.size() : 0));
  const size_t cut = of.find(kWithout);
  TRY_ASSIGN(const SearchMode* mode, find_mode(of.substr(0, cut)));
  Contestant contestant{name, *mode, models};
  if (cut != std::string::npos) {
    TRY_ASSIGN(contestant.ablation, parse_ablation(of.substr(cut + kWithout.size())));
    if (!contestant.ablation.drafts) contestant.mode.policy = &kAnsorPolicy;
  }
  if (as_published) TRY(publish(contestant));
  return contestant;
}

Result<std::vector<Contestant>> read_contestants(const Options& options, const Target* target) {
  TRY_ASSIGN(const LearnedModelOptions model, read_model_options(options));
  std::vector<Contestant> contestants;
  std::istringstream in(options.modes);
  for (std::string name; std::getline(in, name, ',');) {
    const Result<Contestant> contestant = named_contestant(name, model);
    if (!contestant.ok()) return Error("--modes: ", contestant.error().message());
    if (std::ranges::find(contestants, name, &Contestant::name) != contestants.end())
      return Error("--modes: ", name, " is there twice");
    contestants.push_back(*contestant);
  }
  TRY(add_weights(options.weights, contestants));
  for (Contestant& contestant : contestants) {
    TRY_ASSIGN(contestant, complete(options, std::move(contestant), target));
  }
  return contestants;
}

}  // namespace pruner
