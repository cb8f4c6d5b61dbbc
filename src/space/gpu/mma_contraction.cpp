#include "space/gpu/mma_contraction.h"

#include "space/access.h"
#include "space/dot.h"
#include "space/sketch_rule.h"

namespace pruner {
namespace {

// Whether an index moves by iterator `k`, one by one, and but for that only from one product to the
// next.
bool goes_along(const std::optional<Affine>& index, int row, int other, int k) {
  return index && index->constant == 0 && index->coefficient(VarId{k}) == 1 &&
         index->coefficient(VarId{row}) == 0 && index->coefficient(VarId{other}) == 0;
}

// Whether an access lies in rows along iterator `row` and terms along `k`, and how; nothing else
// moves by these or by the other operand's rows.
std::optional<MmaOperand> operand_of(const Access& access, int row, int other, int k) {
  const size_t rank = access.indices.size();
  if (rank < 2) return std::nullopt;
  for (size_t d = 0; d + 2 < rank; ++d) {
    if (!access.indices[d]) return std::nullopt;
    for (const int moving : {row, other, k})
      if (access.indices[d]->coefficient(VarId{moving}) != 0) return std::nullopt;
  }
  const std::optional<Affine>&outer = access.indices[rank - 2], &inner = access.indices[rank - 1];
  if (lone_iterator(outer) == row && goes_along(inner, row, other, k))
    return MmaOperand{access.producer, false};
  if (goes_along(outer, row, other, k) && lone_iterator(inner) == row)
    return MmaOperand{access.producer, true};
  return std::nullopt;
}

// Instructions of which half the rows or columns are padding are still faster than none.
bool half_filled(int64_t extent, int64_t of_instruction) { return 2 * extent >= of_instruction; }

}  // namespace

std::optional<MmaContraction> find_mma(const ComputeDag& dag,
                                       StageId id,
                                       std::span<const int64_t> shape,
                                       const Gpu& gpu) {
  const Stage& stage = dag[id];
  const bool tf32 = is_tf32_product(stage.body);
  if (stage.combiner != Combiner::kSum || (!tf32 && !narrow_product(stage.body)))
    return std::nullopt;
  const int n = last_longer(stage.axes, static_cast<int>(stage.axes.size()));
  const int m = last_longer(stage.axes, n);
  const int spatial = static_cast<int>(stage.axes.size());
  const int k = last_longer(stage.reduce_axes, static_cast<int>(stage.reduce_axes.size()));
  if (m < 0 || k < 0 || last_longer(stage.reduce_axes, k) >= 0) return std::nullopt;
  std::optional<MmaOperand> a, b;
  for (const Access& access : accesses_of(dag, id)) {
    if (const auto found = operand_of(access, m, n, spatial + k)) a = found;
    if (const auto found = operand_of(access, n, m, spatial + k)) b = found;
  }
  if (!a || !b || a->stage == b->stage) return std::nullopt;
  const MmaInstruction* row =
      find_mma_instruction(mma_shape(shape), dag[a->stage].dtype, dag[b->stage].dtype, stage.dtype);
  if (row == nullptr || !row->is_on(compute_capability(gpu))) return std::nullopt;
  if (gpu.tensor_rates.*row->rate <= 0) return std::nullopt;
  // A unit that rounds is for products that say so.
  if ((row->a == DType::kFloat32) != tf32) return std::nullopt;
  // A group reads terms that go from line to line if they are of 16 bits.
  const bool narrow = dtype_bytes(row->a) == 2;
  if (row->of_group() && !narrow && (a->terms_first || b->terms_first)) return std::nullopt;
  if (!half_filled(stage.axes[static_cast<size_t>(m)].extent, row->m) ||
      !half_filled(stage.axes[static_cast<size_t>(n)].extent, row->n) ||
      !wastes_little(stage.reduce_axes[static_cast<size_t>(k)].extent, row->k))
    return std::nullopt;
  return MmaContraction{row, *a, *b, m, n, spatial + k};
}

// Whether each element of a stage becomes one of the first operand of a contraction by the
// instruction, which its block can then compute for itself (lower/gpu_held.cpp).
static bool makes_first_operand(const ComputeDag& dag,
                                StageId id,
                                std::span<const int64_t> shape,
                                const Gpu& gpu) {
  const int64_t elements = dag[id].num_elements();
  while (!dag[id].output) {
    const std::vector<StageId> readers = dag.consumers(id);
    if (readers.size() != 1 || dag[id].num_elements() > elements) return false;
    if (dag[readers[0]].is_reduction()) {
      const auto mma = find_mma(dag, readers[0], shape, gpu);
      return mma && mma->a.stage == id && !mma->a.terms_first && dtype_bytes(dag[id].dtype) == 2;
    }
    id = readers[0];
  }
  return false;
}

bool contracts_by_mma(const ComputeDag& dag, std::span<const int64_t> shape, const Gpu& gpu) {
  bool some = false;
  for (int s = 0; s < dag.size(); ++s) {
    const StageId id{s};
    if (!dag[id].is_reduction() || !needs_multi_level_tiling(dag, id)) continue;
    const bool contracts = find_mma(dag, id, shape, gpu).has_value();
    if (!contracts && !makes_first_operand(dag, id, shape, gpu)) return false;
    some = some || contracts;
  }
  return some;
}

}  // namespace pruner
