// Gives every contraction, and every reduction that is an output, a stage behind it that reads it
// element by element (Ansor's cache write): the reduction accumulates in registers or a local tile,
// and the reader writes the tile out. A fused epilogue already is such a reader.
#include "space/dag_edit.h"
#include "space/sketch_rule.h"

namespace pruner {

static bool has_follower(const ComputeDag& dag, StageId id) {
  const std::vector<StageId> readers = dag.consumers(id);
  return readers.size() == 1 && !dag[id].output && reads_elementwise(dag, readers[0], id);
}

static void apply(ComputeDag& dag, const Target&) {
  for (int s = 0; s < dag.size(); ++s) {
    const Stage& stage = dag[StageId{s}];
    if (!stage.is_reduction() || has_follower(dag, StageId{s})) continue;
    if (!stage.output && !needs_multi_level_tiling(dag, StageId{s})) continue;
    Stage copy = copy_stage(dag, StageId{s}, stage.name);
    copy.output = stage.output;
    dag[StageId{s}].output = false;
    dag[StageId{s}].name += ".local";
    insert_stage(dag, s + 1, std::move(copy));
    redirect(dag, StageId{s}, StageId{s + 1});
    ++s;
  }
}

const DagRule kCacheWrite = {"cache-write", apply};

}  // namespace pruner
