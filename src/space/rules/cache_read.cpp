// Gives a contraction operand that is strided along the vector axis a copy in which it is
// contiguous (Ansor's cache read, used on CPUs as packing): a batched matmul with a transposed
// operand would gather in its innermost loop. Operands that may be packed ahead of time need none.
#include <algorithm>

#include "space/dag_edit.h"
#include "space/sketch_rule.h"

namespace pruner {

// The dimension of `access` that the vector axis moves through; -1 when it is the last one, or the
// access does not have the plain form in which dimensions can be exchanged.
static int strided_dim(const Stage& operand, const Access& access, int vector) {
  const int last = static_cast<int>(access.indices.size()) - 1;
  int dim = -1;
  int64_t stride = 1;  // of `dim`
  for (int d = 0; d <= last; ++d) {
    if (!access.indices[d] && steps_past(access, d, vector)) continue;
    if (!access.indices[d]) return -1;
    if (access.indices[d]->coefficient(VarId{vector}) == 0) continue;
    if (dim >= 0) return -1;
    dim = d;
  }
  for (int d = last; dim >= 0 && d > dim; --d) stride *= operand.axes[d].extent;
  return stride == 1 ? -1 : dim;
}

// The other axis that the reader goes along the dimension by, in steps of the vector axis' extent;
// -1: there is none.
static int blocks_axis(const Stage& reader, const Affine& index, int vector) {
  const bool two =
      index.terms.size() == 2 && index.constant == 0 && index.coefficient(VarId{vector}) == 1;
  for (const auto& [axis, coefficient] : index.terms) {
    if (two && axis.value != vector && coefficient == reader.axes[vector].extent &&
        axis.value < std::ssize(reader.axes))
      return axis.value;
  }
  return -1;
}

static void apply(ComputeDag& dag, const Target&) {
  for (int s = 0; s < dag.size(); ++s) {
    if (!dag[StageId{s}].is_reduction() || !needs_multi_level_tiling(dag, StageId{s})) continue;
    const int vector = vector_axis(dag[StageId{s}]);
    if (vector < 0) continue;
    for (const Access& access : accesses_of(dag, StageId{s})) {
      const Stage& reader = dag[StageId{s}];
      const auto& free = reader.layout_free;
      if (std::find(free.begin(), free.end(), access.producer) != free.end()) continue;
      const int dim = strided_dim(dag[access.producer], access, vector);
      if (dim < 0) continue;
      // copy[..., last, dim] = operand[..., dim, last]: the strided dimension goes last; of one in
      // blocks, copy[..., o, last, i] = operand[..., o * extent + i, last].
      const int blocks = blocks_axis(reader, *access.indices[dim], vector);
      Stage copy = copy_stage(dag, access.producer, dag[access.producer].name + ".packed");
      copy.tag = kCacheReadTag;
      Iterator strided = copy.axes[dim];
      if (blocks < 0) {
        copy.axes.erase(copy.axes.begin() + dim);
      } else {
        copy.axes[dim] = {strided.name + "_o", reader.axes[blocks].extent};
        strided = {strided.name + "_i", reader.axes[vector].extent};
      }
      copy.axes.push_back(strided);
      std::vector<Expr> place = iterator_vars(copy);
      const Expr inner = place.back();
      place.pop_back();
      if (blocks < 0) {
        place.insert(place.begin() + dim, inner);
      } else {
        place[dim] = place[dim] * Expr(strided.extent) + inner;
      }
      copy.body = load(access.producer, std::move(place), copy.dtype);
      const StageId operand = access.producer;
      insert_stage(dag, s, std::move(copy));
      const StageId packed{s};
      Stage& contraction = dag[StageId{s + 1}];
      const std::vector<Expr> vars = iterator_vars(contraction);
      contraction.body = rewrite(contraction.body, [&](const Expr& e) -> Expr {
        const Load* read = as<Load>(e);
        if (read == nullptr || read->tensor != operand) return Expr();
        std::vector<Expr> indices = read->indices;
        if (blocks < 0) {
          indices.push_back(indices[dim]);
          indices.erase(indices.begin() + dim);
        } else {
          indices[dim] = vars[blocks];
          indices.push_back(vars[vector]);
        }
        return load(packed, std::move(indices), e->dtype);
      });
      ++s;
      break;  // ids have shifted; a second strided operand is rare and merely slow
    }
  }
}

const DagRule kCacheRead = {"cache-read", apply};

}  // namespace pruner
