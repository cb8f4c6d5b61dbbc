// What a GPU candidate must keep to, and how candidates are drawn so that they do.
#include <algorithm>
#include <numeric>

#include "space/gpu/space.h"
#include "space/gpu/tiles.h"
#include "space/nearest.h"
#include "space/sketch_rule.h"

namespace pruner {
namespace {

constexpr int64_t kOtherRegisters = 32;  // of a thread, beside accumulators: addresses, operands
constexpr int64_t kMostBlocks = (int64_t{1} << 31) - 1;

// How far tiles may reach past the end. What is legal stays so for each factor of the tile.
bool wastes_little(int64_t extent, int64_t tile) {
  const int64_t covered = divide_up(extent, tile) * tile;
  return static_cast<double>(covered) <= kMaxWaste * static_cast<double>(extent);
}

class Limits {
 public:
  Limits(const Sketch& sketch, const Gpu& gpu, const Candidate& candidate)
      : sketch_(sketch), gpu_(gpu), tiles_(sketch, candidate) {}

  std::string problem() const {
    for (const StagePlan& plan : sketch_.plans) {
      std::string found = of(plan);
      if (!found.empty()) return found;
    }
    return "";
  }

  int64_t shared_bytes(const StagePlan& contraction) const {
    int64_t bytes = 0;
    for (const StagePlan& plan : sketch_.plans) {
      if (plan.role != StageRole::kSharedTile) continue;
      if (tiles_.reader_of(plan).stage == contraction.stage) bytes += buffer_bytes(plan);
    }
    return bytes * tiles_.value(contraction.double_buffer);
  }

 private:
  const Stage& stage(const StagePlan& plan) const { return sketch_.dag[plan.stage]; }
  int64_t buffer_bytes(const StagePlan& shared) const {
    const std::vector<int64_t> box = tiles_.shared_box(shared);
    return std::accumulate(
        box.begin(), box.end(), dtype_bytes(stage(shared).dtype), std::multiplies<>());
  }

  std::string of(const StagePlan& plan) const {
    switch (plan.role) {
      case StageRole::kBlockTile: return of_block_tile(plan);
      case StageRole::kThreadTile: return of_thread_tile(plan);
      case StageRole::kSharedTile: return of_shared_tile(plan);
      case StageRole::kElements: return of_elements(plan);
      case StageRole::kRows: return of_rows(plan);
      default: return "";
    }
  }

  std::string of_block_tile(const StagePlan& plan) const {
    int64_t threads = 1, vthreads = 1, accumulators = 1, blocks = 1;
    for (const GpuAxisPlan& a : plan.tiles) {
      const Iterator& axis = stage(plan).axes[static_cast<size_t>(a.axis)];
      if (!wastes_little(axis.extent, tiles_.block(a)))
        return "the tiles of " + stage(plan).name + "." + axis.name + " do not fit it";
      threads *= tiles_.threads(a);
      vthreads *= tiles_.vthreads(a);
      accumulators *= tiles_.vthreads(a) * tiles_.outer(a) * tiles_.inner(a);
      blocks *= divide_up(axis.extent, tiles_.block(a));
    }
    if (threads > gpu_.max_threads_per_block) return "too many threads in a block";
    if (threads < gpu_.warp_size && stage(plan).num_elements() > 2 * gpu_.warp_size)
      return "fewer threads than a warp";
    if (vthreads > gpu_.max_vthreads) return "too many virtual threads";
    if (accumulators + kOtherRegisters > gpu_.max_registers_per_thread)
      return "the accumulators exceed the registers";
    return blocks > kMostBlocks ? "too many blocks" : "";
  }

  std::string of_thread_tile(const StagePlan& plan) const {
    for (const GpuAxisPlan& a : plan.tiles) {
      const Iterator& axis =
          stage(plan).reduce_axes[static_cast<size_t>(a.axis) - stage(plan).axes.size()];
      if (!wastes_little(axis.extent, tiles_.block(a)))
        return "the tiles of " + stage(plan).name + "." + axis.name + " do not fit it";
    }
    return shared_bytes(plan) > gpu_.shared_bytes_per_block ? "too much shared memory" : "";
  }

  std::string of_shared_tile(const StagePlan& plan) const {
    return tiles_.shared_box(plan).back() % tiles_.value(plan.vectors) != 0
               ? "vectors do not divide what is fetched of " + stage(plan).name
               : "";
  }

  std::string of_elements(const StagePlan& plan) const {
    const int64_t round = tiles_.value(plan.threads) * tiles_.value(plan.elements);
    return divide_up(stage(plan).num_elements(), round) > kMostBlocks ? "too many blocks" : "";
  }

