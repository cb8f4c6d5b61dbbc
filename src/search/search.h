// Candidates worth measuring: the schedule that needs no search, and the policies that fill the
// batches of a tuning round. One seed and the same measured times give one sequence.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "model/cost_model.h"
#include "search/evolve.h"
#include "search/history.h"

namespace pruner {

/// The task's best candidate by draft score, found without measuring: the same for every run, in
/// some 20 ms. Trial 0 of each task, and what a module without records is built with.
Candidate default_schedule(const Task& task, const Space& space);
/// Like default_schedule(), among candidates that `accepts` takes. Returns nullopt if `accepts`
/// takes none of some 4,000 draws.
std::optional<Candidate> default_schedule_of(const Task& task,
                                             const Space& space,
                                             const std::function<bool(const Candidate&)>& accepts);

/// `DraftSearch` says which candidates best_by_draft() looks for.
struct DraftSearch {
  std::function<bool(const Candidate&)> accepts = {};  // whether a candidate is wanted; empty: all
  // Candidates of the space that are good, found at other extents of the same operator. The search
  // begins with these, and ends after a sixth of the scores.
  std::vector<Candidate> near = {};
};
/// Returns the task's best candidates by draft score, the best first, and at most 32: the first is
/// default_schedule() if all are wanted.
std::vector<Candidate> best_by_draft(const Task& task,
                                     const Space& space,
                                     const DraftSearch& search);

/// A search's constants; the defaults are the Latent Schedule Explorer's, the reference's where it
/// has them. A policy has its own (SearchPolicy::options).
struct SearchOptions {
  double eps_greedy = 0.1;  // share of a batch that is drawn uniformly
  int random_samples = 1536;
  int draft_generations = 2;   // draft model's generations, from the random samples
  size_t draft_size = 512;     // drafts that are verified
  int redraft_every = 2;       // rounds of a task that are verified from the same drafts
  int verify_generations = 1;  // learned model's generations, from drafts, random and measured ones
  double measured_share = 0.1;          // largest share of a population that measured best
  double neighbours = 0.25;             // share of a batch that is next to the fastest measured
  size_t measured_parents = 5;          // number of the fastest measured for `neighbours`
  int mutations = 32;                   // mutations of each measured parent
  std::vector<std::string> forms = {};  // searched forms (form_names()); empty: by Form::drawn
  int min_distance = 2;     // decisions in which two of a batch differ, where there are such
  int64_t round_size = 10;  // trials of a task's round
  EvolveOptions evolve = {.population = 1536, .islands = 4};  // its jobs are the search's
  Ingredients ingredients = Ingredients::all();  // ingredients of the search and its models
};

/// The models that order candidates: the draft, and a learned model or none.
struct SearchModels {
  CostModel& draft;
  CostModel* verify = nullptr;

  /// Trains the draft and the learned model.
  Result<Unit> update(std::span<const Sample> samples) const;
};

/// The state of a task that a policy keeps from one round to the next.
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

/// Constants that a user may set; a policy names those that it reads.
enum SearchConstant : unsigned {
  kPopulation = 1 << 0,  // random_samples and evolve.population
  kIslands = 1 << 1,
  kDraftGenerations = 1 << 2,
  kDraftSize = 1 << 3,
  kRedraftEvery = 1 << 4,
  kVerifyGenerations = 1 << 5,
  kEpsGreedy = 1 << 6,
  kDraftConstants = kDraftGenerations | kDraftSize | kRedraftEvery,
};

struct SearchPolicy {
  std::string_view name;
  /// Returns up to `count` candidates to measure next, none of them tried before; empty if the
  /// space is used up.
  std::vector<Candidate> (*next_batch)(const SearchRequest& request, Rng& rng);
  unsigned constants = 0;      // SearchConstants
  bool drafts = false;         // a draft model searches before a learned model
  bool published = true;       // without ingredients, the search is that of a paper
  Ingredients takes = {};      // ingredients that the search can use
  SearchOptions options = {};  // defaults of the policy
};

extern const SearchPolicy kPrunerPolicy, kAnsorPolicy, kUniformPolicy, kTransferPolicy;
extern const SearchPolicy kMetaSchedulePolicy;
/// The policies that --policy names. kTransferPolicy searches nothing, and kMetaSchedulePolicy has
/// a space of its own.
inline constexpr const SearchPolicy* kSearchPolicies[] = {
    &kPrunerPolicy, &kAnsorPolicy, &kUniformPolicy};

}  // namespace pruner
