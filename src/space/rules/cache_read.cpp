// Gives a contraction operand that is strided along the vector axis a copy in which it is
// contiguous (Ansor's cache read, used on CPUs as packing): a batched matmul with a transposed
// operand would gather in its innermost loop. Operands that may be packed ahead of time need none.
// The form packed-panels copies contiguous ones, too, where their rows meet in few sets of a cache
// (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008): the copy lies
// in the order of the register tiles (plan_anchor).
#include <algorithm>

#include "space/dag_edit.h"
#include "space/sketch_rule.h"

namespace pruner {

constexpr int64_t kPageBytes = 4096;  // rows so far apart share the sets of an L1 cache
constexpr int64_t kLeastRows = 64;    // rows of a product that reads a copied panel

// The dimension of `access` that the vector axis moves through; -1: none, or the access does not
// have the plain form in which dimensions can be exchanged.
static int vector_dim(const Access& access, int vector) {
  int dim = -1;
  for (int d = 0; d < std::ssize(access.indices); ++d) {
    if (!access.indices[d] && steps_past(access, d, vector)) continue;
    if (!access.indices[d]) return -1;
    if (access.indices[d]->coefficient(VarId{vector}) == 0) continue;
    if (dim >= 0) return -1;
    dim = d;
  }
  return dim;
}

// Elements from one place of a dimension to the next.
static int64_t stride_of(const Stage& operand, int dim) {
  int64_t stride = 1;
  for (int d = static_cast<int>(operand.axes.size()) - 1; d > dim; --d)
    stride *= operand.axes[d].extent;
  return stride;
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

// Puts a copy of what stage `s` reads by `access` before it; the stage is then s + 1.
//   copy[..., last, dim] = operand[..., dim, last]: the vectors' dimension goes last; of one in
//   blocks, copy[..., o, last, i] = operand[..., o * extent + i, last].
static void copy_operand(ComputeDag& dag, int s, const Access& access, int dim, int vector) {
  const Stage& reader = dag[StageId{s}];
  const int blocks = blocks_axis(reader, *access.indices[dim], vector);
  Stage copy = copy_stage(dag, access.producer, dag[access.producer].name + ".packed");
  copy.tag = kCacheReadTag;
  Iterator strided = copy.axes[dim];
  if (blocks < 0) {
    copy.axes.erase(copy.axes.begin() + dim);
  } else {
    const Iterator &block = reader.axes[blocks], &lane = reader.axes[vector];
    copy.axes[dim] = {strided.name + "_o", block.extent, block.open};
    strided = {strided.name + "_i", lane.extent, lane.open};
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
}

// Copies the first operand of each contraction whose vectors' dimension is `wanted`: a second one
// is rare and merely slow. Whether there was any.
static bool copy_operands(
    ComputeDag& dag,
    const std::function<bool(const Stage& reader, const Access&, int dim)>& wanted) {
  return rewrite_stages(dag, [&](StageId id) {
    const Stage& reader = dag[id];
    if (!reader.is_reduction() || !needs_multi_level_tiling(dag, id)) return false;
    const int vector = vector_axis(reader);
    if (vector < 0) return false;
    for (const Access& access : accesses_of(dag, id)) {
      const auto& free = reader.layout_free;
      if (std::ranges::find(free, access.producer) != free.end()) continue;
      const int dim = vector_dim(access, vector);
      if (dim < 0 || !wanted(reader, access, dim)) continue;
      copy_operand(dag, id.value, access, dim, vector);
      return true;
    }
    return false;
  });
}

static void apply(ComputeDag& dag, const Target&) {
  copy_operands(dag, [&](const Stage&, const Access& access, int dim) {
    return stride_of(dag[access.producer], dim) > 1;
  });
}

const DagRule kCacheRead = {"cache-read", apply};

// Copies operands that are inputs, read as they lie. A constant would be packed ahead of time, if
// it could be.
static bool copy_contiguous(ComputeDag& dag, const Target&) {
  return copy_operands(dag, [&](const Stage& reader, const Access& access, int dim) {
    const Stage& operand = dag[access.producer];
    if (!operand.is_placeholder() || operand.constant || dim < 1) return false;
    if (operand.dtype != DType::kFloat32) return false;  // instructions of pairs read other orders
    const int64_t row_bytes = stride_of(operand, dim - 1) * dtype_bytes(operand.dtype);
    return stride_of(operand, dim) == 1 && row_bytes % kPageBytes == 0 &&
           reader.num_elements() >= kLeastRows * operand.axes[dim].extent;
  });
}

const Form kPackedPanels = {"packed-panels", copy_contiguous, false};

}  // namespace pruner
