// The rules that make a task's sketches, in the order in which they run. DAG rules change stages
// (inline, cache read, cache write, rfactor); structure rules then each make one sketch of the
// result, where they apply (Ansor, section 4.1, with the CPU forms of the design). All of them run
// for each form of the task: other DAGs that compute the same.
#pragma once

#include <functional>

#include "space/plan.h"
#include "space/space.h"
#include "support/ceil_div.h"

namespace pruner {

struct Form {
  const char* name;
  /// Rewrites the task's DAG; false where it has no such form.
  bool (*apply)(ComputeDag& dag, const Target& target);
  bool gpu;  // there are GPU sketches of its DAG
  /// Whether the form is drawn for a task's DAG if no forms are asked for; null: always.
  bool (*drawn)(const ComputeDag& dag) = nullptr;
};

extern const Form kDirect, kSplitK, kWinograd2, kWinograd4, kBf16Parts2, kBf16Parts3, kImplicitGemm,
    kImplicitGemmSplitK, kKeyBlocks, kPackedPanels;
inline constexpr const Form* kForms[] = {&kDirect,
                                         &kSplitK,
                                         &kWinograd2,
                                         &kWinograd4,
                                         &kBf16Parts2,
                                         &kBf16Parts3,
                                         &kImplicitGemm,
                                         &kImplicitGemmSplitK,
                                         &kKeyBlocks,
                                         &kPackedPanels};

struct DagRule {
  const char* name;
  /// Applies the rule wherever it fits.
  void (*apply)(ComputeDag& dag, const Target& target);
};

extern const DagRule kInline, kCacheRead, kCacheWrite, kRfactor;
inline constexpr const DagRule* kDagRules[] = {&kInline, &kCacheRead, &kCacheWrite, &kRfactor};

/// Tiles that overlap recompute elements: they may compute this many times what they must.
inline constexpr double kMaxWaste = 1.25;

/// Whether tiles of `tile` elements reach little beyond an axis. If a tile wastes little, so does
/// each factor of the tile.
inline bool wastes_little(int64_t extent, int64_t tile) {
  const int64_t covered = ceil_div(extent, tile) * tile;
  return static_cast<double>(covered) <= kMaxWaste * static_cast<double>(extent);
}

/// Tile sizes of an axis up to `limit` that waste little, ascending.
std::vector<int32_t> tile_choices(int64_t extent, int64_t limit);

/// A form's sketches on a GPU with contractions of a structure (gpu/sketches.cpp).
std::vector<Sketch> gpu_sketches(const ComputeDag& dag,
                                 const Task& task,
                                 const Form& form,
                                 const LoopStructure& structure);

/// The sketch of attention as one kernel (gpu/attention_sketch.cpp); the DAG passes
/// has_attention_kernel().
Sketch attention_sketch(ComputeDag dag,
                        const Task& task,
                        const Form& form,
                        const LoopStructure& structure);

/// Width of the vector loop over an axis of `extent` elements: the target's lanes, or the power of
/// two that covers a shorter axis; 1 for an axis of one element.
int lanes_for(int64_t extent, DType dtype, const Target& target);

/// The axis that a stage is vectorised along: the last one longer than 1; -1: none.
int vector_axis(const Stage& stage);

/// A reduction whose data run along its last reduce axis, not along its vector axis: rows are
/// folded, so lanes must hold partial results (rfactor).
bool reduces_rows(const ComputeDag& dag, StageId stage);

/// Tag of a copy in which a contraction's operand is contiguous along its vectors.
inline constexpr const char* kCacheReadTag = "packed";

/// Tag of the stage that rfactor makes: partial results, one a lane.
inline constexpr const char* kRowPartTag = "rfactor";

/// Tag of the stage that split-K makes: partial sums, which the threads divide.
inline constexpr const char* kSplitTag = "split";

/// Tag of a stage that is computed in the loops of the first cluster that reads it, and kept for
/// the others.
inline constexpr const char* kKeptTag = "kept";

/// Tag of a stage that copies what a tile of a transform reads into registers.
inline constexpr const char* kTileTag = "tile";

/// How a DAG (after the DAG rules) is divided into stages that are computed together.
struct Clusters {
  IdMap<StageId, StageId> root_of;    // root of each stage; invalid for placeholders
  IdMap<StageId, StageId> anchor_of;  // anchor of each root stage; invalid: none
  IdMap<StageId, bool> root_only;     // stages that several clusters read, so computed at root
  IdMap<StageId, StageId> inside_of;  // root that may compute each root stage tile by tile
};
Clusters find_clusters(const ComputeDag& dag);

}  // namespace pruner
