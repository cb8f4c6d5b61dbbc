// Split-K: a long contraction with few outputs is divided along its reduction, so that all threads
// have a part of it:
//   X.part[o, i, j] = sum_k A[i, o * W + k] B[o * W + k, j]      X[i, j] = sum_o X.part[o, i, j]
#include <algorithm>

#include "space/dag_edit.h"
#include "space/sketch_rule.h"

namespace pruner {
namespace {

constexpr int64_t kLeastReduction = 1024;
constexpr int64_t kMostVectorsAThread = 16;  // with more outputs there is work for all as it stands

constexpr int64_t kMostOutputsAnSm = 1024;
constexpr int64_t kMostPartsOnGpu = 16;

// Parts that the axis divides into evenly; 1: none.
int64_t parts_of(int64_t extent, int64_t most) {
  for (int64_t parts = most; parts > 1; --parts) {
    if (extent % parts == 0) return parts;
  }
  return 1;
}

void split(ComputeDag& dag, StageId id, size_t axis, int64_t parts) {
  Stage part = dag[id];
  part.name += ".part";
  part.output = false;
  part.tag = kSplitTag;
  const int64_t width = part.reduce_axes[axis].extent / parts;
  part.axes.insert(part.axes.begin(), {part.reduce_axes[axis].name + "_o", parts});
  part.reduce_axes[axis].extent = width;
  // Iterators of the old stage in those of the new one, which has one more in front.
  const std::vector<Expr> vars = iterator_vars(part);
  std::vector<Expr> values(vars.begin() + 1, vars.end());
  Expr& split_axis = values[part.axes.size() - 1 + axis];
  split_axis = vars[0] * Expr(width) + split_axis;
  part.body = substitute(dag[id].body, values);
  const Iterator outer = part.axes[0];
  insert_stage(dag, id.value, std::move(part));

  Stage& fold = dag[StageId{id.value + 1}];
  fold.reduce_axes = {outer};
  fold.layout_free.clear();
  std::vector<Expr> index = iterator_vars(fold);
  std::rotate(index.begin(), index.end() - 1, index.end());
  fold.body = load(id, std::move(index), fold.dtype);
}

bool apply(ComputeDag& dag, const Target& target) {
  return rewrite_stages(dag, [&](StageId id) {
    const Stage& stage = dag[id];
    if (stage.combiner != Combiner::kSum || !is_float(stage.dtype)) return false;
    if (!needs_multi_level_tiling(dag, id) || stage.axes.empty()) return false;
    const int64_t enough = target.is_gpu() ? kMostOutputsAnSm * target.gpu.sms
                                           : kMostVectorsAThread * target.lanes(4) * target.threads;
    if (stage.num_elements() > enough) return false;
    const auto longest = std::ranges::max_element(stage.reduce_axes, {}, &Iterator::extent);
    const int64_t parts =
        parts_of(longest->extent, target.is_gpu() ? kMostPartsOnGpu : 2 * target.threads);
    if (longest->extent < kLeastReduction || parts == 1) return false;
    split(dag, id, static_cast<size_t>(longest - stage.reduce_axes.begin()), parts);
    return true;
  });
}

}  // namespace

const Form kSplitK = {"split-k", apply, true};

const Form kImplicitGemmSplitK = {"implicit-gemm-split-k",
                                  [](ComputeDag& dag, const Target& target) {
                                    return kImplicitGemm.apply(dag, target) && apply(dag, target);
                                  },
                                  true};

}  // namespace pruner
