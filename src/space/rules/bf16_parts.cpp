// A contraction of float32 by a unit that multiplies bfloat16: each number is the sum of two or of
// three (transform.h), and products of the parts are added up in two loops u and v,
//   X[a, m, k] = one part of A[m, k]      W[b, k, n] = one of B[k, n], made ahead of time
//   C[m, n] = sum_{l, u, v, i} X[a(u, v), m, l * I + i] * W[b(u, v), l * I + i, n]
// that go around the I elements that one instruction takes, so that tiles are read again from the
// nearest cache. Of two parts all four products: without that of the two lesser ones it would be
// three, but read as much. Of three those six whose parts' numbers add up to 2 at most: some are
// there twice, so that a and b are affine. (Henry, Tang and Heinecke, "Leveraging the bfloat16
// Artificial Intelligence Datatype For Higher-Precision Computations", 2019.) Infinity times
// anything is not a number in these forms. Unasked, products of matrices take three parts, as two
// add up to more than 1e-5 of a transformer's outputs, and convolutions two.
#include <algorithm>

#include "space/dag_edit.h"
#include "space/dot.h"
#include "space/sketch_rule.h"

namespace pruner {
namespace {

constexpr DType kNarrow = DType::kBFloat16, kWide = DType::kFloat32;

/// How a form adds up products of parts.
struct Products {
  Transform weight;       // transform that divides the weight into parts
  std::vector<int> data;  // number of the part at each place of the data
  int64_t u, v;           // iterations of the two loops
  Expr (*data_at)(const Expr& u, const Expr& v);
  Expr (*weight_at)(const Expr& u, const Expr& v);
  int64_t number() const { return u * v; }
};

const Products kTwo = {Transform::kBfloat16Parts2,
                       {0, 1},
                       2,
                       2,
                       [](const Expr& u, const Expr&) { return u; },
                       [](const Expr&, const Expr& v) { return v; }};
// The data's and the weight's: 1 0, 2 0 / 0 0, 1 1 / 0 1, 0 2.
const Products kThree = {Transform::kBfloat16Parts3,
                         {2, 1, 0, 0},
                         3,
                         2,
                         [](const Expr& u, const Expr& v) { return u - v + 1; },
                         [](const Expr& u, const Expr& v) { return u + v; }};

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

// The parts of every element, padding included.
Stage parts_of(const ComputeDag& dag, StageId data, const Products& products) {
  const Stage& source = dag[data];
  const auto places = std::ssize(products.data);
  Stage parts;
  parts.name = source.name + ".parts";
  parts.dtype = kNarrow;
  parts.axes = source.axes;
  parts.axes.insert(parts.axes.begin(), {"part", places});
  parts.unrolled = {{0, places}};
  const std::vector<Expr> vars = iterator_vars(parts);
  const std::vector<Expr> index(vars.begin() + 1, vars.end());
  const bool moves = as<Select>(source.body) != nullptr && !source.is_reduction();
  std::vector<Expr> numbers;
  for (Expr left = moves ? substitute(source.body, index) : load(data, index, kWide);
       std::ssize(numbers) <= std::ranges::max(products.data);
       left = left - cast(kWide, numbers.back()))
    numbers.push_back(cast(kNarrow, left));
  const auto at = [&](int64_t place) {
    return numbers[static_cast<size_t>(products.data[static_cast<size_t>(place)])];
  };
  parts.body = at(places - 1);
  for (int64_t place = places - 2; place >= 0; --place)
    parts.body = select(binary(BinaryOp::kEq, vars[0], Expr(place)), at(place), parts.body);
  return parts;
}

// The contraction over parts of the stage before it and of the constant.
Stage product_of_parts(const ComputeDag& dag,
                       StageId id,
                       const Factors& factors,
                       StageId parts,
                       const Products& products) {
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
  product.reduce_axes[k] = {axis.name + "_o", axis.extent / inner, axis.open};
  product.reduce_axes.insert(
      product.reduce_axes.begin() + static_cast<std::ptrdiff_t>(k) + 1,
      {{axis.name + "_u", products.u}, {axis.name + "_v", products.v}, {axis.name, inner}});
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
  const Expr &u = vars[spatial + k + 1], &v = vars[spatial + k + 2];
  const Expr data = factor(parts, factors.data, products.data_at(u, v));
  const Expr weight = factor(factors.weight->tensor, factors.weight, products.weight_at(u, v));
  product.body = factors.data_first ? data * weight : weight * data;
  return product;
}

bool rewrite(ComputeDag& dag, StageId id, const Target& target, const Products& products) {
  const std::optional<Factors> factors = match_factors(dag, id);
  if (!factors || !needs_multi_level_tiling(dag, id)) return false;
  ComputeDag result = dag;
  const StageId data = factors->data->tensor, weight = factors->weight->tensor;
  Stage& constant = result[weight];
  constant.axes.insert(constant.axes.begin(),
                       {"part", std::ssize(bfloat16_parts(products.weight))});
  constant.dtype = kNarrow;
  constant.transform = products.weight;
  insert_stage(result, id.value, parts_of(dag, data, products));
  const StageId product{id.value + 1};
  result[product] = product_of_parts(result, product, *factors, id, products);
  if (find_dot_instruction(result, product, target, true) == nullptr) return false;
  if (!result[data].is_placeholder() && !result[data].output && result.consumers(data).empty())
    inline_stage(result, data);
  dag = std::move(result);
  return true;
}

bool apply(ComputeDag& dag, const Target& target, const Products& products) {
  if (target.dots.bfloat16_tile <= static_cast<double>(products.number())) return false;
  return rewrite_stages(dag, [&](StageId id) { return rewrite(dag, id, target, products); });
}

// Whether a DAG has a product of matrices: a convolution's terms have several axes.
bool multiplies_matrices(const ComputeDag& dag) {
  return std::ranges::any_of(dag.stages, [](const Stage& stage) {
    const Binary* product = as<Binary>(stage.body);
    return stage.combiner == Combiner::kSum && stage.reduce_axes.size() == 1 &&
           product != nullptr && product->op == BinaryOp::kMul;
  });
}

}  // namespace

const Form kBf16Parts2 = {
    "bf16-2-parts",
    [](ComputeDag& dag, const Target& target) { return apply(dag, target, kTwo); },
    false,
    [](const ComputeDag& dag) { return !multiplies_matrices(dag); }};
const Form kBf16Parts3 = {
    "bf16-3-parts",
    [](ComputeDag& dag, const Target& target) { return apply(dag, target, kThree); },
    false,
    multiplies_matrices};

}  // namespace pruner
