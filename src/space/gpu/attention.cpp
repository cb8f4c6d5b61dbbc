#include "space/gpu/attention.h"

#include <algorithm>
#include <array>
#include <set>

#include "space/dag_edit.h"
#include "space/dot.h"
#include "space/gpu/kernels.h"
#include "space/weighed_softmax.h"
#include "support/check.h"
#include "target/attention_units.h"

namespace pruner {
namespace {

// Attention as it stands in a DAG, before its operands have copies.
struct Attention {
  WeighedSoftmax softmax;
  StageId products, root;
  const Load *query = nullptr, *key = nullptr, *value = nullptr;
  int rows = -1;  // axis of the queries
  const MmaInstruction* instruction = nullptr;
};

bool mentions(const Load& read, int iterator) {
  return std::ranges::any_of(read.indices,
                             [&](const Expr& index) { return reads(index, VarId{iterator}); });
}

// Returns the read of 16 bits that a factor is cast from; null if it is none.
const Load* narrow_read(const ComputeDag& dag, const Expr& factor) {
  const Load* read = as<Load>(factor);
  const bool narrow = read != nullptr && is_narrow_float(factor->dtype) &&
                      !dag[read->tensor].is_reduction() && !dag[read->tensor].output;
  return narrow ? read : nullptr;
}

// Whether all stages but `own` make operands, element by element, of which `readers` are made: a
// rotary embedding of queries and keys. A kernel computes them where it copies the operands.
bool make_operands(const ComputeDag& dag,
                   const std::set<StageId>& own,
                   const std::set<StageId>& readers) {
  std::set<StageId> makers = readers;
  for (int s = dag.size() - 1; s >= 0; --s) {
    const StageId id{s};
    if (dag[id].is_placeholder() || own.contains(id)) continue;
    const std::vector<StageId> of = dag.consumers(id);
    const auto makes = [&](StageId reader) { return makers.contains(reader); };
    if (dag[id].is_reduction() || dag[id].output || !dag[id].unrolled.empty() ||
        !std::ranges::all_of(of, makes) || !fits_readers(dag, id))
      return false;
    makers.insert(id);
  }
  return true;
}

// Returns the contraction whose elements the scores are made of, one by one.
StageId products_of(const ComputeDag& dag, StageId scores) {
  StageId products;
  for (const StageId producer : dag.producers(scores)) {
    if (dag[producer].is_placeholder()) continue;
    if (products.valid()) return {};
    products = producer;
  }
  const bool found = products.valid() && dag[products].combiner == Combiner::kSum &&
                     dag[products].reduce_axes.size() == 1 && !dag[products].output &&
                     dag.consumers(products).size() == 1 &&
                     reads_elementwise(dag, scores, products);
  return found ? products : StageId{};
}

StageId root_of(const ComputeDag& dag, const WeighedSoftmax& s) {
  const std::vector<StageId> readers = dag.consumers(s.weighed);
  if (readers.size() != 1 || dag.consumers(s.sum) != readers) return {};
  const StageId root = readers[0];
  const bool found = dag[root].output && dag.producers(root).size() == 2 &&
                     reads_elementwise(dag, root, s.weighed);
  return found ? root : StageId{};
}

// Whether each row of `reader` reads the row of `producer` of the same number.
bool reads_own_rows(const ComputeDag& dag, StageId reader, StageId producer) {
  const size_t rank = dag[reader].axes.size() - 1;
  for (const Access& access : accesses_of(dag, reader)) {
    if (access.producer != producer) continue;
    for (size_t d = 0; d < rank; ++d) {
      const bool own = lone_iterator(access.indices[d]) == static_cast<int>(d);
      if (!own && dag[producer].axes[d].extent != 1) return false;
    }
  }
  return true;
}

// Returns the one axis along which queries move and keys do not.
int rows_of(const Stage& products, const Load& query, const Load& key) {
  const int columns = static_cast<int>(products.axes.size()) - 1;
  if (mentions(query, columns) || !mentions(key, columns)) return -1;
  int rows = -1;
  for (int a = 0; a < columns; ++a) {
    if (products.axes[static_cast<size_t>(a)].extent == 1 || mentions(key, a)) continue;
    if (rows >= 0 || !mentions(query, a)) return -1;
    rows = a;
  }
  return rows;
}

// Sets the reads of queries, keys and values, and the axis of the queries; false where the products
// are none of 16-bit operands.
bool take_operands(const ComputeDag& dag, Attention& a) {
  const Stage &products = dag[a.products], &weighed = dag[a.softmax.weighed];
  const std::optional<NarrowProduct> of_keys = narrow_product(products.body),
                                     of_values = narrow_product(weighed.body);
  if (!of_keys || !of_values) return false;
  a.query = narrow_read(dag, of_keys->a->value);
  a.key = narrow_read(dag, of_keys->b->value);
  a.value = narrow_read(dag, of_values->b->value);
  const Cast* weight = as<Cast>(of_values->a->value);
  if (a.query == nullptr || a.key == nullptr || a.value == nullptr || weight == nullptr)
    return false;
  const DType dtype = of_keys->a->value->dtype;
  if (of_keys->b->value->dtype != dtype || of_values->a->value->dtype != dtype ||
      of_values->b->value->dtype != dtype)
    return false;
  a.rows = rows_of(products, *a.query, *a.key);
  const int width = static_cast<int>(weighed.axes.size()) - 1;
  return a.rows >= 0 && mentions(*a.value, width) && !mentions(*a.value, a.rows);
}

// Returns the instruction for products of the operands' type; null if the GPU's units don't compute
// such heads.
const MmaInstruction* instruction_of(const ComputeDag& dag,
                                     const Attention& a,
                                     const Gpu& gpu,
                                     std::span<const int64_t> shape) {
  const DType dtype = dag[a.query->tensor].dtype;
  const MmaInstruction* row = find_mma_instruction(mma_shape(shape), dtype, dtype, DType::kFloat32);
  if (row == nullptr || gpu.tensor_rates.*row->rate <= 0) return nullptr;
  if (!row->is_on(compute_capability(gpu))) return nullptr;
  const Stage &products = dag[a.products], &weighed = dag[a.softmax.weighed];
  const AttentionHead head{.queries = products.axes[static_cast<size_t>(a.rows)].extent,
                           .keys = products.axes.back().extent,
                           .terms = products.reduce_axes[0].extent,
                           .width = weighed.axes.back().extent};
  return 2 * head.queries >= row->m && has_attention_units(head, gpu) ? row : nullptr;
}

std::optional<Attention> attention_of(const ComputeDag& dag,
                                      const Gpu& gpu,
                                      std::span<const int64_t> shape) {
  for (int s = 0; s < dag.size(); ++s) {
    if (dag[StageId{s}].combiner != Combiner::kMax) continue;
    const std::optional<WeighedSoftmax> softmax = softmax_of(dag, StageId{s});
    if (!softmax) continue;
    Attention a{*softmax, products_of(dag, softmax->scores), root_of(dag, *softmax)};
    if (!a.products.valid() || !a.root.valid()) return std::nullopt;
    const std::set<StageId> own = {a.products,
                                   softmax->scores,
                                   softmax->largest,
                                   softmax->exps,
                                   softmax->sum,
                                   softmax->weighed,
                                   a.root};
    if (!make_operands(dag, own, {a.products, softmax->weighed})) return std::nullopt;
    if (!reads_own_rows(dag, softmax->weighed, softmax->exps) || !take_operands(dag, a))
      return std::nullopt;
    a.instruction = instruction_of(dag, a, gpu, shape);
    return a.instruction != nullptr ? std::optional(a) : std::nullopt;
  }
  return std::nullopt;
}

enum class Side : uint8_t { kFirst, kSecond };

// Adds a copy of a factor of the reader's product before the reader, which then reads the copy. The
// copy's iterators are the reader's `axes`. Returns the copy; the reader's number grows by one.
StageId copy_factor(
    ComputeDag& dag, StageId reader, Side side, const std::vector<int>& axes, const char* name) {
  const auto factor = [&](StageId id) {
    const NarrowProduct factors = *narrow_product(dag[id].body);
    return side == Side::kFirst ? factors.a->value : factors.b->value;
  };
  const Stage& stage = dag[reader];
  const Expr read = factor(reader);
  const std::vector<Expr> vars = iterator_vars(stage);
  std::vector<Expr> own(vars.size(), Expr(0));  // the copy's iterators, one per reader's iterator
  std::vector<Expr> at;                         // the place that the reader reads of the copy
  Stage copy;
  copy.name = name;
  copy.dtype = read->dtype;
  copy.tag = kSharedTag;
  for (const int axis : axes) {
    const auto i = static_cast<size_t>(axis);
    const VarId number{static_cast<int32_t>(copy.axes.size())};
    copy.axes.push_back(iterator_of(stage, axis));
    own[i] = make_var(number, copy.axes.back().name);
    at.push_back(vars[i]);
  }
  copy.body = substitute(read, own);
  insert_stage(dag, reader.value, std::move(copy));
  Stage& after = dag[StageId{reader.value + 1}];
  const NarrowProduct factors = *narrow_product(after.body);
  const Expr copied = cast(after.dtype, load(reader, std::move(at), read->dtype));
  after.body = side == Side::kFirst ? copied * cast(after.dtype, factors.b->value)
                                    : cast(after.dtype, factors.a->value) * copied;
  return reader;
}

std::array<StageId*, 10> stages_of(AttentionKernel& a) {
  return {&a.query,
          &a.key,
          &a.value,
          &a.products,
          &a.scores,
          &a.largest,
          &a.exps,
          &a.sum,
          &a.weighed,
          &a.root};
}

bool is_stage_of(AttentionKernel& a, StageId id) {
  return std::ranges::any_of(stages_of(a), [&](const StageId* stage) { return *stage == id; });
}

// Counts the kernel's stages anew when stage `gone` is.
void renumber(AttentionKernel& a, int gone) {
  std::vector<StageId*> all;
  for (StageId* stage : stages_of(a)) all.push_back(stage);
  for (MmaContraction* c : {&a.of_keys, &a.of_values})
    all.insert(all.end(), {&c->a.stage, &c->b.stage});
  for (StageId* stage : all)
    if (stage->value > gone) --stage->value;
}

}  // namespace

bool has_attention_kernel(const ComputeDag& dag, const Gpu& gpu, std::span<const int64_t> shape) {
  return attention_of(dag, gpu, shape).has_value();
}

AttentionKernel make_attention_kernel(ComputeDag& dag,
                                      const Gpu& gpu,
                                      std::span<const int64_t> shape) {
  const std::optional<Attention> found = attention_of(dag, gpu, shape);
  CHECK(found.has_value()) << "no attention that one kernel computes";
  const Attention& a = *found;
  const WeighedSoftmax& s = a.softmax;
  const int rank = static_cast<int>(dag[a.root].axes.size()), last = rank - 1;
  const auto axes = [&](std::vector<int> own) {
    std::vector<int> all;
    for (int axis = 0; axis < last; ++axis)
      if (axis != a.rows) all.push_back(axis);
    all.insert(all.end(), own.begin(), own.end());
    return all;
  };
  // Later readers get their copies first: the numbers of earlier stages stay.
  const StageId value =
      copy_factor(dag, s.weighed, Side::kSecond, axes({rank, last}), "value.shared");
  const StageId key = copy_factor(dag, a.products, Side::kSecond, axes({last, rank}), "key.shared");
  const StageId query =
      copy_factor(dag, StageId{key.value + 1}, Side::kFirst, axes({a.rows, rank}), "query.shared");
  const auto moved = [](StageId id, int by) { return StageId{id.value + by}; };
  AttentionKernel made{query,
                       key,
                       moved(value, 2),
                       moved(a.products, 2),
                       moved(s.scores, 2),
                       moved(s.largest, 2),
                       moved(s.exps, 2),
                       moved(s.sum, 2),
                       moved(s.weighed, 3),
                       moved(a.root, 3),
                       {a.instruction, {query, false}, {key, false}, a.rows, last, rank},
                       {}};
  made.of_values = {a.instruction, {made.exps, false}, {made.value, true}, a.rows, last, rank};
  for (int s = dag.size() - 1; s >= 0; --s) {
    const Stage& stage = dag[StageId{s}];
    const bool is_own = is_stage_of(made, StageId{s});
    if (stage.is_placeholder() || is_own) continue;
    inline_stage(dag, StageId{s});
    renumber(made, s);
  }
  return made;
}

}  // namespace pruner
