// Inlines cheap stages into their readers (Ansor's always-inline, widened to injective stages). A
// stage stays when its work would be repeated: read by a contraction, or costly (a call, a guard)
// and read by a reduction or more than once, or when its readers would become too large.
#include <algorithm>

#include "space/access.h"
#include "space/dag_edit.h"
#include "space/sketch_rule.h"

namespace pruner {

// Padding that a window reads, a few times each element and at places that are all its own: a copy
// would cost as much as the window. (A convolution reads each element for every output channel.)
static bool is_padding_of_window(const ComputeDag& dag, StageId id, StageId reader) {
  constexpr int64_t kMostTaps = 64;
  const Stage& window = dag[reader];
  const Select* guard = as<Select>(dag[id].body);
  if (guard == nullptr || as<Load>(guard->a) == nullptr || as<Load>(guard->b) != nullptr)
    return false;
  if (!window.is_reduction() || window.reduce_size() > kMostTaps) return false;
  return reads_at_own_places(dag, reader, id);
}

// The end of a contraction's epilogue, if its readers are reductions: there it is done once an
// element, on the contraction's tile.
static bool ends_epilogue(const ComputeDag& dag, StageId id) {
  const auto reduces = [&](StageId reader) { return dag[reader].is_reduction(); };
  if (!std::ranges::any_of(dag.consumers(id), reduces)) return false;
  std::vector<StageId> open = {id};
  while (!open.empty()) {
    const StageId at = open.back();
    open.pop_back();
    for (const StageId producer : dag.producers(at)) {
      if (dag[producer].is_placeholder() || !reads_elementwise(dag, at, producer)) continue;
      if (dag[producer].is_reduction() && needs_multi_level_tiling(dag, producer)) return true;
      if (!dag[producer].is_reduction()) open.push_back(producer);
    }
  }
  return false;
}

static bool should_inline(const ComputeDag& dag, StageId id) {
  const Stage& stage = dag[id];
  if (stage.is_placeholder() || stage.output || stage.is_reduction()) return false;
  const bool costly = has_expensive_call(stage.body) || has_select(stage.body);
  const std::vector<StageId> readers = dag.consumers(id);
  if (!stage.unrolled.empty()) {  // its reader is to be computed in such tiles too
    return readers.size() == 1 && reads_elementwise(dag, readers[0], id);
  }
  if (costly && readers.size() > 1) return false;
  if (ends_epilogue(dag, id) || !fits_readers(dag, id)) return false;
  for (const StageId reader : readers) {
    if (is_padding_of_window(dag, id, reader)) continue;
    if (needs_multi_level_tiling(dag, reader)) return false;
    if (costly && dag[reader].is_reduction()) return false;
  }
  return true;
}

// A stage that only renames its input's elements: "PaddedInput[i, j] = placeholder[i, j]". A copy
// that a form asks for does more: it will lie in another order.
static bool is_identity(const ComputeDag& dag, StageId id) {
  const Stage& stage = dag[id];
  if (stage.is_placeholder() || stage.output || stage.tag == kCacheReadTag) return false;
  const Load* read = as<Load>(stage.body);
  return read != nullptr && stage.dtype == dag[read->tensor].dtype &&
         reads_elementwise(dag, id, read->tensor);
}

static void apply(ComputeDag& dag, const Target&) {
  for (int s = dag.size() - 1; s >= 0; --s) {
    if (is_identity(dag, StageId{s}) || should_inline(dag, StageId{s}))
      inline_stage(dag, StageId{s});
  }
}

const DagRule kInline = {"inline", apply};

}  // namespace pruner
