// How a DAG is divided into GPU kernels, decided before its sketches are made (Ansor, section 3).
#pragma once

#include <vector>

#include "space/sketch_rule.h"

namespace pruner {

/// The role of a compute stage in a GPU's kernels.
struct KernelStage {
  const LoopStructure* structure = &kThreadElements;
  StageId root;  // root of the kernel; other stages accumulate or fetch for the root
  /// The stage whose elements need a reduction in the kernel of a contraction on tensor cores: the
  /// first operand in shared memory, which is held, or the root. Invalid for other stages.
  StageId needed_by = {};
  /// The first of two contractions that share their first operand and their root, if the stage is
  /// the second.
  StageId first_of_two = {};
};

/// Tag of a stage that the threads of a block fetch into shared memory.
inline constexpr const char* kSharedTag = "shared";

/// A DAG with the copies of operands and results that its kernels need, and the stages' roles.
struct Kernels {
  ComputeDag dag;
  IdMap<StageId, KernelStage> stages;  // one per stage; without meaning for placeholders
  /// Whether the rows of each kernel are numbered by the same axes, and the contractions of each
  /// pair have one root: else the DAG has no such kernels.
  bool agree = true;
};

/// One way of computing a DAG: the reductions named in `cross_thread` are each computed by all
/// threads of a row, the others by one thread an element, or in the tiles of `structure` when they
/// are contractions.
Kernels make_kernels(ComputeDag dag,
                     const std::vector<std::string>& cross_thread,
                     const Gpu& gpu,
                     const LoopStructure& structure = kBlockTile);

/// Leading axes that number the rows of a reduction: up to its last axis longer than 1.
int row_rank(const Stage& reduction);

/// Reductions that pay across threads (the test of Ansor's cross-thread reduction), by name.
std::vector<std::string> cross_thread_reductions(const ComputeDag& dag, const Gpu& gpu);

}  // namespace pruner
