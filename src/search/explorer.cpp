#include "search/explorer.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "search/batch.h"
#include "search/doubt.h"

namespace pruner {

namespace {

constexpr size_t kLeastSamples = 50;  // least size of a first population
constexpr int kPatience = 5;          // populations without a legal one, then half the size will do
constexpr size_t kDrawnFrom = 256;    // best candidates that Thompson sampling draws from

/// Draws populations until there are enough legal candidates; candidates may be there twice.
std::vector<Candidate> sample_population(const Space& space, size_t drawn_at_once, Rng& rng) {
  std::vector<Candidate> kept;
  size_t least = kLeastSamples;
  for (int fruitless = 0; kept.size() < least;) {
    const size_t before = kept.size();
    for (size_t i = 0; i < drawn_at_once; ++i) {
      Candidate candidate = draw(space, rng);
      if (is_legal(space, candidate)) kept.push_back(std::move(candidate));
    }
    fruitless = kept.size() == before ? fruitless + 1 : 0;
    if (fruitless < kPatience) continue;
    if (least == 1) break;
    least = std::max<size_t>(1, least / 2);
    fruitless = 0;
  }
  return kept;
}

/// Draws `count` members of a population, with replacement.
std::vector<Candidate> draw_members(const std::vector<Candidate>& population,
                                    size_t count,
                                    Rng& rng) {
  std::vector<Candidate> drawn;
  for (size_t i = 0; i < count && !population.empty(); ++i)
    drawn.push_back(population[rng.below(static_cast<int64_t>(population.size()))]);
  return drawn;
}

/// Returns mutations of the fastest trials, of one or two steps.
std::vector<Candidate> neighbours(const SearchRequest& request, Rng& rng) {
  std::vector<Candidate> found;
  for (const Trial& parent : request.history.best(request.options.measured_parents)) {
    for (int i = 0; i < request.options.mutations; ++i) {
      std::optional<Candidate> child = mutate(request.space, parent.candidate, rng);
      if (child && i % 2 == 1) child = mutate(request.space, *child, rng);
      if (child) found.push_back(*std::move(child));
    }
  }
  return found;
}

/// Returns the best candidate of each sketch in a ranked list.
std::vector<Candidate> best_of_each_sketch(const Space& space, const std::vector<Scored>& ranked) {
  std::vector<Candidate> best;
  std::vector<bool> seen(space.sketches.size());
  for (const Scored& scored : ranked) {
    const size_t sketch = static_cast<size_t>(scored.candidate.sketch.value);
    if (!seen[sketch]) best.push_back(scored.candidate);
    seen[sketch] = true;
  }
  return best;
}

class Explorer {
 public:
  Explorer(const SearchRequest& request, bool drafts, Rng& rng)
      : r_(request),
        options_(request.options),
        ingredients_(request.options.ingredients),
        drafts_(drafts),
        rng_(rng),
        evolve_options_(request.options.evolve) {
    evolve_options_.exclude = &request.history.tried();
    evolve_options_.ingredients = ingredients_;
    if (!has(Ingredient::kIslands)) evolve_options_.islands = 1;
  }

  std::vector<Candidate> run() {
    Batch batch(r_.history, r_.count);
    const bool first = r_.history.empty();
    if (first && has(Ingredient::kDefaultSchedule)) batch.add(default_schedule(r_.task, r_.space));
    if (has(Ingredient::kOffers)) add_offers(batch);
    if (batch.full()) return batch.take();
    random_ = sample_random();
    std::vector<Candidate> near;
    if (has(Ingredient::kNeighbours)) near = neighbours(r_, rng_);
    if (drafts_) draft(near);
    const std::vector<Scored> best = verify(near);
    if (first && has(Ingredient::kEachSketch)) {
      for (const Candidate& candidate : best_of_each_sketch(r_.space, best)) batch.add(candidate);
    }
    const size_t num_random = random_share(batch.room());
    const size_t num_near =
        has(Ingredient::kNeighbours) ? draw_share(options_.neighbours, batch.room(), rng_) : 0;
    batch.add_best(ranked_near_, num_near, options_.min_distance);
    const size_t num_best = batch.room() - std::min(batch.room(), num_random);
    if (has(Ingredient::kThompsonSampling)) {
      add_doubtful(batch, best, num_best);
    } else {
      batch.add_best(best, num_best, 1);
    }
    if (!has(Ingredient::kExactEpsilon)) {
      for (const Candidate& candidate : draw_members(population_, 3 * num_random, rng_))
        batch.add(candidate);
      batch.add_best(best, batch.room(), 1);
    }
    for (const Candidate& candidate : random_) batch.add(candidate);
    batch.add_best(best, batch.room(), 1);  // fills up if all random ones were tried
    return batch.take();
  }

 private:
  bool has(Ingredient ingredient) const { return ingredients_.has(ingredient); }

  void add_offers(Batch& batch) const {
    size_t num_offers = (batch.room() + 1) / 2;  // drafts too: what is offered may mislead
    for (const Candidate& candidate : r_.offered)
      num_offers -= num_offers > 0 && batch.add(candidate);
  }

