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

/// Holds a tuned network: the best record of each of its tasks.
struct TransferSource {
  std::string name;  // name of its file
  std::vector<Record> best;

  /// Returns how many of its schedules are of a class.
  int64_t count(const std::string& kernel_class) const;
};

/// Returns the fastest usable record of each task in a file. Only records of `device` count, or all
/// if it is empty.
TransferSource make_source(std::string name,
                           const std::vector<Record>& records,
                           const std::string& device);

/// Holds a schedule that a task is offered.
struct Offer {
  Candidate candidate;
  size_t source = 0;
  std::string task;  // task that the schedule was found for
};
struct Offers {
  Candidate untuned;                             // the task's schedule that needs no search
  std::vector<Offer> offers;                     // no two of one candidate
  std::map<std::string, int64_t> not_adaptable;  // reasons, and how many
};

/// Returns the sources' schedules of the task's class, then those of its anchor with other
/// epilogues, adapted to the task.
Offers offers_for(std::span<const TransferSource> sources, const Task& task, const Space& space);

/// `SourceRule` rates what a source gives to a task, weighted by the task's share of target time.
enum class SourceRule : uint8_t {
  kLikeness,   // e^-d, where d is the shape_distance() of its nearest task of that anchor
  kPublished,  // the square root of how many schedules of the task's class it has
               // (Transfer-Tuning's heuristic, reference.md, source), whatever their shapes
};

/// Returns the source with the most to give. The draft of the default schedules gives the times of
/// the target's tasks. Ties go to the first source.
size_t best_source(std::span<const TransferSource> sources,
                   std::span<const WeightedTask> tasks,
                   SourceRule rule = SourceRule::kLikeness);

/// Returns at most `most` (0: all) candidates of an offer, those that the model likes best first.
std::vector<Candidate> ranked_offers(
    const Offers& offers, const Task& task, const Space& space, CostModel& model, int64_t most);

/// A search begins with what the pool offers: the schedules that the model likes best are measured
/// beside drafts, in first rounds that are short, as they say where a task stands. Pool and model
/// outlive the options.
void start_warm(TuneOptions& options, std::span<const TransferSource> pool, CostModel& model);

}  // namespace pruner
