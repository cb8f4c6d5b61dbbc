#include "cli/nearest_choice.h"

#include <memory>

namespace pruner {

ScheduleChoice nearest_choice(NearestSchedules nearest, NearestCounts* counts) {
  return [nearest = std::make_shared<const NearestSchedules>(std::move(nearest)), counts](
             const Task& task, const Space& space) -> std::optional<Candidate> {
    std::optional<NearestSchedules::Found> found = nearest->find(task, space);
    if (!found) return std::nullopt;
    if (counts != nullptr) ++(found->same_task ? counts->same : counts->near);
    return std::move(found->candidate);
  };
}

}  // namespace pruner
