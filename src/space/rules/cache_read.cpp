// Gives a contraction operand that is strided along the vector axis a copy in which it is
// contiguous (Ansor's cache read, used on CPUs as packing): a batched matmul with a transposed
// operand would gather in its innermost loop. Operands that may be packed ahead of time need none.
#include <algorithm>

#include "space/dag_edit.h"
#include "space/sketch_rule.h"

namespace pruner {

// Whether dimension d is read at quotients of other axes, as the heads of keys by those of queries.
static bool steps_past(const Access& access, int d, int vector) {
  const std::optional<SteppedIndex>& index = access.stepped[d];
  return index && index->rest.coefficient(VarId{vector}) == 0 &&
         std::ranges::none_of(index->quotients, [&](const auto& q) { return q.axis == vector; });
}

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
      // copy[..., last, dim] = operand[..., dim, last]: the strided dimension goes last.
      const int last = static_cast<int>(access.indices.size()) - 1;
      Stage copy = copy_stage(dag, access.producer, dag[access.producer].name + ".packed");
      std::rotate(copy.axes.begin() + dim, copy.axes.begin() + dim + 1, copy.axes.end());
      std::vector<Expr> vars = iterator_vars(copy);
      std::rotate(vars.begin() + dim, vars.begin() + last, vars.end());
      copy.body = load(access.producer, vars, copy.dtype);
      const StageId operand = access.producer;
      insert_stage(dag, s, std::move(copy));
      const StageId packed{s};
      Stage& contraction = dag[StageId{s + 1}];
      contraction.body = rewrite(contraction.body, [&](const Expr& e) -> Expr {
        const Load* read = as<Load>(e);
        if (read == nullptr || read->tensor != operand) return Expr();
        std::vector<Expr> indices = read->indices;
        std::rotate(indices.begin() + dim, indices.begin() + dim + 1, indices.end());
        return load(packed, std::move(indices), e->dtype);
      });
      ++s;
      break;  // ids have shifted; a second strided operand is rare and merely slow
    }
  }
}

const DagRule kCacheRead = {"cache-read", apply};

}  // namespace pruner