  std::vector<Candidate> sample_random() {
    const auto count = static_cast<size_t>(options_.random_samples);
    return has(Ingredient::kLegalMutants)
               ? sample_legal(r_.space, count, rng_, evolve_options_.islands, evolve_options_.jobs)
               : sample_population(r_.space, count, rng_);
  }

  /// Returns how many of `count` candidates are random; the published share is rounded down.
  size_t random_share(size_t count) {
    if (has(Ingredient::kExactEpsilon)) return draw_share(options_.eps_greedy, count, rng_);
    return static_cast<size_t>(options_.eps_greedy * static_cast<double>(count));
  }

  std::vector<Scored> evolve_by(CostModel& model,
                                std::vector<Candidate> population,
                                int generations) {
    evolve_options_.generations = generations;
    return evolve(r_.task, r_.space, std::move(population), model, evolve_options_, rng_);
  }

  // Adds candidates that may be the best, drawn by the score of each and the doubt in the score.
  void add_doubtful(Batch& batch, const std::vector<Scored>& best, size_t count) {
    std::vector<Candidate> candidates;
    std::vector<double> speeds;  // their logarithms
    for (const Scored& scored : best) {
      if (candidates.size() == kDrawnFrom) break;
      const auto score = static_cast<double>(scored.score);
      candidates.push_back(scored.candidate);
      speeds.push_back(by_draft_ ? std::log(score) : score);
    }
    const Doubt doubt(candidates, r_.history);
    std::vector<bool> passed(candidates.size());
    for (size_t left = candidates.size(); left > 0 && count > 0 && !batch.full(); --left) {
      const std::vector<double> deviations = doubt.draw(rng_);
      size_t chosen = candidates.size();
      for (size_t i = 0; i < candidates.size(); ++i) {
        if (passed[i]) continue;
        if (chosen == candidates.size() ||
            speeds[i] + deviations[i] > speeds[chosen] + deviations[chosen])
          chosen = i;
      }
      passed[chosen] = true;
      count -= batch.add(candidates[chosen]);
    }
  }

  void add_measured(std::vector<Candidate>& population, size_t count) const {
    for (const Trial& trial : r_.history.best(count)) population.push_back(trial.candidate);
  }

  // Renews the drafts, all that the draft model ranks; a verified search keeps the best of them for
  // some rounds.
  void draft(const std::vector<Candidate>& near) {
    const bool fresh = has(Ingredient::kFreshDrafts), verifies = r_.models.verify != nullptr;
    std::vector<Scored>& drafts = r_.memory.drafts;
    const auto tried = [&](const Scored& s) { return r_.history.tried().contains(s.candidate); };
    if (fresh) std::erase_if(drafts, tried);
    const bool due = r_.memory.rounds++ % options_.redraft_every == 0;
    if (verifies && !due && (!fresh || drafts.size() > r_.count)) return;
    std::vector<Candidate> population = random_;
    population.insert(population.end(), near.begin(), near.end());
    if (fresh) add_measured(population, static_cast<size_t>(options_.evolve.elites) / 2);
    drafts = evolve_by(r_.models.draft, std::move(population), options_.draft_generations);
    if (verifies && drafts.size() > options_.draft_size) drafts.resize(options_.draft_size);
  }

  // Returns the candidates that the learned model finds best, evolved from the drafts and others;
  // returns the drafts if the model has nothing to say.
  std::vector<Scored> verify(const std::vector<Candidate>& near) {
    for (const Scored& draft : r_.memory.drafts) population_.push_back(draft.candidate);
    population_.insert(population_.end(), random_.begin(), random_.end());
    population_.insert(population_.end(), near.begin(), near.end());
    add_measured(population_,
                 static_cast<size_t>(options_.measured_share * options_.evolve.population));
    std::vector<Scored> verified;
    if (r_.models.verify != nullptr)
      verified = evolve_by(*r_.models.verify, population_, options_.verify_generations);
    by_draft_ = verified.empty();
    if (verified.empty()) {
      if (drafts_) ranked_near_ = evolve_by(r_.models.draft, near, 0);
      return r_.memory.drafts;
    }
    const CandidateSet is_near(near.begin(), near.end());
    std::ranges::copy_if(verified, std::back_inserter(ranked_near_), [&](const Scored& s) {
      return is_near.contains(s.candidate);
    });
    return verified;
  }

  const SearchRequest& r_;
  const SearchOptions& options_;
  const Ingredients ingredients_;
  const bool drafts_;
  Rng& rng_;
  EvolveOptions evolve_options_;
  std::vector<Candidate> random_;
  std::vector<Candidate> population_;  // the first population of the learned model
  std::vector<Scored> ranked_near_;
  bool by_draft_ = true;  // scores are of the draft alone
};

}  // namespace

std::vector<Candidate> explore(const SearchRequest& request, bool drafts, Rng& rng) {
  return Explorer(request, drafts, rng).run();
}

}  // namespace pruner
