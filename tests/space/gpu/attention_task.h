// Drawn attention of 16-bit operands, in every layout, for the tests of attention as one kernel.
#pragma once

#include "space/gpu/warp_space.h"
#include "support/rng.h"
#include "tensor/dag_builder.h"
#include "tensor/operator_dags.h"

namespace pruner {

/// Draws the extents, the layouts of operands, what queries and keys are made of, heads that share
/// keys, masks and biases. Operands
/// may have more heads than are read, as slices of one projection have. Each has at least
/// `fewest` queries.
inline Task drawn_attention(Rng& rng, const char* arch = "sm_80", int64_t fewest = 8) {
  const auto either = [&] { return rng.below(2) == 0; };
  const int64_t widths[] = {13, 16, 30, 32, 40, 64, 80};
  AttentionParams p;
  p.sharing = 1 + rng.below(3);
  p.heads = p.sharing * (1 + rng.below(2));
  p.scale = 0.25;
  p.causal = either();
  p.nan_is_zero = either();
  const int64_t batch = 1 + rng.below(2), queries = fewest + rng.below(60);
  const int64_t keys = (p.causal ? queries : 8) + rng.below(80);
  const int64_t width = widths[rng.below(7)], of_values = either() ? width : widths[rng.below(7)];
  const DType dtype = either() ? DType::kFloat16 : DType::kBFloat16;
  DagBuilder b;
  const auto operand = [&](size_t i, const char* name, int64_t positions, int64_t elements) {
    p.positions_first[i] = either();
    p.first_heads[i] = rng.below(3);
    const int64_t heads =
        p.first_heads[i] + (i == 0 ? p.heads : p.heads / p.sharing) + rng.below(2);
    std::vector<int64_t> shape = {batch, heads, positions, elements};
    if (p.positions_first[i]) std::swap(shape[1], shape[2]);
    const StageId data = b.placeholder(name, shape, dtype);
    if (i == 2 || either()) return data;
    // As a rotary embedding: sums of elements and others of the same position, with tables.
    const StageId table = b.placeholder("table", {elements}, DType::kFloat32, true);
    const auto body = [&](std::span<const Expr> axes) {
      std::vector<Expr> at(axes.begin(), axes.end()), other = at;
      other.back() = floor_mod(axes.back() + Expr(elements / 2), Expr(elements));
      const auto wide = [&](std::vector<Expr> place) {
        return cast(DType::kFloat32, b.at(data, std::move(place)));
      };
      return cast(dtype, wide(at) * b.at(table, {axes.back()}) - wide(other));
    };
    return b.compute("T_rotated", shape, body, "injective");
  };
  AttentionInputs in;
  in.query = operand(0, "query", queries, width);
  in.key = operand(1, "key", keys, width);
  in.value = operand(2, "value", keys, of_values);
  if (either()) in.bias = b.placeholder("bias", {either() ? p.heads : 1, queries, keys});
  if (either()) {
    in.visible = b.placeholder("visible", {batch, 1, 1, keys}, DType::kBool);
    p.hidden = either() ? -1e9 : -std::numeric_limits<double>::infinity();
  }
  const StageId out = add_attention(b, in, p);
  return make_task(
      b.finish({{out}}), *parse_target(std::string("cuda --arch=") + arch, 0), "attention");
}

/// The structures of attention, each on a device that has it.
inline constexpr WarpDevice kAttentionDevices[] = {{"sm_80", "attention-tile", 8},
                                                   {"sm_90", "group-attention-tile", 32}};

}  // namespace pruner
