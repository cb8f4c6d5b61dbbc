#include "search/evolve.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "support/parallel_for.h"

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

/// A part of the population that breeds by itself.
struct Island {
  explicit Island(Rng& stream) : rng(stream) {}

  std::vector<Candidate> population;
  std::vector<Scored> ranked;  // the parents of the next generation
  Rng& rng;
};

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

/// Children that were not seen before, nor are twice among them.
std::vector<Candidate> breed(const Space& space,
                             const Island& island,
                             size_t wanted,
                             double mutate_probability,
                             const CandidateSet& seen) {
  std::vector<Candidate> children;
  CandidateSet born;
  for (size_t attempt = 0; attempt < wanted * kAttempts && children.size() < wanted; ++attempt) {
    std::optional<Candidate> child =
        make_child(space, island.ranked, mutate_probability, island.rng);
    if (child && !seen.contains(*child) && born.insert(*child).second)
      children.push_back(*std::move(child));
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
  CandidateSet seen;
  drop_seen(population, seen);
  const size_t count = static_cast<size_t>(options.islands);
  Streams streams(rng, options.islands);
  std::vector<Island> islands;
  for (size_t i = 0; i < count; ++i) islands.emplace_back(streams[i]);
  for (size_t i = 0; i < population.size(); ++i)
    islands[i % count].population.push_back(std::move(population[i]));

  std::vector<Scored> results;  // everything that may be returned
  for (int generation = 0;; ++generation) {
    for (Island& island : islands) {
      const std::vector<float> scores = scorer.predict(task, space, island.population);
      if (scores.empty()) island.ranked.clear();
      island.ranked.resize(
          std::min(island.ranked.size(), static_cast<size_t>(options.elites) / count));
      for (size_t i = 0; i < scores.size(); ++i) {
        if (!std::isfinite(scores[i])) continue;
        Candidate& candidate = island.population[i];
        const bool excluded = options.exclude && options.exclude->contains(candidate);
        if (!excluded) results.push_back({candidate, scores[i]});
        island.ranked.push_back({std::move(candidate), scores[i]});
      }
      island.population.clear();
    }
    if (generation == options.generations) break;
    parallel_for(options.islands, options.jobs, [&](int64_t i) {
      Island& island = islands[i];
      if (island.ranked.empty()) return;
      std::ranges::stable_sort(island.ranked, better);
      const size_t wanted = static_cast<size_t>(options.population) / count;
      island.population = breed(space, island, wanted, options.mutate_probability, seen);
    });
    for (Island& island : islands) drop_seen(island.population, seen);
  }
  std::ranges::stable_sort(results, better);
  return results;
}

}  // namespace pruner
