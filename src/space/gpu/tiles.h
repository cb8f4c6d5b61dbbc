// What the decisions of a GPU candidate come to: tile sizes, and the boxes of operands that a block
// fetches. Shared by the loop nest, the limits and the sampler.
#pragma once

#include <array>

#include "space/space.h"

namespace pruner {

inline int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Extents of the part of `producer` that `reader` reads while its iterators run over `spans`.
std::vector<int64_t> read_box(const Sketch& sketch,
                              StageId producer,
                              StageId reader,
                              std::span<const int64_t> spans);

/// The decisions of one candidate by name.
class GpuTiles {
 public:
  GpuTiles(const Sketch& sketch, const Candidate& candidate)
      : sketch_(sketch), decisions_(candidate.decisions) {}

  int64_t value(DecisionRef ref, int64_t fixed = 1) const {
    return ref == kFixed ? fixed : decisions_[static_cast<size_t>(ref)];
  }
  int64_t vthreads(const GpuAxisPlan& a) const { return value(a.vthreads); }
  int64_t threads(const GpuAxisPlan& a) const { return value(a.threads); }
  int64_t outer(const GpuAxisPlan& a) const { return value(a.outer); }
  int64_t inner(const GpuAxisPlan& a) const { return value(a.inner); }
  /// Elements of the axis in a block; of a reduce axis in a chunk.
  int64_t block(const GpuAxisPlan& a) const {
    return vthreads(a) * threads(a) * outer(a) * inner(a);
  }

  const StagePlan& plan(StageId id) const {
    return sketch_
        .plans[static_cast<size_t>(sketch_.tables->plan_of[static_cast<size_t>(id.value)])];
  }
  /// The contraction that a shared tile is fetched for.
  const StagePlan& reader_of(const StagePlan& shared) const {
    return plan(sketch_.tables->consumers[static_cast<size_t>(shared.stage.value)][0]);
  }
  /// How far the iterators of a contraction run in a block and a chunk.
  std::vector<int64_t> chunk_spans(const StagePlan& contraction) const;
  /// Threads of the kernel with this root.
  int64_t block_threads(const StagePlan& root) const;
  /// Extents of what a block fetches at a time.
  std::vector<int64_t> shared_box(const StagePlan& shared) const;

 private:
  const Sketch& sketch_;
  std::span<const int32_t> decisions_;
};

}  // namespace pruner