  std::string of_rows(const StagePlan& plan) const {
    const int64_t threads = tiles_.block_threads(plan);
    if (threads > gpu_.max_threads_per_block) return "too many threads in a block";
    if (threads < gpu_.warp_size) return "fewer threads than a warp";
    int64_t bytes = 0;  // a partial result a thread
    for (const StagePlan& other : sketch_.plans) {
      if (other.role != StageRole::kRowReduction || other.root != plan.stage) continue;
      bytes += threads * dtype_bytes(stage(other).dtype);
    }
    return bytes > gpu_.shared_bytes_per_block ? "too much shared memory" : "";
  }

  const Sketch& sketch_;
  const Gpu& gpu_;
  const GpuTiles tiles_;
};

/// Makes a candidate within the limits: by chance, or near to what is wanted.
class Drawer {
 public:
  Drawer(const Sketch& sketch, const Gpu& gpu, Rng& rng) : sketch_(sketch), gpu_(gpu), rng_(&rng) {}
  Drawer(const Sketch& sketch, const Gpu& gpu, std::span<const double> wanted)
      : sketch_(sketch), gpu_(gpu), wanted_(wanted.begin(), wanted.end()) {}

  Candidate draw(SketchId id) {
    candidate_.sketch = id;
    for (size_t i = 0; i < sketch_.decisions.size(); ++i)
      candidate_.decisions.push_back(choose(i, sketch_.decisions[i].choices));
    for (const StagePlan& plan : sketch_.plans) {
      if (plan.role == StageRole::kBlockTile) draw_block_tile(plan);
      if (plan.role == StageRole::kRows) draw_rows(plan);
    }
    for (const StagePlan& plan : sketch_.plans) {
      if (plan.role == StageRole::kThreadTile) draw_thread_tile(plan);
    }
    for (const StagePlan& plan : sketch_.plans) {
      if (plan.role == StageRole::kSharedTile) draw_vectors(plan);
    }
    return std::move(candidate_);
  }

 private:
  size_t below(size_t n) { return static_cast<size_t>(rng_->below(static_cast<int64_t>(n))); }

  int32_t choose(size_t decision, const std::vector<int32_t>& from) {
    if (rng_ != nullptr) return from[below(from.size())];
    const double wish = wanted_[decision];
    if (wish < 0) return from.front();
    return *std::ranges::min_element(from, {}, [&](int32_t choice) {
      return choice_distance(sketch_.decisions[decision], wish, choice);
    });
  }
  int32_t& decision(DecisionRef ref) { return candidate_.decisions[static_cast<size_t>(ref)]; }
  const std::vector<int32_t>& choices(DecisionRef ref) const {
    return sketch_.decisions[static_cast<size_t>(ref)].choices;
  }

  // A choice that `fits` accepts; the smallest when none does.
  template <typename Fits>
  int64_t draw(DecisionRef ref, const Fits& fits) {
    if (ref == kFixed) return 1;
    std::vector<int32_t> fitting;
    for (const int32_t choice : choices(ref)) {
      if (fits(choice)) fitting.push_back(choice);
    }
    return decision(ref) =
               fitting.empty() ? choices(ref).front() : choose(static_cast<size_t>(ref), fitting);
  }

