// Ansor's loop state, made by applying a record's steps to a DAG: stages with their iterators, how
// these came out of the axes, where each stage is computed. Whole numbers only: no expression is
// touched, and extents that depend on the place of a stage are open until bounds are inferred.
//
// A step that no reference could have written (a stage that is not there, a factor of 0) is an
// error that names the step.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ansor/steps.h"
#include "tensor/compute_dag.h"

namespace pruner::ansor {

/// One iterator of a stage: an axis, or what a split or fuse made.
struct StateIterator {
  int64_t extent = 0;  // the whole of an axis; other iterators get theirs when bounds are inferred
  bool reduce = false;
  Annotation annotation = Annotation::kNone;
  int64_t auto_unroll = -1;               // pragma auto_unroll_max_step; -1: none
  std::vector<std::string> pragmas = {};  // names of the other pragmas
};

/// A split of `parent` into `outer` and `inner`, or a fusion of those two into `parent`.
struct Relation {
  bool fuse = false;
  int parent = 0, outer = 0, inner = 0;
  int64_t factor = 0;   // split: extent of the inner part, or of the outer one
  bool nparts = false;  // ... of the outer one
};

enum class ComputeAt : uint8_t { kRoot, kInlined, kIterator };

/// StorageScope says where the buffer of a stage lies; kAuto: the threads around the stage decide.
enum class StorageScope : int8_t { kAuto = -1, kGlobal, kShared, kWarp, kLocal };

struct StateStage {
  bool placeholder = false;
  int num_axes = 0;   // iterators [0, num_axes) are the spatial axes,
  int num_roots = 0;  // ... [num_axes, num_roots) the reduce axes
  std::vector<StateIterator> iters;
  std::vector<Relation> relations;  // in the order they were made
  std::vector<int> leaves;          // the loops, outer to inner
  ComputeAt compute_at = ComputeAt::kRoot;
  int at_stage = -1, at_iter = -1;
  StorageScope scope = StorageScope::kAuto;
  std::string scope_name;
  int align_iter = -1, align_factor = 0, align_offset = 0;
};

/// A step that changed the stages of the DAG, with what it needs to be repeated on one.
struct StageEdit {
  enum class Kind : uint8_t { kCacheRead, kCacheWrite, kRfactor };
  Kind kind;
  int stage;
  std::string scope;         // storage scope of a cache
  std::vector<int> readers;  // stages that read a kCacheRead copy
  // The members below describe a kRfactor: how the reduce axes became iterators, and which iterator
  // is the new axis.
  std::vector<Relation> relations = {};
  std::vector<StateIterator> iters = {};
  std::vector<int> reduce_leaves = {};  // reduce iterators that stay reduced
  int factor_iter = 0, factor_axis = 0;
};

struct State {
  std::vector<StateStage> stages;
  std::vector<StageEdit> edits;  // in order
};

Result<State> apply_steps(const ComputeDag& dag, std::span<const Step> steps);

/// Whether threads share a reduction of the stage.
bool reduces_over_threads(const StateStage& stage);
/// Whether there are reduce loops that no threads are bound to.
bool reduces_in_loops(const StateStage& stage);

/// How near to a thread the loop's index is: -1 for a plain loop, 0 for blocks, 1 for threads.
int thread_rank(Annotation annotation);

}  // namespace pruner::ansor
