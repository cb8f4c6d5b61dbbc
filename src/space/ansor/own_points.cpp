#include "space/ansor/own_points.h"

#include <algorithm>

#include "space/gpu/tiles.h"

namespace pruner::ansor {
namespace {

/// What a split leaves of an iterator, outermost first; the factor of the first is the rest.
struct Part {
  int iter;
  int64_t factor;
};

// The parts of an axis that was split once or again from inside; others are no tiles of ours.
std::vector<Part> parts_of(const StateStage& stage, int axis) {
  std::vector<Part> parts;
  for (const Relation& r : stage.relations) {
    if (r.fuse || r.parent != axis || r.nparts) continue;
    parts.push_back({r.inner, r.factor});
    axis = r.outer;
  }
  parts.push_back({axis, 0});
  std::ranges::reverse(parts);
  return parts;
}

Annotation annotation_of(const StateStage& stage, int iter) {
  return stage.iters[static_cast<size_t>(iter)].annotation;
}

// The factor of the split whose inner part has the annotation; 0: there is none.
int64_t factor_at(const StateStage& stage, Annotation annotation) {
  for (const Relation& r : stage.relations) {
    if (!r.fuse && !r.nparts && annotation_of(stage, r.inner) == annotation) return r.factor;
  }
  return 0;
}

int64_t unroll_of(const StateStage& stage) {
  int64_t steps = 0;
  for (const StateIterator& iter : stage.iters) steps = std::max(steps, iter.auto_unroll);
  return steps;
}

// Reads the decisions of one sketch from the stages of a state.
class PointReader {
 public:
  PointReader(const OwnSpace& own, const OwnSpace::Match& match, const State& state)
      : own_(own), match_(match), sketch_(own.space[match.sketch]), state_(state) {}

  Result<Candidate> read() {
    candidate_.sketch = match_.sketch;
    for (const Decision& decision : sketch_.decisions)
      candidate_.decisions.push_back(decision.choices.front());  // one buffer, an element a thread
    for (const StagePlan& plan : sketch_.plans) TRY(read(plan));
    std::string why;
    if (!is_legal(own_.space, candidate_, &why)) {
      if (!why.starts_with("vectors do not divide")) return Error(why);
      other_width_ = true;
    }
    if (!other_width_) return std::move(candidate_);
    for (const StagePlan& plan : sketch_.plans) {
      if (plan.vectors != kFixed) candidate_.decisions[static_cast<size_t>(plan.vectors)] = 1;
    }
    const bool else_legal = is_legal(own_.space, candidate_, &why);
    return Error(else_legal ? "like a point, but fetched in runs that are no vectors" : why);
  }

 private:
  Result<Unit> read(const StagePlan& plan) {
    switch (plan.role) {
      case StageRole::kBlockTile: return read_block_tile(plan);
      case StageRole::kThreadTile: return read_thread_tile(plan);
      case StageRole::kSharedTile: return read_shared_tile(plan);
      case StageRole::kElements: return read_elements(plan);
      case StageRole::kRows: return Unit{};
      case StageRole::kRowReduction: return read_row_reduction(plan);
      default: return Error("a reduction is in a kernel of its own");
    }
  }

  size_t plan_index(StageId id) const {
    return static_cast<size_t>(sketch_.tables->plan_of[static_cast<size_t>(id.value)]);
  }
  int number(StageId id) const { return match_.stages[plan_index(id)]; }
  const StateStage& state(StageId id) const {
    return state_.stages[static_cast<size_t>(number(id))];
  }
  const StagePlan& plan_of(StageId id) const { return sketch_.plans[plan_index(id)]; }

  Result<Unit> set(DecisionRef ref, int64_t value, const char* what, int64_t fixed = 1) {
    if (ref == kFixed) {
      return value == fixed ? Result<Unit>(Unit{}) : Error(what, " ", value, ": nothing to choose");
    }
    const std::vector<int32_t>& choices = sketch_.decisions[static_cast<size_t>(ref)].choices;
    if (!std::binary_search(choices.begin(), choices.end(), value)) {
      return Error(what, " ", value, ": not among the choices");
    }
    candidate_.decisions[static_cast<size_t>(ref)] = static_cast<int32_t>(value);
    return Unit{};
  }

  // The root of a contraction: fused blocks, virtual threads and threads, then one thread's tile.
  Result<Unit> read_block_tile(const StagePlan& plan) {
    const StateStage& root = state(plan.stage);
    const Annotation bound[] = {Annotation::kBlockX, Annotation::kVThread, Annotation::kThreadX};
    if (root.compute_at != ComputeAt::kRoot || root.leaves.size() < 3)
      return Error("other loops around a contraction");
    for (size_t i = 0; i < 3; ++i) {
      if (annotation_of(root, root.leaves[i]) != bound[i])
        return Error("other loops around a contraction");
    }
    return Unit{};
  }

