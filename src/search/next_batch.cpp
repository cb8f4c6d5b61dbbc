#include <algorithm>

#include "search/search.h"

namespace pruner {

namespace {

int distance(const Candidate& a, const Candidate& b) {
  if (a.sketch != b.sketch) return static_cast<int>(a.decisions.size() + b.decisions.size());
  int differing = 0;
  for (size_t i = 0; i < a.decisions.size(); ++i) differing += a.decisions[i] != b.decisions[i];
  return differing;
}

/// Collects a batch: nothing twice, nothing that was tried.
class Batch {
 public:
  Batch(const History& history, size_t count) : history_(history), count_(count) {}

  bool full() const { return picked_.size() >= count_; }
  size_t room() const { return count_ - picked_.size(); }

  /// Adds it if it is new and at least `min_distance` from what was picked.
  bool add(const Candidate& candidate, int min_distance = 1) {
    const auto near = [&](const Candidate& c) { return distance(c, candidate) < min_distance; };
    if (full() || history_.tried().contains(candidate) || std::ranges::any_of(picked_, near))
      return false;
    picked_.push_back(candidate);
    return true;
  }

  /// Adds up to `limit` of a ranked list, first those that are not like one another.
  void add_best(const std::vector<Scored>& ranked, size_t limit, int min_distance) {
    limit = std::min(limit, room());
    for (const int apart : {min_distance, 1}) {
      for (const Scored& scored : ranked) {
        if (limit == 0) return;
        limit -= add(scored.candidate, apart);
      }
    }
  }

  std::vector<Candidate> take() { return std::move(picked_); }

 private:
  const History& history_;
  size_t count_;
  std::vector<Candidate> picked_;
};

/// A share of a batch, rounded up or down by chance so that its mean is exact.
size_t draw_share(double share, size_t count, Rng& rng) {
  return static_cast<size_t>(share * static_cast<double>(count) + rng.uniform());
}

/// Mutations of the fastest trials, of one or two steps.
std::vector<Candidate> neighbours(const Space& space,
                                  const History& history,
                                  const SearchOptions& options,
                                  Rng& rng) {
  std::vector<Candidate> found;
  for (const Trial& parent : history.best(options.measured_parents)) {
    for (int i = 0; i < options.mutations; ++i) {
      std::optional<Candidate> child = mutate(space, parent.candidate, rng);
      if (child && i % 2 == 1) child = mutate(space, *child, rng);
      if (child) found.push_back(*std::move(child));
    }
  }
  return found;
}

/// Ranks candidates by the model without evolving them.
std::vector<Scored> rank(const Task& task,
                         const Space& space,
                         std::vector<Candidate> candidates,
                         CostModel& model,
                         Rng& rng) {
  return evolve(task, space, std::move(candidates), model, {.generations = 0}, rng);
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

}  // namespace

std::vector<Candidate> next_batch(const Task& task,
                                  const Space& space,
                                  const History& history,
                                  size_t count,
                                  CostModel& model,
                                  const SearchOptions& options,
                                  Rng& rng) {
  Batch batch(history, count);
  if (history.empty()) batch.add(default_schedule(task, space));

  const std::vector<Candidate> random =
      sample_legal(space, static_cast<size_t>(options.random_samples), rng);
  const std::vector<Candidate> near = neighbours(space, history, options, rng);
  std::vector<Candidate> population = random;
  population.insert(population.end(), near.begin(), near.end());
  for (const Trial& parent : history.best(static_cast<size_t>(options.evolve.elites) / 2)) {
    population.push_back(parent.candidate);
  }
  EvolveOptions evolve_options = options.evolve;
  evolve_options.exclude = &history.tried();
  const std::vector<Scored> best =
      evolve(task, space, std::move(population), model, evolve_options, rng);

  if (history.empty()) {
    for (const Candidate& candidate : best_of_each_sketch(space, best)) batch.add(candidate);
  }
  const size_t num_random = draw_share(options.eps_greedy, batch.room(), rng);
  const size_t num_near = draw_share(options.neighbours, batch.room(), rng);
  batch.add_best(rank(task, space, near, model, rng), num_near, options.min_distance);
  batch.add_best(best, batch.room() - std::min(batch.room(), num_random), options.min_distance);
  for (const Candidate& candidate : random) batch.add(candidate);
  batch.add_best(best, batch.room(), 1);  // where the random ones were all tried
  return batch.take();
}

}  // namespace pruner
