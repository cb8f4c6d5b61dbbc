// Attention: softmax(scale * query * key^T + bias) * value.
#include <limits>

#include "support/check.h"
#include "tensor/operator_dags.h"

namespace pruner {

namespace {

// `HeadLayout` knows the index of an element of query, key or value (tensors 0, 1, 2), and the
// order of an output's axes, which is the query's.
class HeadLayout {
 public:
  explicit HeadLayout(const AttentionParams& params) : p_(params) {}

  std::vector<int64_t> shape(int64_t batch, int64_t positions, int64_t width) const {
    std::vector<int64_t> shape = {batch, p_.heads, positions, width};
    if (p_.positions_first[0]) std::swap(shape[1], shape[2]);
    return shape;
  }
  int64_t positions(size_t tensor, const std::vector<int64_t>& shape) const {
    return shape[dim_of_positions(tensor)];
  }
  Expr head(std::span<const Expr> i) const { return i[3 - dim_of_positions(0)]; }
  Expr position(std::span<const Expr> i) const { return i[dim_of_positions(0)]; }

  /// Returns the index of an element for the head of queries at output place `i`.
  std::vector<Expr> index(size_t tensor,
                          std::span<const Expr> i,
                          Expr position,
                          Expr element) const {
    Expr at = head(i);
    if (tensor > 0 && p_.sharing > 1) at = floor_div(at, Expr(p_.sharing));
    if (p_.first_heads[tensor] > 0) at = at + Expr(p_.first_heads[tensor]);
    if (p_.positions_first[tensor]) std::swap(at, position);
    return {i[0], std::move(at), std::move(position), std::move(element)};
  }

 private:
  size_t dim_of_positions(size_t tensor) const { return p_.positions_first[tensor] ? 1 : 2; }

  const AttentionParams& p_;
};

}  // namespace

StageId add_attention(DagBuilder& b, const AttentionInputs& in, const AttentionParams& params) {
  const std::vector<int64_t> q = b.shape(in.query), k = b.shape(in.key), v = b.shape(in.value);
  CHECK(q.size() == 4 && k.size() == 4 && v.size() == 4 && q[3] == k[3])
      << "attention of tensors without four dims, or queries unlike keys";
  const HeadLayout layout(params);
  const int64_t queries = layout.positions(0, q), keys = layout.positions(1, k);
  const std::vector<int64_t> square = layout.shape(q[0], queries, keys);
  const DType dtype = params.result.value_or(b.stage(in.query).dtype);

  const auto dot = [&](std::span<const Expr> i, std::span<const Expr> r) {
    return product(b.at(in.query, layout.index(0, i, layout.position(i), r[0])),
                   b.at(in.key, layout.index(1, i, i[3], r[0])),
                   params.products);
  };
  const StageId products =
      b.reduce("T_scores", square, {q[3]}, Combiner::kSum, dot, "batch_matmul");
  const StageId scores = b.compute("T_masked", square, [&](std::span<const Expr> i) {
    const Expr point[] = {i[0], layout.head(i), layout.position(i), i[3]};
    const int64_t extents[] = {q[0], params.heads, queries, keys};
    const auto at_score = [&](StageId tensor) {
      return b.at(tensor, broadcast_index(b.shape(tensor), extents, point));
    };
    Expr x = b.at(products, {i.begin(), i.end()}) * float_imm(params.scale);
    if (in.bias.valid()) x = x + cast(x->dtype, at_score(in.bias));
    if (in.visible.valid()) x = select(at_score(in.visible), x, float_imm(params.hidden));
    if (!params.causal) return x;
    return select(binary(BinaryOp::kLe, point[3], point[2] + Expr(keys - queries)),
                  x,
                  float_imm(-std::numeric_limits<double>::infinity()));
  });
  const auto [largest, exps, sum] = add_softmax_terms(b, scores, 3);
  const std::vector<int64_t> shape = layout.shape(q[0], queries, v[3]);
  // Units multiply two factors of one type: weights for 16-bit values are rounded to it.
  const DType values = b.stage(in.value).dtype;
  const auto weigh = [&](std::span<const Expr> i, std::span<const Expr> r) {
    const Expr weight = b.at(exps, {i[0], i[1], i[2], r[0]});
    return product(is_narrow_float(values) ? cast(values, weight) : weight,
                   b.at(in.value, layout.index(2, i, r[0], i[3])),
                   params.products);
  };
  const StageId weighed =
      b.reduce("T_weighed", shape, {keys}, Combiner::kSum, weigh, "batch_matmul");
  // Once an element of the result, which has fewer than the scores.
  return b.compute("T_attention", shape, [&](std::span<const Expr> i) {
    const Expr total = b.at(sum, {i[0], i[1], i[2]});
    const Expr mean = b.at(weighed, {i.begin(), i.end()}) / total;
    // A sum that is a number is at least 1, its largest term.
    return cast(dtype,
                params.nan_is_zero ? select(float_imm(0) < total, mean, float_imm(0)) : mean);
  });
}

}  // namespace pruner