  // SSSRRSRS.
  Result<Unit> read_thread_tile(const StagePlan& plan) {
    const StateStage &stage = state(plan.stage), &root = state(plan.root);
    const bool attached = stage.compute_at == ComputeAt::kIterator &&
                          stage.at_stage == number(plan.root) &&
                          annotation_of(root, stage.at_iter) == Annotation::kThreadX;
    if (!attached) return Error("a contraction that is not computed by each thread");
    std::vector<std::vector<Part>> axes;
    for (int a = 0; a < stage.num_roots; ++a) {
      axes.push_back(parts_of(stage, a));
      if (axes.back().size() != (a < stage.num_axes ? 5u : 3u)) return Error("other tiles");
    }
    if (!in_order(stage, axes)) return Error("tiles in another order");
    TRY(match_root(plan, axes));
    for (const GpuAxisPlan& a : plan_of(plan.root).tiles) {
      const std::vector<Part>& parts = axes[static_cast<size_t>(a.axis)];
      TRY(set(a.vthreads, parts[1].factor, "virtual threads"));
      TRY(set(a.threads, parts[2].factor, "threads of an axis"));
      TRY(set(a.outer, parts[3].factor, "an outer tile"));
      TRY(set(a.inner, parts[4].factor, "an inner tile"));
    }
    for (const GpuAxisPlan& a : plan.tiles) {
      const std::vector<Part>& parts = axes[static_cast<size_t>(a.axis)];
      TRY(set(a.outer, parts[1].factor, "an outer chunk"));
      TRY(set(a.inner, parts[2].factor, "an inner chunk"));
    }
    return set(plan.unroll, std::max(unroll_of(stage), unroll_of(root)), "unrolling", 0);
  }

  static bool in_order(const StateStage& stage, const std::vector<std::vector<Part>>& axes) {
    struct Level {
      bool reduce;
      size_t part;
    };
    constexpr Level kOrder[] = {{false, 0},
                                {false, 1},
                                {false, 2},
                                {true, 0},
                                {true, 1},
                                {false, 3},
                                {true, 2},
                                {false, 4}};
    std::vector<int> leaves;
    for (const Level& level : kOrder) {
      for (int a = 0; a < stage.num_roots; ++a) {
        if ((a >= stage.num_axes) == level.reduce)
          leaves.push_back(axes[static_cast<size_t>(a)][level.part].iter);
      }
    }
    return leaves == stage.leaves;
  }

  // The root is split as the contraction is, with one tile a thread.
  Result<Unit> match_root(const StagePlan& plan, const std::vector<std::vector<Part>>& axes) {
    const StateStage& root = state(plan.root);
    for (int a = 0; a < root.num_axes; ++a) {
      const std::vector<Part> mine = parts_of(root, a);
      const std::vector<Part>& tiles = axes[static_cast<size_t>(a)];
      const bool same = mine.size() == 4 && mine[1].factor == tiles[1].factor &&
                        mine[2].factor == tiles[2].factor &&
                        mine[3].factor == tiles[3].factor * tiles[4].factor;
      if (!same) return Error("a contraction's reader has other tiles");
    }
    return Unit{};
  }

  Result<Unit> read_shared_tile(const StagePlan& plan) {
    const StageId reader = sketch_.tables->consumers[static_cast<size_t>(plan.stage.value)][0];
    const StateStage &stage = state(plan.stage), &contraction = state(reader);
    if (stage.compute_at != ComputeAt::kIterator || stage.at_stage != number(reader) ||
        contraction.num_roots == contraction.num_axes)
      return Error("a shared tile at another place");
    const int last_axis = contraction.num_roots - 1;
    if (stage.at_iter != parts_of(contraction, last_axis)[0].iter)
      return Error("a shared tile at another place");
    int64_t threads = 1;
    for (int a = 0; a < contraction.num_axes; ++a) {
      const std::vector<Part> parts = parts_of(contraction, a);
      threads *= parts.size() == 5 ? parts[2].factor : 0;
    }
    if (factor_at(stage, Annotation::kThreadX) != threads)
      return Error("a shared tile is fetched by other threads");
    const int64_t vector = std::max<int64_t>(factor_at(stage, Annotation::kVectorize), 1);
    other_width_ = !set(plan.vectors, vector, "a vector of").ok() || other_width_;
    return Unit{};
  }

  // Blocks of threads, one element each; few elements are one block.
  Result<Unit> read_elements(const StagePlan& plan) {
    const StateStage& stage = state(plan.stage);
    const size_t reductions = static_cast<size_t>(stage.num_roots - stage.num_axes);
    const bool blocks =
        !stage.leaves.empty() && annotation_of(stage, stage.leaves[0]) == Annotation::kBlockX;
    const size_t bound = blocks ? 2 : 1;
    if (stage.compute_at != ComputeAt::kRoot || stage.leaves.size() != bound + reductions ||
        annotation_of(stage, stage.leaves[bound - 1]) != Annotation::kThreadX)
      return Error("other loops of an element's thread");
    const int64_t threads = factor_at(stage, Annotation::kThreadX);
    if (blocks || threads != 0) TRY(set(plan.threads, threads, "threads of a block"));
    return set(plan.unroll, unroll_of(stage), "unrolling", 0);
  }

