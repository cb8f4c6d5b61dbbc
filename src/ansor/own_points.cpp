#include "ansor/own_points.h"

#include <algorithm>
#include <limits>
#include <set>

namespace pruner::ansor {
namespace {

// In the order of DecisionKind.
constexpr const char* kKindNames[] = {"tiles",
                                      "order",
                                      "place",
                                      "chunk",
                                      "unrolling",
                                      "prefetch",
                                      "streaming",
                                      "threads",
                                      "width of fetches",
                                      "buffers"};

/// The candidate of the wanted values themselves, those that nothing is wanted of the first
/// choices; `why` gets what it is not legal for.
std::optional<Candidate> exact_point(const Space& space,
                                     SketchId sketch,
                                     const WantedPoint& wanted,
                                     std::string& why) {
  if (!wanted.reasons.empty()) {
    why = wanted.reasons.front();
    return std::nullopt;
  }
  Candidate candidate{sketch, {}};
  const std::vector<Decision>& decisions = space[sketch].decisions;
  for (size_t i = 0; i < decisions.size(); ++i) {
    const double value = wanted.values[i];
    candidate.decisions.push_back(value == kNoWish ? decisions[i].choices.front()
                                                   : static_cast<int32_t>(value));
  }
  return is_legal(space, candidate, &why) ? std::optional(candidate) : std::nullopt;
}

struct Difference {
  double distance = 0;
  std::set<std::string> kinds;
};

Difference difference(const Sketch& sketch, const WantedPoint& wanted, const Candidate& candidate) {
  Difference found;
  for (size_t i = 0; i < sketch.decisions.size(); ++i) {
    const Decision& decision = sketch.decisions[i];
    const double value = wanted.values[i], chosen = candidate.decisions[i];
    if (value == kNoWish || value == chosen) continue;
    found.distance += choice_distance(decision, value, chosen);
    found.kinds.insert(kKindNames[static_cast<size_t>(decision.kind)]);
  }
  if (wanted.structural > 0) found.kinds.insert("loops");
  return found;
}

}  // namespace

Result<NearestPoint> nearest_point(const Space& space,
                                   std::span<const PointMatch> matches,
                                   const State& state) {
  std::optional<NearestPoint> nearest;
  std::pair least(std::numeric_limits<int>::max(), 0.0);
  std::string why = "other stages";
  for (const PointMatch& match : matches) {
    const WantedPoint wanted = space.target.is_gpu() ? wanted_on_gpu(space, match, state)
                                                     : wanted_on_cpu(space, match, state);
    std::string other;
    if (const auto same = exact_point(space, match.sketch, wanted, other))
      return NearestPoint{*same, "", {}};
    if (wanted.structural >= least.first && nearest) continue;
    const std::optional<Candidate> found = nearest_legal(space, match.sketch, wanted.values);
    if (!found) {
      why = other;
      continue;
    }
    Difference apart = difference(space[match.sketch], wanted, *found);
    const std::pair here(wanted.structural, apart.distance);
    if (nearest && here >= least) continue;
    least = here;
    nearest = NearestPoint{*found, other, std::move(apart.kinds)};
  }
  if (!nearest) return Error("nothing near it is legal: ", why);
  return *std::move(nearest);
}

namespace {

// ---- spaces

// A record has 8 hardware numbers: cores, bytes of a vector and of a cache line, bytes of shared
// and of local memory a block, threads a block, virtual threads, threads a warp.
Gpu limits_of(std::span<const int64_t> hardware) {
  Gpu gpu;
  if (hardware.size() != 8) return gpu;
  const auto take = [](int64_t given, auto& limit) {
    if (given > 0) limit = static_cast<std::remove_reference_t<decltype(limit)>>(given);
  };
  take(hardware[3], gpu.shared_bytes_per_block);
  take(hardware[5], gpu.max_threads_per_block);
  take(hardware[6], gpu.max_vthreads);
  take(hardware[7], gpu.warp_size);
  return gpu;
}

// A CPU with the vectors that a record names.
Target cpu_of(std::span<const int64_t> hardware) {
  Target target;
  if (hardware.size() < 2) return target;
  target.threads = static_cast<int>(std::max<int64_t>(hardware[0], 1));
  target.vector_bytes = std::clamp<int64_t>(hardware[1], 16, 64);
  // 64 bytes are AVX-512's, which has masks and 32 registers; narrower x86 vectors have 16.
  target.masked_vectors = target.vector_bytes == 64;
  target.vector_registers = target.masked_vectors ? 32 : 16;
  return target;
}

bool computed(const Structure& structure, int stage) {
  return !structure.dag[StageId{stage}].is_placeholder() && !structure.inlined[stage];
}

// A computed stage by name; of two, the one that is reduced or is not, as asked. -1: none.
int find_stage(const Structure& structure, std::string_view base, bool reduced) {
  int found = -1;
  for (const char* suffix : {"", ".local", ".global"}) {
    for (int s = 0; s < structure.dag.size(); ++s) {
      const Stage& stage = structure.dag[StageId{s}];
      if (!computed(structure, s) || stage.name != std::string(base) + suffix) continue;
      if (stage.is_reduction() == reduced) return s;
      if (found < 0) found = s;
    }
  }
  return found;
}

}  // namespace

// Those of the same name; a reduction of ours that is only written by what bears its name is, in
// the record, that or its cache.
PointMatch match_by_name(SketchId id,
                         const Sketch& sketch,
                         const Structure& structure,
                         const std::function<std::string(const StagePlan&)>& name) {
  constexpr std::string_view kLocal = ".local";
  PointMatch match{id, {}, true};
  std::vector<bool> met(structure.inlined.size(), false);
  for (const StagePlan& plan : sketch.plans) {
    const Stage& stage = sketch.dag[plan.stage];
    const std::string asked = name(plan);
    std::string_view base = asked;
    int found = find_stage(structure, base, stage.is_reduction());
    if (found < 0 && base.ends_with(kLocal)) {
      base.remove_suffix(kLocal.size());
      found = find_stage(structure, base, stage.is_reduction());
    }
    match.stages.push_back(found);
    if (found < 0) {
      match.same_stages = false;
    } else {
      met[found] = true;
    }
  }
  for (int s = 0; s < structure.dag.size(); ++s)
    match.same_stages = match.same_stages && (met[s] || !computed(structure, s));
  return match;
}

namespace {

bool on_threads(const State& state) {
  return std::ranges::any_of(state.stages, [](const StateStage& stage) {
    return std::ranges::any_of(stage.iters, [](const StateIterator& iter) {
      return iter.annotation == Annotation::kThreadX;
    });
  });
}

}  // namespace

std::shared_ptr<const OwnSpace> OwnPoints::space_of(
    const std::shared_ptr<const Structure>& structure,
    std::span<const int64_t> hardware,
    bool gpu) {
  std::vector<int64_t> limits(hardware.begin(), hardware.end());
  limits.push_back(gpu);
  const std::pair key(structure.get(), std::move(limits));
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const OwnSpace>& entry = spaces_[key];
  if (entry) return entry;
  Target target = cpu_of(hardware);
  if (gpu) {
    target.backend = *parse_backend("cuda");
    target.gpu = limits_of(hardware);
  }
  auto made = std::make_shared<OwnSpace>();
  made->structure = structure;
  made->space = make_space(make_task(structure->task, target, ""));
  for (size_t s = 0; s < made->space.sketches.size(); ++s) {
    const Sketch& sketch = made->space.sketches[s];
    if (sketch.form != "direct") continue;
    const auto name = [&](const StagePlan& plan) { return sketch.dag[plan.stage].name; };
    made->matches.push_back(
        match_by_name(SketchId{static_cast<int32_t>(s)}, sketch, *structure, name));
  }
  entry = std::move(made);
  return entry;
}

Result<NearestPoint> OwnPoints::find(const ReplayNest& nest, std::span<const int64_t> hardware) {
  const std::shared_ptr<const OwnSpace> own =
      space_of(nest.structure, hardware, on_threads(nest.state));
  return nearest_point(own->space, own->matches, nest.state);
}

}  // namespace pruner::ansor
