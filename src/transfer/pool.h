// Records of tuned networks -> the schedules that they give to the tasks of another.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "graph/partition.h"
#include "model/cost_model.h"
#include "record/record.h"
#include "space/space.h"
#include "tune/tune.h"

namespace pruner {

/// A tuned network: the best record of each of its tasks.
struct TransferSource {
  std::string name;  // its file
  std::vector<Record> best;

  /// How many of its schedules are of a class.
  int64_t count(const std::string& kernel_class) const;
};

/// The fastest usable record of each task in a file. `device`: of which alone, or of all when
/// empty.
TransferSource make_source(std::string name,
                           const std::vector<Record>& records,
                           const std::string& device);

/// What a task is offered.
struct Offer {
  Candidate candidate;
  size_t source = 0;
  std::string task;  // that the schedule was found for
};
struct Offers {
  Candidate untuned;                             // the task's schedule that needs no search
  std::vector<Offer> offers;                     // no two of one candidate
  std::map<std::string, int64_t> not_adaptable;  // why, and how many
};

/// The schedules of the task's class in the sources, then those of its anchor with other epilogues,
/// adapted to it.
Offers offers_for(std::span<const TransferSource> sources, const Task& task, const Space& space);

/// How much a source has to give to a task, by which each task's share of the target's time counts.
enum class SourceRule : uint8_t {
  kLikeness,   // e^-d, where d is the shape_distance() of its nearest task of that anchor
  kPublished,  // the square root of how many schedules of the task's class it has
               // (Transfer-Tuning's heuristic, reference.md, source), whatever their shapes
};

/// The source with the most to give. Times of the target are what the draft foretells of its
/// default schedules. Ties go to the first.
size_t best_source(std::span<const TransferSource> sources,
                   std::span<const WeightedTask> tasks,
                   SourceRule rule = SourceRule::kLikeness);

/// The candidates of an offer, the ones that the model likes best first; `most`: how many, 0: all.
std::vector<Candidate> ranked_offers(
    const Offers& offers, const Task& task, const Space& space, CostModel& model, int64_t most);

/// A search begins with what the pool offers: the schedules that the model likes best are measured
/// beside drafts, in first rounds that are short, as they say where a task stands. Pool and model
/// outlive the options.
void start_warm(TuneOptions& options, std::span<const TransferSource> pool, CostModel& model);

}  // namespace pruner
