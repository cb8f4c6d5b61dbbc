#include "search/evolve.h"

#include <algorithm>
#include <cmath>

namespace pruner {

namespace {

// Draws that may fail (illegal, a duplicate, no place for a mutation) for each that is wanted.
constexpr size_t kAttempts = 8;

bool better(const Scored& a, const Scored& b) { return a.score > b.score; }

/// A position in a ranked list, the first ones most likely: its density falls as 1/sqrt(position).
size_t draw_rank(size_t size, Rng& rng) {
  const double u = rng.uniform();
  return std::min(size - 1, static_cast<size_t>(u * u * static_cast<double>(size)));
}

std::optional<Candidate> make_child(const Space& space,
                                    const std::vector<Scored>& ranked,
                                    double mutate_probability,
                                    Rng& rng) {
  const Candidate& parent = ranked[draw_rank(ranked.size(), rng)].candidate;
  if (rng.uniform() < mutate_probability) return mutate(space, parent, rng);
  const Candidate& other = ranked[draw_rank(ranked.size(), rng)].candidate;
  if (other.sketch != parent.sketch) return std::nullopt;
  return cross_over(space, parent, other, rng);
}

/// Children that were not seen before.
std::vector<Candidate> breed(const Space& space,
                             const std::vector<Scored>& ranked,
                             const EvolveOptions& options,
                             CandidateSet& seen,
                             Rng& rng) {
  std::vector<Candidate> children;
  const size_t wanted = static_cast<size_t>(options.population);
  for (size_t attempt = 0; attempt < wanted * kAttempts && children.size() < wanted; ++attempt) {
    std::optional<Candidate> child = make_child(space, ranked, options.mutate_probability, rng);
    if (child && seen.insert(*child).second) children.push_back(*std::move(child));
  }
  return children;
}

}  // namespace

std::vector<Candidate> sample_legal(const Space& space, size_t count, Rng& rng) {
  std::vector<Candidate> drawn;
  CandidateSet seen;
  for (size_t attempt = 0; attempt < count * kAttempts && drawn.size() < count; ++attempt) {
    Candidate candidate = sample(space, rng);
    if (seen.contains(candidate) || !is_legal(space, candidate)) continue;
    seen.insert(candidate);
    drawn.push_back(std::move(candidate));
  }
  return drawn;
}

std::vector<Scored> evolve(const Task& task,
                           const Space& space,
                           std::vector<Candidate> population,
                           CostModel& scorer,
                           const EvolveOptions& options,
                           Rng& rng) {
  CandidateSet seen;
  std::erase_if(population, [&](const Candidate& c) { return !seen.insert(c).second; });

  std::vector<Scored> results;  // everything that may be returned
  std::vector<Scored> ranked;   // the parents of the next generation
  for (int generation = 0; !population.empty(); ++generation) {
    const std::vector<float> scores = scorer.predict(task, space, population);
    if (scores.empty()) break;
    ranked.resize(std::min(ranked.size(), static_cast<size_t>(options.elites)));
    for (size_t i = 0; i < population.size(); ++i) {
      if (!std::isfinite(scores[i])) continue;
      const bool excluded = options.exclude && options.exclude->contains(population[i]);
      if (!excluded) results.push_back({population[i], scores[i]});
      ranked.push_back({std::move(population[i]), scores[i]});
    }
    if (generation == options.generations || ranked.empty()) break;
    std::ranges::stable_sort(ranked, better);
    population = breed(space, ranked, options, seen, rng);
  }
  std::ranges::stable_sort(results, better);
  return results;
}

}  // namespace pruner
