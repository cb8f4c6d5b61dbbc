#include <algorithm>

#include "space/sketch_rule.h"

namespace pruner {

int lanes_for(int64_t extent, DType dtype, const Target& target) {
  const int native = target.lanes(std::max<int64_t>(dtype_bytes(dtype), 4));
  int lanes = 1;
  while (lanes < native && lanes < extent) lanes *= 2;
  return lanes;
}

int vector_axis(const Stage& stage) {
  for (int a = static_cast<int>(stage.axes.size()) - 1; a >= 0; --a) {
    if (stage.axes[a].extent > 1) return a;
  }
  return -1;
}

bool reduces_rows(const ComputeDag& dag, StageId id) {
  const Stage& stage = dag[id];
  if (!stage.is_reduction() || needs_multi_level_tiling(dag, id)) return false;
  const VarId last{static_cast<int32_t>(stage.axes.size() + stage.reduce_axes.size()) - 1};
  const int vector = vector_axis(stage);
  for (const Access& access : accesses_of(dag, id)) {
    if (access.indices.empty() || !access.indices.back()) continue;
    const bool along_rows = access.indices.back()->coefficient(last) == 1;
    const bool along_vector = vector >= 0 && access.indices.back()->coefficient(VarId{vector}) != 0;
    if (along_rows && !along_vector) return true;
  }
  return false;
}

// The root whose cluster alone reads the cluster of a contraction.
static StageId only_reader(const ComputeDag& dag, const Clusters& clusters, StageId root) {
  StageId found;
  if (!clusters.anchor_of[root].valid() || dag[root].output) return found;
  if (dag[clusters.anchor_of[root]].tag == kSplitTag) return found;
  for (const StageId reader : dag.consumers(root)) {
    const StageId other = clusters.root_of[reader];
    if (found.valid() && found != other) return {};
    if (clusters.root_only[reader] || !dag[reader].unrolled.empty()) return {};
    found = other;
  }
  return dag[found].unrolled.empty() ? found : StageId{};
}

Clusters find_clusters(const ComputeDag& dag) {
  Clusters clusters;
  const size_t n = static_cast<size_t>(dag.size());
  clusters.root_of.resize(n);
  clusters.anchor_of.resize(n);
  clusters.root_only.resize(n, false);
  for (int s = dag.size() - 1; s >= 0; --s) {
    const StageId id{s};
    if (dag[id].is_placeholder()) continue;
    const std::vector<StageId> readers = dag.consumers(id);
    // A contraction's follower is a root of its own: its tile decides the loops.
    bool follows_contraction = false;
    for (const StageId producer : dag.producers(id)) {
      follows_contraction =
          follows_contraction ||
          (dag[producer].is_reduction() && !dag[id].is_reduction() &&
           needs_multi_level_tiling(dag, producer) && reads_elementwise(dag, id, producer));
    }
    // So is a transform that no other transform reads.
    const bool transform = !dag[id].unrolled.empty() && !readers.empty() &&
                           (readers.size() > 1 || dag[readers[0]].unrolled.empty());
    if (dag[id].output || readers.empty() || follows_contraction || transform) {
      clusters.root_of[id] = id;
      continue;
    }
    clusters.root_of[id] = clusters.root_of[readers[0]];
    if (dag[id].tag == kKeptTag) {
      for (const StageId reader : readers)
        clusters.root_of[id] = std::min(clusters.root_of[id], clusters.root_of[reader]);
      continue;
    }
    for (const StageId reader : readers) {
      if (clusters.root_of[reader] != clusters.root_of[id]) clusters.root_only[id] = true;
    }
    for (const StageId reader : readers) {
      if (clusters.root_only[reader]) clusters.root_only[id] = true;
    }
  }
  for (int s = 0; s < dag.size(); ++s) {
    const StageId id{s};
    if (!dag[id].is_reduction() || clusters.root_only[id]) continue;
    const StageId root = clusters.root_of[id];
    const std::vector<StageId> readers = dag.consumers(id);
    if (readers.size() != 1 || readers[0] != root || !reads_elementwise(dag, root, id)) continue;
    StageId& anchor = clusters.anchor_of[root];
    const bool contraction = needs_multi_level_tiling(dag, id);
    const bool windowed = !reduces_rows(dag, id);
    if (contraction || (windowed && !anchor.valid())) anchor = id;
  }
  clusters.inside_of.resize(n);
  for (int s = 0; s < dag.size(); ++s) {
    const StageId id{s};
    if (clusters.root_of[id] == id) clusters.inside_of[id] = only_reader(dag, clusters, id);
  }
  return clusters;
}

}  // namespace pruner