  // One row a block.
  Result<Unit> read_row_reduction(const StagePlan& plan) {
    const StateStage& stage = state(plan.stage);
    const int64_t threads = factor_at(stage, Annotation::kThreadX);
    if (threads == 0) return Error("a row without a split");
    if (unroll_of(stage) > 0) return Error("an unrolled row");
    return set(plan_of(plan.root).threads, threads, "threads of a row");
  }

  const OwnSpace& own_;
  const OwnSpace::Match& match_;
  const Sketch& sketch_;
  const State& state_;
  Candidate candidate_;
  bool other_width_ = false;  // of a fetch, than our space has
};

// ---- spaces

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

// A stage of the state by name; -1: none.
int find_stage(const Structure& structure, const std::string& name) {
  for (int s = 0; s < structure.dag.size(); ++s) {
    const Stage& stage = structure.dag[StageId{s}];
    if (!stage.is_placeholder() && !structure.inlined[static_cast<size_t>(s)] && stage.name == name)
      return s;
  }
  return -1;
}

// The state's stage for each plan: those of the same name; what writes the rows of a reduction is,
// in the record, the reduction itself. Empty: the stages are others.
std::vector<int> match_stages(const Sketch& sketch, const Structure& structure) {
  constexpr std::string_view kLocal = ".local";
  std::vector<int> stages;
  std::vector<bool> met(structure.inlined.size(), false);
  for (const StagePlan& plan : sketch.plans) {
    const std::string& name = sketch.dag[plan.stage].name;
    int found = find_stage(structure, name);
    if (found < 0 && plan.role == StageRole::kRowReduction && name.ends_with(kLocal))
      found = find_stage(structure, name.substr(0, name.size() - kLocal.size()));
    if (found < 0) return {};
    stages.push_back(found);
    met[static_cast<size_t>(found)] = true;
  }
  for (int s = 0; s < structure.dag.size(); ++s) {
    const bool computed =
        !structure.dag[StageId{s}].is_placeholder() && !structure.inlined[static_cast<size_t>(s)];
    if (computed && !met[static_cast<size_t>(s)]) return {};
  }
  return stages;
}

// The same reductions are computed across threads.
bool same_rows(const Sketch& sketch, const OwnSpace::Match& match, const State& state) {
  for (size_t p = 0; p < sketch.plans.size(); ++p) {
    const StateStage& stage = state.stages[static_cast<size_t>(match.stages[p])];
    const bool row = sketch.plans[p].role == StageRole::kRowReduction;
    if (sketch.plans[p].role != StageRole::kRows && row != reduces_over_threads(stage))
      return false;
  }
  return true;
}

bool on_threads(const State& state) {
  return std::ranges::any_of(state.stages, [](const StateStage& stage) {
    return std::ranges::any_of(stage.iters, [](const StateIterator& iter) {
      return iter.annotation == Annotation::kThreadX;
    });
  });
}

}  // namespace

std::shared_ptr<const OwnSpace> OwnPoints::space_of(
    const std::shared_ptr<const Structure>& structure, std::span<const int64_t> hardware) {
  const std::pair key(structure.get(), std::vector<int64_t>(hardware.begin(), hardware.end()));
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const OwnSpace>& entry = spaces_[key];
  if (entry) return entry;
  Target target;
  target.backend = Backend::kCuda;
  target.gpu = limits_of(hardware);
  auto made = std::make_shared<OwnSpace>();
  made->structure = structure;
  made->space = make_space(make_task(structure->task, target, ""));
  for (size_t s = 0; s < made->space.sketches.size(); ++s) {
    const Sketch& sketch = made->space.sketches[s];
    if (sketch.form != "direct") continue;
    std::vector<int> stages = match_stages(sketch, *structure);
    if (!stages.empty()) made->matches.push_back({SketchId{static_cast<int32_t>(s)}, stages});
  }
  entry = std::move(made);
  return entry;
}

Result<Candidate> OwnPoints::find(const ReplayNest& nest, std::span<const int64_t> hardware) {
  if (!on_threads(nest.state)) return Error("the loops of a CPU");
  const std::shared_ptr<const OwnSpace> own = space_of(nest.structure, hardware);
  for (const OwnSpace::Match& match : own->matches) {
    if (same_rows(own->space[match.sketch], match, nest.state))
      return PointReader(*own, match, nest.state).read();
  }
  return Error(own->matches.empty() ? "other stages" : "other reductions across threads");
}

}  // namespace pruner::ansor
