#include "search/evolve.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "search/roulette.h"
#include "support/parallel_for.h"

namespace pruner {

namespace {

// Draws that may fail (illegal, a duplicate, no place for a mutation) for each that is wanted.
constexpr size_t kAttempts = 8;
// The same for a population with duplicates, in which only mutations without a place fail.
constexpr size_t kAttemptsWithDuplicates = 64;

bool better(const Scored& a, const Scored& b) { return a.score > b.score; }

/// A position in a ranked list, the first ones most likely: its density falls as 1/sqrt(position).
size_t draw_rank(size_t size, Rng& rng) {
  const double u = rng.uniform();
  return std::min(size - 1, static_cast<size_t>(u * u * static_cast<double>(size)));
}

/// A part of the population that breeds by itself.
struct Island {
  explicit Island(Rng& stream) : rng(stream) {}

  const Candidate& draw_parent() const {
    return ranked[by_score ? by_score->spin(rng) : draw_rank(ranked.size(), rng)].candidate;
  }
  /// Makes `ranked` the parents, to be drawn by rank or by score.
  void rank(bool by_rank) {
    std::ranges::stable_sort(ranked, better);
    if (by_rank) return;
    std::vector<float> scores;
    for (const Scored& scored : ranked) scores.push_back(scored.score);
    by_score.emplace(scores);
  }

  std::vector<Candidate> population;
  std::vector<Scored> ranked;  // the parents of the next generation
  std::optional<Roulette> by_score;
  Rng& rng;
};

std::optional<Candidate> make_child(const Space& space,
                                    const Island& island,
                                    const EvolveOptions& options) {
  const Candidate& parent = island.draw_parent();
  if (island.rng.uniform() < options.mutate_probability) {
    return options.ingredients.has(Ingredient::kLegalMutants)
               ? mutate(space, parent, island.rng)
               : mutate_as_published(space, parent, island.rng);
  }
  if (!options.ingredients.has(Ingredient::kCrossover)) return parent;
  const Candidate& other = island.draw_parent();
  if (other.sketch != parent.sketch) return std::nullopt;
  return cross_over(space, parent, other, island.rng);
}

/// `rng` itself for the first, and streams split from it.
class Streams {
 public:
  Streams(Rng& rng, int count) : first_(rng) {
    for (int i = 1; i < count; ++i) split_.push_back(rng.split());
  }
  Rng& operator[](size_t i) { return i == 0 ? first_ : split_[i - 1]; }

 private:
  Rng& first_;
  std::vector<Rng> split_;
};

/// Returns an island's next generation. A child that is illegal takes a place and is gone. Without
/// duplicates, no child was seen before or is twice among the children.
std::vector<Candidate> breed(const Space& space,
                             const Island& island,
                             size_t wanted,
                             const EvolveOptions& options,
                             const CandidateSet& seen) {
  const bool distinct = options.ingredients.has(Ingredient::kDistinct);
  const bool all_legal = options.ingredients.has(Ingredient::kLegalMutants);
  const size_t attempts = wanted * (distinct ? kAttempts : kAttemptsWithDuplicates);
  std::vector<Candidate> children;
  CandidateSet born;
  size_t places = 0;
  for (size_t attempt = 0; attempt < attempts && places < wanted; ++attempt) {
    std::optional<Candidate> child = make_child(space, island, options);
    if (!child) continue;
    if (distinct && (seen.contains(*child) || !born.insert(*child).second)) continue;
    ++places;
    if (all_legal || is_legal(space, *child)) children.push_back(*std::move(child));
  }
  return children;
}

std::vector<Candidate> draw_legal(const Space& space, size_t count, Rng& rng) {
  std::vector<Candidate> drawn;
  CandidateSet seen;
  for (size_t attempt = 0; attempt < count * kAttempts && drawn.size() < count; ++attempt) {
    Candidate candidate = sample(space, rng);
    if (!seen.insert(candidate).second) continue;
    drawn.push_back(std::move(candidate));
  }
  return drawn;
}

void drop_seen(std::vector<Candidate>& candidates, CandidateSet& seen) {
  std::erase_if(candidates, [&](const Candidate& c) { return !seen.insert(c).second; });
}

}  // namespace

std::vector<Candidate> sample_legal(
    const Space& space, size_t count, Rng& rng, int streams, int jobs) {
  Streams rngs(rng, streams);
  const size_t parts = static_cast<size_t>(streams);
  std::vector<std::vector<Candidate>> drawn(parts);
  parallel_for(streams, jobs, [&](int64_t i) {
    const size_t part = static_cast<size_t>(i);
    drawn[part] = draw_legal(space, (count + parts - 1 - part) / parts, rngs[part]);
  });
  for (size_t part = 1; part < parts; ++part)
    std::ranges::move(drawn[part], std::back_inserter(drawn[0]));
  CandidateSet seen;
  drop_seen(drawn[0], seen);
  return std::move(drawn[0]);
}

std::vector<Scored> evolve(const Task& task,
                           const Space& space,
                           std::vector<Candidate> population,
                           CostModel& scorer,
                           const EvolveOptions& options,
                           Rng& rng) {
  const bool distinct = options.ingredients.has(Ingredient::kDistinct);
  CandidateSet seen;  // candidates of all generations; with duplicates, the results
  if (distinct) drop_seen(population, seen);
  const size_t count = static_cast<size_t>(options.islands);
  Streams streams(rng, options.islands);
  std::vector<Island> islands;
  for (size_t i = 0; i < count; ++i) islands.emplace_back(streams[i]);
  for (size_t i = 0; i < population.size(); ++i)
    islands[i % count].population.push_back(std::move(population[i]));

  const size_t elites = distinct ? static_cast<size_t>(options.elites) / count : 0;
  std::vector<Scored> results;  // everything that may be returned
  for (int generation = 0;; ++generation) {
    for (Island& island : islands) {
      const std::vector<float> scores = scorer.predict(task, space, island.population);
      if (scores.empty()) island.ranked.clear();
      island.ranked.resize(std::min(island.ranked.size(), elites));
      for (size_t i = 0; i < scores.size(); ++i) {
        if (!std::isfinite(scores[i])) continue;
        Candidate& candidate = island.population[i];
        const bool excluded = options.exclude && options.exclude->contains(candidate);
        if (!excluded && (distinct || seen.insert(candidate).second))
          results.push_back({candidate, scores[i]});
        island.ranked.push_back({std::move(candidate), scores[i]});
      }
      island.population.clear();
    }
    if (generation == options.generations) break;
    parallel_for(options.islands, options.jobs, [&](int64_t i) {
      Island& island = islands[i];
      if (island.ranked.empty()) return;
      island.rank(options.ingredients.has(Ingredient::kRankParents));
      const size_t wanted = static_cast<size_t>(options.population) / count;
      island.population = breed(space, island, wanted, options, seen);
    });
    if (distinct)
      for (Island& island : islands) drop_seen(island.population, seen);
  }
  std::ranges::stable_sort(results, better);
  return results;
}

}  // namespace pruner
