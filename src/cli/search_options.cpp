#include "cli/search_options.h"

#include <algorithm>
#include <sstream>

#include "cli/schedules.h"
#include "cli/source.h"
#include "support/log.h"

namespace pruner {

Result<const SearchPolicy*> read_policy(const Options& options, const SearchMode& mode) {
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

Result<SearchOptions> read_search_options(const Options& options) {
  SearchOptions search;
  TRY_ASSIGN(search.forms, read_forms(options));
  const auto set = [](int64_t given, auto& value) {
    if (given > 0) value = static_cast<std::remove_reference_t<decltype(value)>>(given);
  };
  set(options.population, search.evolve.population);
  set(options.population, search.random_samples);
  set(options.islands, search.evolve.islands);
  search.evolve.jobs = static_cast<int>(job_count(options));
  set(options.draft_generations, search.draft_generations);
  set(options.draft_size, search.draft_size);
  set(options.redraft_every, search.redraft_every);
  set(options.verify_generations, search.verify_generations);
  if (options.eps_greedy > 1) return Error("--eps-greedy is ", options.eps_greedy, ", at most 1");
  if (options.eps_greedy >= 0) search.eps_greedy = options.eps_greedy;
  return search;
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

Result<ModeModels> read_models(const Options& options,
                               const SearchMode& mode,
                               const SearchPolicy& policy,
                               int64_t warm_up_samples) {
  TRY_ASSIGN(LearnedModelOptions model, read_model_options(options));
  model.warm_up_samples = warm_up_samples;
  const bool learns = !mode.model.empty() && mode.model != "random";
  if (!learns && !options.load_model.empty())
    log_warning(
        "--load-model {}: the cost model {} has no use for it", options.load_model, mode.name);
  return make_models(mode, policy, model);
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
    const Result<ModeModels> models =
        make_models(contestant.mode, *contestant.mode.policy, contestant.models);
    if (!models.ok()) return Error("--modes: ", contestant.name, ": ", models.error().message());
  }
  return Unit{};
}

/// "pruner", or "pruner-without-dataflow": a mode without one of its parts.
static Result<Contestant> read_contestant(const std::string& name,
                                          const LearnedModelOptions& models) {
  constexpr std::string_view kWithout = "-without-";
  const size_t cut = name.find(kWithout);
  TRY_ASSIGN(const SearchMode* mode, find_mode(name.substr(0, cut)));
  Contestant contestant{name, *mode, models, {}};
  if (cut == std::string::npos) return contestant;
  TRY_ASSIGN(contestant.ablation, parse_ablation(name.substr(cut + kWithout.size())));
  if (!contestant.ablation.drafts) contestant.mode.policy = &kAnsorPolicy;
  return contestant;
}

Result<std::vector<Contestant>> read_contestants(const Options& options) {
  TRY_ASSIGN(const LearnedModelOptions model, read_model_options(options));
  std::vector<Contestant> contestants;
  std::istringstream in(options.modes);
  for (std::string name; std::getline(in, name, ',');) {
    const Result<Contestant> contestant = read_contestant(name, model);
    if (!contestant.ok()) return Error("--modes: ", contestant.error().message());
    if (std::ranges::find(contestants, name, &Contestant::name) != contestants.end())
      return Error("--modes: ", name, " is there twice");
    contestants.push_back(*contestant);
  }
  TRY(add_weights(options.weights, contestants));
  return contestants;
}

}  // namespace pruner
