// Groups of four warps multiply by instructions that read their factors from shared memory
// (space/mma.h, space/matrix_lines.h), and go on while the products are on their way.
#include <algorithm>

#include "lower/gpu_lowering.h"
#include "space/matrix_lines.h"

namespace pruner {

// Lines are as long as divides the terms, or a group's rows, up to what an instruction reads.
void GpuLowering::lay_in_lines(WarpOperand& operand, const Expr& first, int64_t rows) const {
  const int64_t bytes = dtype_bytes(dag_[operand.fetch.stage].dtype);
  const int64_t box = group_line_rows(operand.terms_first ? rows : operand.width(), bytes);
  operand.of_group = first;
  operand.box = box < operand.width() ? box : 0;
}

// A group's instruction takes the first bits of its factors; products are of rounded ones. Each
// thread has waited for its own copies, and rounds these.
Stmt GpuLowering::round_copied(const WarpOperand& operand, const CopiedBox& box) {
  const Values start = simple(region_start(nest_, operand.fetch.stage, box.reader, box.values));
  const int64_t together = std::max<int64_t>(copied_run(operand, start), 1);
  return each_copied_run(operand, together, [&](const Expr& line, const Expr& at) {
    return vector(static_cast<int>(together), [&](const Expr& lane) {
      Values place = shared_place(operand, box.slot, line, at);
      place.back() = place.back() + lane;
      return make_stmt(
          Store{operand.shared, place, call(Intrinsic::kTf32, {load_of(operand.shared, place)})});
    });
  });
}

ElementPlace GpuLowering::matrix_place(const WarpOperand& operand,
                                       const Expr& slot,
                                       const Expr& along,
                                       const Expr& term) const {
  const Expr first = operand.of_group + along;
  return {operand.shared,
          operand.terms_first ? shared_place(operand, slot, term, first)
                              : shared_place(operand, slot, first, term)};
}

Stmt GpuLowering::begin_products(
    const WarpTile& tile,
    const Expr& slot,
    const std::function<ElementPlace(const Expr& i, const Expr& step)>& first_factor) {
  const MmaInstruction& row = *tile.contraction.instruction;
  const auto product = [&](const WarpTile& of, const Expr& i, const Expr& step) {
    return make_stmt(GroupMma{&row,
                              {of.sums, {i, Expr(0), Expr(0)}},
                              first_factor(i, step),
                              matrix_place(of.b, slot, Expr(0), step * Expr(row.k)),
                              static_cast<int>(of.b.fragments * row.n),
                              of.a.terms_first,
                              of.b.terms_first});
  };
  const Stmt products = unrolled(tile.steps, [&](const Expr& step) {
    return unrolled(tile.a.fragments, [&](const Expr& i) {
      const Stmt first = product(tile, i, step);
      return tile.second ? block({first, product(*tile.second, i, step)}) : first;
    });
  });
  return block({make_stmt(GroupFence{}), products, make_stmt(GroupCommit{})});
}

// Fences order the copies, and what was done with the sums, before the products. Those of the chunk
// before may go on; no others, since the next copy takes their place.
Stmt GpuLowering::multiply_by_group(const WarpTile& tile,
                                    const ChunkPlace& a,
                                    const Expr& slot_b,
                                    int left) {
  const MmaInstruction& row = *tile.contraction.instruction;
  const auto first_factor = [&](const Expr& i, const Expr& step) {
    return matrix_place(tile.a, a.slot, i * Expr(row.m), (a.first_step + step) * Expr(row.k));
  };
  return block({begin_products(tile, slot_b, first_factor), make_stmt(GroupWait{left})});
}

}  // namespace pruner
