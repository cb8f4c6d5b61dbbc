// Inlines cheap stages into their readers (Ansor's always-inline, widened to injective stages). A
// stage stays when its work would be repeated: read by a contraction, or costly (a call, a guard)
// and read by a reduction or more than once.
#include "space/dag_edit.h"
#include "space/sketch_rule.h"

namespace pruner {

static bool should_inline(const ComputeDag& dag, StageId id) {
  const Stage& stage = dag[id];
  if (stage.is_placeholder() || stage.output || stage.is_reduction()) return false;
  const bool costly = has_expensive_call(stage.body) || has_select(stage.body);
  const std::vector<StageId> readers = dag.consumers(id);
  if (!stage.unrolled.empty()) {  // its reader is to be computed in such tiles too
    return readers.size() == 1 && reads_elementwise(dag, readers[0], id);
  }
  if (costly && readers.size() > 1) return false;
  for (const StageId reader : readers) {
    if (needs_multi_level_tiling(dag, reader)) return false;
    if (costly && dag[reader].is_reduction()) return false;
  }
  return true;
}

// A stage that only renames its input's elements: "PaddedInput[i, j] = placeholder[i, j]".
static bool is_identity(const ComputeDag& dag, StageId id) {
  const Stage& stage = dag[id];
  if (stage.is_placeholder() || stage.output) return false;
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
