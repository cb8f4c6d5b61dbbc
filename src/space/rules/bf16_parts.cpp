// A contraction of float32 by a unit that multiplies bfloat16: each number is the sum of two
// (transform.h), and all four products of the parts are added up,
//   X[p, m, k] = part p of A[m, k]        W[q, k, n] = part q of B[k, n], made ahead of time
//   C[m, n] = sum_{l, p, q, i} X[p, m, l * I + i] * W[q, l * I + i, n]
// where the parts go around the I elements that one instruction takes, so that tiles are read again
// from the nearest cache. Without the product of the two lesser parts it would add up three (Henry,
// Tang and Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision
// Computations", 2019), but read as much. Infinity times anything is not a number in this form.
#include <algorithm>

#include "space/dag_edit.h"
#include "space/dot.h"
#include "space/sketch_rule.h"

namespace pruner {
namespace {

constexpr DType kNarrow = DType::kBFloat16, kWide = DType::kFloat32;
constexpr int kProducts = 4;

/// The operands of a contraction: what is made as it runs, and a constant that only it reads.
struct Factors {
  const Load *data, *weight;
  bool data_first;
};

std::optional<Factors> match_factors(const ComputeDag& dag, StageId id) {
  const Stage& stage = dag[id];
  const Binary* product = as<Binary>(stage.body);
  if (stage.combiner != Combiner::kSum || stage.dtype != kWide || product == nullptr ||
      product->op != BinaryOp::kMul)
    return std::nullopt;
  const Load *a = as<Load>(product->a), *b = as<Load>(product->b);
  if (a == nullptr || b == nullptr || dag[a->tensor].dtype != kWide ||
      dag[b->tensor].dtype != kWide)
    return std::nullopt;
  const bool data_first = !dag[a->tensor].constant;
  if (!data_first) std::swap(a, b);
  const bool free = std::ranges::find(stage.layout_free, b->tensor) != stage.layout_free.end();
  if (dag[a->tensor].constant || !dag[b->tensor].constant || !free ||
      dag.consumers(b->tensor).size() != 1)
    return std::nullopt;
  return Factors{a, b, data_first};
}

// The two parts of every element, padding included.
Stage parts_of(const ComputeDag& dag, StageId data) {
  const Stage& source = dag[data];
  Stage parts;
  parts.name = source.name + ".parts";
  parts.dtype = kNarrow;
  parts.axes = source.axes;
  parts.axes.insert(parts.axes.begin(), {"part", kBfloat16Parts});
  parts.unrolled = {{0, kBfloat16Parts}};
  const std::vector<Expr> vars = iterator_vars(parts);
  const std::vector<Expr> index(vars.begin() + 1, vars.end());
  const bool moves = as<Select>(source.body) != nullptr && !source.is_reduction();
  const Expr x = moves ? substitute(source.body, index) : load(data, index, kWide);
  const Expr rounded = cast(kNarrow, x);
  parts.body = select(
      binary(BinaryOp::kEq, vars[0], Expr(0)), rounded, cast(kNarrow, x - cast(kWide, rounded)));
  return parts;
}

// The contraction over parts of the stage before it and of the constant.
Stage product_of_parts(const ComputeDag& dag, StageId id, const Factors& factors, StageId parts) {
  Stage product = dag[id];
  const auto last = std::ranges::find_if(product.reduce_axes.rbegin(),
                                         product.reduce_axes.rend(),
                                         [](const Iterator& axis) { return axis.extent > 1; });
  if (last == product.reduce_axes.rend()) return product;
  const auto k = static_cast<size_t>(product.reduce_axes.rend() - last) - 1;
  const size_t spatial = product.axes.size();
  const Iterator axis = product.reduce_axes[k];
  const int64_t inner = 2 * matrix_steps(std::max<int64_t>(axis.extent / 2, 1), kMatrixSteps);
  if (axis.extent % inner != 0) return product;
  product.reduce_axes[k] = {axis.name + "_o", axis.extent / inner};
  product.reduce_axes.insert(
      product.reduce_axes.begin() + static_cast<std::ptrdiff_t>(k) + 1,
      {{axis.name + "_a", kBfloat16Parts}, {axis.name + "_b", kBfloat16Parts}, {axis.name, inner}});
  const std::vector<Expr> vars = iterator_vars(product);
  // The old stage's iterators in those of the new one.
  std::vector<Expr> old = vars;
  old.erase(old.begin() + static_cast<std::ptrdiff_t>(spatial + k) + 1,
            old.begin() + static_cast<std::ptrdiff_t>(spatial + k) + 4);
  old[spatial + k] = vars[spatial + k] * Expr(inner) + vars[spatial + k + 3];
  const auto factor = [&](StageId operand, const Load* of, const Expr& part) {
    std::vector<Expr> index = {part};
    for (const Expr& e : of->indices) index.push_back(substitute(e, old));
    return cast(kWide, load(operand, std::move(index), kNarrow));
  };
  const Expr data = factor(parts, factors.data, vars[spatial + k + 1]);
  const Expr weight = factor(factors.weight->tensor, factors.weight, vars[spatial + k + 2]);
  product.body = factors.data_first ? data * weight : weight * data;
  return product;
}

bool rewrite(ComputeDag& dag, StageId id, const Target& target) {
  const std::optional<Factors> factors = match_factors(dag, id);
  if (!factors || !needs_multi_level_tiling(dag, id)) return false;
  ComputeDag result = dag;
  const StageId data = factors->data->tensor, weight = factors->weight->tensor;
  Stage& constant = result[weight];
  constant.axes.insert(constant.axes.begin(), {"part", kBfloat16Parts});
  constant.dtype = kNarrow;
  constant.transform = Transform::kBfloat16Parts;
  insert_stage(result, id.value, parts_of(dag, data));
  const StageId product{id.value + 1};
  result[product] = product_of_parts(result, product, *factors, id);
  if (find_dot_instruction(result, product, target, true) == nullptr) return false;
  if (!result[data].is_placeholder() && !result[data].output && result.consumers(data).empty())
    inline_stage(result, data);
  dag = std::move(result);
  return true;
}

bool apply(ComputeDag& dag, const Target& target) {
  if (target.dots.bfloat16_tile <= kProducts) return false;
  bool found = false;
  for (int s = 0; s < dag.size(); ++s) {
    const int before = dag.size();
    if (!rewrite(dag, StageId{s}, target)) continue;
    s += dag.size() - before;
    found = true;
  }
  return found;
}

}  // namespace

const Form kBf16Parts = {"bf16-parts", apply, false};

}  // namespace pruner
