// Candidates worth measuring: the schedule that needs no search, and the policies that fill the
// batches of a tuning round. One seed and the same measured times give one sequence.
#pragma once

#include <span>
#include <vector>

#include "model/cost_model.h"
#include "search/evolve.h"
#include "search/history.h"

namespace pruner {

/// The task's best candidate by draft score, found without measuring: the same for every run, in
/// some 20 ms. Trial 0 of each task, and what a module without records is built with.
Candidate default_schedule(const Task& task, const Space& space);

/// The Latent Schedule Explorer's constants: the reference's where it has them.
struct SearchOptions {
  double eps_greedy = 0.1;  // share of a batch that is drawn uniformly
  int random_samples = 1536;
  int draft_generations = 2;       // by the draft model, from the random samples
  size_t draft_size = 512;         // drafts that are verified
  int redraft_every = 2;           // rounds of a task that are verified from the same drafts
  int verify_generations = 1;      // by the learned model, from drafts, random and measured ones
  double measured_share = 0.1;     // of the verified population that measured best, at most
  double neighbours = 0.25;        // share of a batch that is next to the fastest measured
  size_t measured_parents = 5;     // ... of how many of them
  int mutations = 32;              // of each measured parent
  std::vector<std::string> forms;  // that are searched (form_names()); empty: all
  int min_distance = 2;            // decisions in which two of a batch differ, where there are such
  EvolveOptions evolve = {.population = 1536, .islands = 4};  // its jobs are the search's
};

/// Who orders candidates: the draft, and a learned model or none.
struct SearchModels {
  CostModel& draft;
  CostModel* verify = nullptr;

  /// Both learn.
  Result<Unit> update(std::span<const Sample> samples) const;
};

/// What a policy keeps of a task from one round to the next.
struct SearchMemory {
  std::vector<Scored> drafts;
  int rounds = 0;
};

/// One round of one task.
struct SearchRequest {
  const Task& task;
  const Space& space;
  const History& history;
  SearchMemory& memory;
  size_t count;  // candidates wanted
  const SearchModels& models;
  const SearchOptions& options;
  std::span<const Candidate> offered = {};  // schedules of other tasks, the first the most likely
};

struct SearchPolicy {
  std::string_view name;
  /// Up to `count` candidates to measure next, none of them tried before; empty: the space is used
  /// up.
  std::vector<Candidate> (*next_batch)(const SearchRequest& request, Rng& rng);
};

extern const SearchPolicy kPrunerPolicy, kAnsorPolicy, kUniformPolicy, kTransferPolicy;
/// That --policy names; kTransferPolicy searches nothing.
inline constexpr const SearchPolicy* kSearchPolicies[] = {
    &kPrunerPolicy, &kAnsorPolicy, &kUniformPolicy};

}  // namespace pruner