  template <typename T>
  void shuffle(std::vector<T>& items) {
    if (rng_ == nullptr) return;
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

  // Axis after axis, each within what the axes before have left of threads, virtual threads,
  // registers and shared memory; a block that is too small for a warp is drawn again.
  void draw_block_tile(const StagePlan& plan) {
    const bool small = sketch_.dag[plan.stage].num_elements() <= 2 * gpu_.warp_size;
    for (int attempt = 0; attempt < 64; ++attempt) {
      left_ = {gpu_.max_threads_per_block,
               gpu_.max_vthreads,
               gpu_.max_registers_per_thread - kOtherRegisters};
      std::vector<const GpuAxisPlan*> axes;
      for (const GpuAxisPlan& a : plan.tiles) {
        axes.push_back(&a);
        for (const DecisionRef level : {a.vthreads, a.threads, a.outer, a.inner}) make_first(level);
      }
      shuffle(axes);
      for (const GpuAxisPlan* a : axes) draw_axis(plan, *a);
      const int64_t used = GpuTiles(sketch_, candidate_).block_threads(plan);
      if (small || used >= gpu_.warp_size) return;
      if (rng_ == nullptr) want_more_threads(plan);
    }
  }

  // Twice the threads of an axis, from its largest tile or else from the blocks of the longest.
  void want_more_threads(const StagePlan& plan) {
    DecisionRef threads = kFixed, from = kFixed;
    double most = 1;
    for (const GpuAxisPlan& a : plan.tiles) {
      for (const DecisionRef level : {a.inner, a.outer, a.vthreads}) {
        if (a.threads == kFixed || level == kFixed || decision(level) <= most) continue;
        most = decision(level);
        threads = a.threads;
        from = level;
      }
    }
    double rest = 0;
    for (const GpuAxisPlan& a : plan.tiles) {
      if (from != kFixed || a.threads == kFixed) continue;
      const double blocks = static_cast<double>(choices(a.threads).back()) / decision(a.threads);
      if (blocks <= rest) continue;
      rest = blocks;
      threads = a.threads;
    }
    if (threads == kFixed) return;
    if (from != kFixed) wanted_[static_cast<size_t>(from)] = decision(from) / 2.0;
    double& wish = wanted_[static_cast<size_t>(threads)];
    wish = 2 * std::max(wish, static_cast<double>(decision(threads)));
  }

  // What the block tile may still take.
  struct Left {
    int64_t threads = 0, vthreads = 0, registers = 0;
  };

  void draw_axis(const StagePlan& plan, const GpuAxisPlan& a) {
    const int64_t extent = sketch_.dag[plan.stage].axes[static_cast<size_t>(a.axis)].extent;
    int64_t tile = 1;
    std::vector<DecisionRef> levels = {a.vthreads, a.threads, a.outer, a.inner};
    shuffle(levels);
    for (const DecisionRef level : levels) {
      int64_t most = level == a.threads    ? left_.threads
                     : level == a.vthreads ? std::min(left_.vthreads, left_.registers)
                                           : left_.registers;
      const auto fits = [&](int64_t v) { return v <= most && wastes_little(extent, tile * v); };
      int64_t value = draw(level, fits);
      while (value > 1 && !smallest_chunk_fits(plan)) {
        most = value - 1;
        value = draw(level, fits);
      }
      tile *= value;
      (level == a.threads ? left_.threads : left_.registers) /= value;
      if (level == a.vthreads) left_.vthreads /= value;
    }
  }

  bool fits_shared(const StagePlan& contraction) const {
    const int64_t bytes = Limits(sketch_, gpu_, candidate_).shared_bytes(contraction);
    return bytes <= gpu_.shared_bytes_per_block;
  }

  void make_first(DecisionRef ref) {
    if (ref != kFixed) decision(ref) = choices(ref).front();
  }
  void make_smallest(const StagePlan& contraction) {
    for (const GpuAxisPlan& a : contraction.tiles) {
      make_first(a.outer);
      make_first(a.inner);
    }
  }

  // With one buffer, so that two don't make large blocks rare.
  bool smallest_chunk_fits(const StagePlan& root) {
    for (const StagePlan& plan : sketch_.plans) {
      if (plan.role != StageRole::kThreadTile || plan.root != root.stage) continue;
      make_smallest(plan);
      const int32_t buffers = std::exchange(decision(plan.double_buffer), 1);
      const bool fits = fits_shared(plan);
      decision(plan.double_buffer) = buffers;
      if (!fits) return false;
    }
    return true;
  }

  // Chunks of the reduction that the shared memory holds.
  void draw_thread_tile(const StagePlan& plan) {
    const Stage& stage = sketch_.dag[plan.stage];
    make_smallest(plan);
    if (!fits_shared(plan)) decision(plan.double_buffer) = 1;
    std::vector<const GpuAxisPlan*> axes;
    for (const GpuAxisPlan& a : plan.tiles) axes.push_back(&a);
    shuffle(axes);
    for (const GpuAxisPlan* a : axes) {
      const int64_t extent =
          stage.reduce_axes[static_cast<size_t>(a->axis) - stage.axes.size()].extent;
      int64_t tile = 1;
      std::vector<DecisionRef> levels = {a->outer, a->inner};
      shuffle(levels);
      for (const DecisionRef level : levels) {
        tile *= draw(level, [&](int64_t v) {
          if (!wastes_little(extent, tile * v)) return false;
          const int32_t before = std::exchange(decision(level), static_cast<int32_t>(v));
          const bool fit = fits_shared(plan);
          decision(level) = before;
          return fit;
        });
      }
    }
  }

  void draw_vectors(const StagePlan& plan) {
    const int64_t contiguous = GpuTiles(sketch_, candidate_).shared_box(plan).back();
    draw(plan.vectors, [&](int64_t v) { return contiguous % v == 0; });
  }

  void draw_rows(const StagePlan& plan) {
    const int64_t threads = draw(plan.threads, [](int64_t) { return true; });
    draw(plan.elements, [&](int64_t rows) {
      return threads * rows <= gpu_.max_threads_per_block && threads * rows >= gpu_.warp_size;
    });
  }

  const Sketch& sketch_;
  const Gpu& gpu_;
  Rng* rng_ = nullptr;          // by chance
  std::vector<double> wanted_;  // or by wish, a value for each decision
  Left left_;
  Candidate candidate_;
};

}  // namespace

std::string gpu_problem(const Sketch& sketch, const Gpu& gpu, const Candidate& candidate) {
  return Limits(sketch, gpu, candidate).problem();
}

Candidate draw_gpu(const Sketch& sketch, SketchId id, const Gpu& gpu, Rng& rng) {
  return Drawer(sketch, gpu, rng).draw(id);
}

Candidate nearest_on_gpu(const Sketch& sketch,
                         SketchId id,
                         const Gpu& gpu,
                         std::span<const double> wanted) {
  return Drawer(sketch, gpu, wanted).draw(id);
}

}  // namespace pruner
