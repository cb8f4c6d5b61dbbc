// Draft, then verify (Pruner, section 4.1, algorithm 1): candidates evolve by the draft model, a
// few microseconds each; the best few hundred, along with the round's random ones and what measured
// best, are scored by the learned model; the best of these are measured. Beyond the paper: parents
// are drawn by rank, a population has no duplicates, tiles cross over, and a share of each batch is
// next to what measured best (published.cpp is without that).
#include <algorithm>
#include <cmath>
#include <iterator>

#include "search/batch.h"
#include "search/doubt.h"
#include "search/search.h"

namespace pruner {

namespace {

/// Mutations of the fastest trials, of one or two steps.
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

/// The best of each sketch in a ranked list.
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
  Explorer(const SearchRequest& request, Rng& rng)
      : r_(request), options_(request.options), rng_(rng) {}

  std::vector<Candidate> run() {
    Batch batch(r_.history, r_.count);
    if (r_.history.empty()) batch.add(default_schedule(r_.task, r_.space));
    size_t num_offers = (batch.room() + 1) / 2;  // drafts too: what is offered may mislead
    for (const Candidate& candidate : r_.offered)
      num_offers -= num_offers > 0 && batch.add(candidate);
    if (batch.full()) return batch.take();
    random_ = sample_legal(r_.space,
                           static_cast<size_t>(options_.random_samples),
                           rng_,
                           options_.evolve.islands,
                           options_.evolve.jobs);
    const std::vector<Candidate> near = neighbours(r_, rng_);
    draft(near);
    const std::vector<Scored> best = verify(near);
    if (r_.history.empty()) {
      for (const Candidate& candidate : best_of_each_sketch(r_.space, best)) batch.add(candidate);
    }
    const size_t num_random = draw_share(options_.eps_greedy, batch.room(), rng_);
    const size_t num_near = draw_share(options_.neighbours, batch.room(), rng_);
    batch.add_best(ranked_near_, num_near, options_.min_distance);
    const size_t num_best = batch.room() - std::min(batch.room(), num_random);
    add_doubtful(batch, best, num_best);
    for (const Candidate& candidate : random_) batch.add(candidate);
    batch.add_best(best, batch.room(), 1);  // fills up if all random ones were tried
    return batch.take();
  }

 private:
  std::vector<Scored> evolve_by(CostModel& model,
                                std::vector<Candidate> population,
                                int generations) {
    EvolveOptions evolve_options = options_.evolve;
    evolve_options.generations = generations;
    evolve_options.exclude = &r_.history.tried();
    return evolve(r_.task, r_.space, std::move(population), model, evolve_options, rng_);
  }

  // Adds candidates that may be the best, drawn by the score of each and the doubt in the score.
  void add_doubtful(Batch& batch, const std::vector<Scored>& best, size_t count) {
    constexpr size_t kDrawnFrom = 256;
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
    std::vector<Scored>& drafts = r_.memory.drafts;
    const auto tried = [&](const Scored& s) { return r_.history.tried().contains(s.candidate); };
    std::erase_if(drafts, tried);
    const bool due = r_.memory.rounds++ % options_.redraft_every == 0;
    if (r_.models.verify != nullptr && !due && drafts.size() > r_.count) return;
    std::vector<Candidate> population = random_;
    population.insert(population.end(), near.begin(), near.end());
    add_measured(population, static_cast<size_t>(options_.evolve.elites) / 2);
    drafts = evolve_by(r_.models.draft, std::move(population), options_.draft_generations);
    if (r_.models.verify != nullptr && drafts.size() > options_.draft_size)
      drafts.resize(options_.draft_size);
  }

  // Returns the candidates that the learned model finds best, evolved from the drafts and others;
  // returns the drafts if the model has nothing to say.
  std::vector<Scored> verify(const std::vector<Candidate>& near) {
    std::vector<Scored> verified;
    if (r_.models.verify != nullptr) {
      std::vector<Candidate> population;
      for (const Scored& draft : r_.memory.drafts) population.push_back(draft.candidate);
      population.insert(population.end(), random_.begin(), random_.end());
      population.insert(population.end(), near.begin(), near.end());
      add_measured(population,
                   static_cast<size_t>(options_.measured_share * options_.evolve.population));
      verified = evolve_by(*r_.models.verify, std::move(population), options_.verify_generations);
    }
    by_draft_ = verified.empty();
    if (verified.empty()) {
      ranked_near_ = evolve_by(r_.models.draft, near, 0);
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
  Rng& rng_;
  std::vector<Candidate> random_;
  std::vector<Scored> ranked_near_;
  bool by_draft_ = true;  // scores are of the draft alone
};

}  // namespace

static std::vector<Candidate> next_batch(const SearchRequest& request, Rng& rng) {
  return Explorer(request, rng).run();
}

const SearchPolicy kPrunerPolicy = {
    .name = "pruner",
    .next_batch = next_batch,
    .constants = kPopulation | kIslands | kDraftConstants | kVerifyGenerations | kEpsGreedy,
    .drafts = true,
    .published = &kPublishedPrunerPolicy};

}  // namespace pruner
