#include "transfer/nearest.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/draft.h"
#include "search/search.h"
#include "space/plan.h"
#include "transfer/adapt.h"
#include "transfer/kernel_class.h"

namespace pruner {

namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();
constexpr double kNear = 0.1;
// A draft this many times that of the default leaves threads without work (bench/scaling.py).
constexpr double kIdleThreads = 1.1;

/// The numbers of a workload key.
std::vector<double> extents_of(std::string_view workload_key) {
  std::vector<double> extents;
  const Result<Json> key = parse_json(workload_key);
  if (!key.ok()) return extents;
  for (const Json& part : *key)
    if (part.is_number()) extents.push_back(part.get<double>());
  return extents;
}

// Whether instructions on narrow numbers compute it.
bool has_instruction(const Space& space, const Candidate& candidate) {
  return std::ranges::any_of(space[candidate.sketch].plans, [](const StagePlan& plan) {
    return !plan.structure->instruction.empty();
  });
}

}  // namespace

double shape_distance(const Task& task, std::string_view workload_key) {
  const std::vector<double> own = extents_of(task.key), other = extents_of(workload_key);
  // Data and weights come first, the output last; between them is what the epilogue reads.
  const std::vector<StageId> inputs = task.dag.inputs();
  size_t first = 0;
  for (size_t i = 0; i < std::min<size_t>(inputs.size(), 2); ++i)
    first += task.dag[inputs[i]].axes.size();
  const size_t last = task.dag[task.dag.outputs().back()].axes.size();
  if (std::min(own.size(), other.size()) < first + last) return kFar;
  double sum = 0;
  const auto add = [&](double a, double b) { sum += std::abs(std::log(a / b)); };
  for (size_t i = 0; i < first; ++i) add(own[i], other[i]);
  for (size_t i = 1; i <= last; ++i) add(own[own.size() - i], other[other.size() - i]);
  return sum / static_cast<double>(first + last);
}

std::optional<NearestSchedules::Found> NearestSchedules::find(const Task& task,
                                                              const Space& space) const {
  std::optional<Candidate> own;
  // A record of a machine that lacks them, or of another type's products, says nothing of the
  // instructions that there are for these.
  const auto fits = [&](const Candidate& candidate) {
    if (!own) own = default_schedule(task, space);
    return has_instruction(space, *own) == has_instruction(space, candidate);
  };
  // Nor does one for another number of threads that leaves some of these without work.
  const auto suits_threads = [&](const Record& record, const Candidate& candidate) {
    if (record.threads == task.target.threads) return true;
    if (!own) own = default_schedule(task, space);
    const auto drafted = [&](const Candidate& c) {
      return draft_latency_s(make_loop_nest(space, c), task.target);
    };
    return drafted(candidate) <= kIdleThreads * drafted(*own);
  };
  const std::string of = kernel_class(task.name), device = device_fingerprint(task.target);
  const Record* nearest = nullptr;
  double distance = kNear;
  for (const Record& record : records_) {
    if (record.workload_key == task.key) {
      const std::optional<Candidate> same = resolve(space, record);
      if (same && (record.device == device || fits(*same)) && suits_threads(record, *same))
        return Found{*same, true};
      if (same) continue;
    }
    if (kernel_class(record.task_name) != of) continue;
    const double apart = shape_distance(task, record.workload_key);
    if (apart >= distance) continue;
    nearest = &record;
    distance = apart;
  }
  if (nearest == nullptr) return std::nullopt;
  if (!own) own = default_schedule(task, space);
  const Result<Candidate> adapted = adapt(*nearest, space, *own);
  if (!adapted.ok() || !fits(*adapted) || !suits_threads(*nearest, *adapted)) return std::nullopt;
  return Found{*adapted, false};
}

}  // namespace pruner
