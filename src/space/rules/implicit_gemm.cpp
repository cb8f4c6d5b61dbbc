// Implicit GEMM: a contraction of several axes as the product of two matrices, of which a kernel
// reads the elements where they lie, for instructions on matrices (Chetlur et al., "cuDNN:
// Efficient Primitives for Deep Learning", 2014). A convolution with its axes in the order of NHWC:
//   A[m, k] = data[n, y * stride + ry, x * stride + rx, rc]       m = (n, y, x), k = (ry, rx, rc)
//   B[k, f] = weight[ry, rx, rc, f]
//   Y[m, f] = sum_k A[m, k] B[k, f]
// The stages that follow element by element have the fused axes, too. An output lies in memory as
// before.
#include <algorithm>

#include "space/access.h"
#include "space/dag_edit.h"
#include "space/dot.h"
#include "space/sketch_rule.h"

namespace pruner {
namespace {

/// Iterators of a stage, longer than 1, that become one.
using Group = std::vector<int>;

struct Product {
  const Load *a, *b;
  Group m, n, k;
};

bool moves(const Load& load, int iterator) {
  return std::ranges::any_of(load.indices,
                             [&](const Expr& e) { return reads(e, VarId{iterator}); });
}

// A product of two operands, the axes of one's rows before those of the other's columns, that is
// no product of two matrices as it stands.
std::optional<Product> match_product(const ComputeDag& dag, StageId id) {
  const Stage& stage = dag[id];
  if (stage.combiner != Combiner::kSum) return std::nullopt;
  if (!narrow_product(stage.body) && !is_tf32_product(stage.body)) return std::nullopt;
  std::vector<const Load*> factors;
  visit(stage.body, [&](const Expr& e) {
    if (const Load* factor = as<Load>(e)) factors.push_back(factor);
  });
  if (factors.size() != 2 || factors[0]->tensor == factors[1]->tensor) return std::nullopt;
  Product p{factors[0], factors[1], {}, {}, {}};
  const int spatial = static_cast<int>(stage.axes.size());
  const int all = spatial + static_cast<int>(stage.reduce_axes.size());
  for (int i = 0; i < all; ++i) {
    if (iterator_of(stage, i).extent == 1) continue;
    if (i >= spatial) {
      p.k.push_back(i);
      continue;
    }
    if (moves(*p.a, i) == moves(*p.b, i)) return std::nullopt;
    if (p.m.empty() && moves(*p.b, i)) std::swap(p.a, p.b);
    const bool is_row = moves(*p.a, i);
    if (is_row && !p.n.empty()) return std::nullopt;
    (is_row ? p.m : p.n).push_back(i);
  }
  if (p.m.empty() || p.n.empty() || p.k.empty()) return std::nullopt;
  if (std::max({p.m.size(), p.n.size(), p.k.size()}) == 1) return std::nullopt;
  return p;
}

// Finds the stages after `id` that have its axes, and read the stages with these axes element by
// element. Returns false if a stage reads one of them in another way.
bool find_followers(const ComputeDag& dag, StageId id, std::vector<StageId>& followers) {
  const auto has_axes = [&](StageId s) {
    return s == id || std::ranges::find(followers, s) != followers.end();
  };
  for (StageId s{id.value + 1}; s.value < dag.size(); ++s.value) {
    bool follows = false;
    for (const StageId producer : dag.producers(s)) {
      if (!has_axes(producer)) continue;
      follows = true;
      if (!reads_elementwise(dag, s, producer) || !dag[s].unrolled.empty()) return false;
    }
    if (follows) followers.push_back(s);
  }
  return true;
}

Iterator fused(const Stage& stage, const Group& axes, const char* name) {
  Iterator all = iterator_of(stage, axes[0]);
  if (axes.size() == 1) return all;
  all = {name, 1};
  for (const int axis : axes) {
    all.extent *= iterator_of(stage, axis).extent;
    all.open |= iterator_of(stage, axis).open;
  }
  return all;
}

// The values of `axes` where the fused one is at `index`, the last runs fastest.
void place(const Stage& stage, const Group& axes, Expr index, std::vector<Expr>& values) {
  for (size_t i = axes.size(); i-- > 0;) {
    const Expr extent(iterator_of(stage, axes[i]).extent);
    values[static_cast<size_t>(axes[i])] = i == 0 ? index : floor_mod(index, extent);
    index = floor_div(index, extent);
  }
}

// Whether an operand's rows, not its terms, lie side by side in memory.
bool has_terms_first(const Load& operand, const Group& rows) {
  return reads(operand.indices.back(), VarId{rows.back()});
}

// An operand as a matrix of its rows and terms, those last that lie side by side.
Stage matrix(
    const ComputeDag& dag, const Stage& stage, const Load& operand, const Product& p, bool is_a) {
  const Group& along = is_a ? p.m : p.n;
  const bool terms_first = has_terms_first(operand, along);
  Stage result;
  result.name = dag[operand.tensor].name + ".matrix";
  result.dtype = dag[operand.tensor].dtype;
  result.tag = "injective";
  result.axes = {fused(stage, along, is_a ? "m" : "n"), fused(stage, p.k, "k")};
  if (terms_first) std::swap(result.axes[0], result.axes[1]);
  const std::vector<Expr> vars = iterator_vars(result);
  std::vector<Expr> values(stage.axes.size() + stage.reduce_axes.size(), Expr(0));
  place(stage, along, vars[terms_first ? 1 : 0], values);
  place(stage, p.k, vars[terms_first ? 0 : 1], values);
  std::vector<Expr> indices;
  for (const Expr& e : operand.indices) indices.push_back(substitute(e, values));
  result.body = load(operand.tensor, std::move(indices), result.dtype);
  return result;
}

// Returns `follower`, which has the axes of `stage`, with these axes fused, also where it reads
// stages of `with_axes`.
Stage fuse_follower(const Stage& follower,
                    const Stage& stage,
                    const Product& p,
                    const std::vector<StageId>& with_axes) {
  Stage result = follower;
  result.axes = {fused(stage, p.m, "m"), fused(stage, p.n, "n")};
  const std::vector<Expr> vars = iterator_vars(result);
  std::vector<Expr> values(follower.axes.size(), Expr(0));
  place(follower, p.m, vars[0], values);
  place(follower, p.n, vars[1], values);
  result.body = rewrite(substitute(follower.body, values), [&](const Expr& e) -> Expr {
    const Load* read = as<Load>(e);
    const bool has =
        read != nullptr && std::ranges::find(with_axes, read->tensor) != with_axes.end();
    return has ? load(read->tensor, vars, e->dtype) : Expr();
  });
  return result;
}

// Only elements of 16 bits are transposed on their way from shared memory (ldmatrix). A constant of
// others, whose columns lie side by side, is laid out ahead of time with its terms so.
bool lay_out_terms(ComputeDag& dag, StageId id, const Load& operand, const Group& columns) {
  Stage& constant = dag[operand.tensor];
  const Var* last = as<Var>(operand.indices.back());
  if (!constant.constant || dtype_bytes(constant.dtype) == 2 || columns.size() != 1 ||
      last == nullptr || last->id != VarId{columns[0]} || dag.consumers(operand.tensor).size() != 1)
    return false;
  std::rotate(constant.axes.begin(), constant.axes.end() - 1, constant.axes.end());
  constant.transform = Transform::kLastFirst;
  dag[id].body = rewrite(dag[id].body, [&](const Expr& e) {
    const Load* read = as<Load>(e);
    if (read == nullptr || read->tensor != operand.tensor) return Expr();
    std::vector<Expr> indices = read->indices;
    std::rotate(indices.begin(), indices.end() - 1, indices.end());
    return load(read->tensor, std::move(indices), e->dtype);
  });
  return true;
}

bool rewrite_product(ComputeDag& dag, StageId id) {
  std::optional<Product> p = match_product(dag, id);
  std::vector<StageId> followers;
  if (!p || !find_followers(dag, id, followers)) return false;
  if (lay_out_terms(dag, id, *p->b, p->n)) p = match_product(dag, id);
  const Stage stage = dag[id];
  const Stage operands[] = {matrix(dag, stage, *p->a, *p, true),
                            matrix(dag, stage, *p->b, *p, false)};
  Stage product = stage;
  product.axes = {fused(stage, p->m, "m"), fused(stage, p->n, "n")};
  product.reduce_axes = {fused(stage, p->k, "k")};
  product.layout_free.clear();
  const std::vector<Expr> vars = iterator_vars(product);
  const Load* const factors[] = {p->a, p->b};
  const bool terms_first[] = {has_terms_first(*p->a, p->m), has_terms_first(*p->b, p->n)};
  for (size_t i = 0; i < 2; ++i) {
    insert_stage(dag, id.value, operands[i]);
    std::vector<Expr> at = {vars[i], vars[2]};
    if (terms_first[i]) std::swap(at[0], at[1]);
    product.body = rewrite(product.body, [&](const Expr& e) {
      const bool own = as<Load>(e) != nullptr && as<Load>(e)->tensor == factors[i]->tensor;
      return own ? load(id, at, e->dtype) : Expr();
    });
    ++id.value;
  }
  dag[id] = std::move(product);
  std::vector<StageId> with_axes = {id};
  for (const StageId s : followers) with_axes.push_back({s.value + 2});
  for (size_t f = 1; f < with_axes.size(); ++f)
    dag[with_axes[f]] = fuse_follower(dag[with_axes[f]], stage, *p, with_axes);
  return true;
}

bool apply(ComputeDag& dag, const Target& target) {
  return target.is_gpu() &&
         rewrite_stages(dag, [&](StageId id) { return rewrite_product(dag, id); });
}

}  // namespace

const Form kImplicitGemm = {"implicit-gemm", apply, true};

}  // namespace pruner
