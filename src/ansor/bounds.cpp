#include "ansor/bounds.h"

#include <algorithm>
#include <array>
#include <optional>

#include "support/ceil_div.h"
#include "support/check.h"
#include "tensor/expr.h"

namespace pruner::ansor {
namespace {

constexpr int64_t kMaxLoop = int64_t{1} << 48;  // limit of a fused loop: places fit in int64

size_t at(int i) { return static_cast<size_t>(i); }

// The pool's operation; nullopt: the pool has no closed form of it.
std::optional<IndexOp> index_op(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd: return IndexOp::kAdd;
    case BinaryOp::kSub: return IndexOp::kSub;
    case BinaryOp::kMul: return IndexOp::kMul;
    case BinaryOp::kFloorDiv: return IndexOp::kFloorDiv;
    case BinaryOp::kFloorMod: return IndexOp::kFloorMod;
    case BinaryOp::kMin: return IndexOp::kMin;
    case BinaryOp::kMax: return IndexOp::kMax;
    default: return std::nullopt;
  }
}

// The values of an index while the stage's iterators take theirs; nullopt where memory decides.
std::optional<IndexSet> index_set(IndexPool& pool, const Expr& e, std::span<const IndexSet> iters) {
  if (const auto* imm = as<IntImm>(e)) return IndexSet{pool.constant(imm->value), 0};
  if (const auto* var = as<Var>(e)) return iters[at(var->id.value)];
  if (const auto* narrowed = as<Cast>(e)) return index_set(pool, narrowed->value, iters);
  const auto* node = as<Binary>(e);
  const std::optional<IndexOp> op = node ? index_op(node->op) : std::nullopt;
  if (!op) return std::nullopt;
  const auto a = index_set(pool, node->a, iters), b = index_set(pool, node->b, iters);
  if (!a || !b) return std::nullopt;
  return combine(pool, *op, *a, *b);
}

// The index where the stage's iterators have the values `iters`. What memory decides (a gather) is
// unknown in [0, extent), `extent` being that of the axis that is read.
IndexId index_value(IndexPool& pool,
                    const Expr& e,
                    std::span<const IndexId> iters,
                    int64_t extent) {
  if (const auto* imm = as<IntImm>(e)) return pool.constant(imm->value);
  if (const auto* var = as<Var>(e)) return iters[at(var->id.value)];
  if (const auto* narrowed = as<Cast>(e)) return index_value(pool, narrowed->value, iters, extent);
  const auto* node = as<Binary>(e);
  const std::optional<IndexOp> op = node ? index_op(node->op) : std::nullopt;
  if (!op) return pool.unknown(0, extent - 1);
  const IndexId a = index_value(pool, node->a, iters, extent);
  return pool.binary(*op, a, index_value(pool, node->b, iters, extent));
}

// TVM's InferBound. Readers come first, because their loops say what is read of a stage; a state's
// stages stand producers first, so this goes from the last to the first.
class BoundInference {
 public:
  explicit BoundInference(ReplayNest& nest)
      : nest_(nest), pool_(nest.pool), stages_(nest.state.stages) {}

  Result<Unit> run() {
    nest_.regions.resize(stages_.size());
    nest_.loop_of.resize(stages_.size());
    for (int s = static_cast<int>(stages_.size()) - 1; s >= 0; --s) {
      const StateStage& stage = stages_[at(s)];
      if (stage.placeholder || stage.compute_at == ComputeAt::kInlined) continue;
      TRY(infer_region(s));
      TRY(pass_down_extents(s));
      make_loops(s);
    }
    return Unit{};
  }

 private:
  const Stage& body(int s) const { return nest_.structure->dag[StageId{s}]; }

  // An output is computed whole, another stage as far as the hull of what its readers load.
  Result<Unit> infer_region(int s) {
    const Stage& stage = body(s);
    ReplayRegion& region = nest_.regions[at(s)];
    if (stage.output) {
      if (stages_[at(s)].compute_at != ComputeAt::kRoot) {
        return Error("the output ", stage.name, " is not computed at root");
      }
      region.mins.assign(stage.axes.size(), pool_.constant(0));
      region.extents = stage.shape();
      return Unit{};
    }
    std::vector<std::optional<IndexSet>> read(stage.axes.size());
    const auto path = attach_path(nest_.state, s);
    const StorageScope scope = storage_scope(s, path);
    for (const int reader : nest_.structure->readers[at(s)]) {
      TRY(reader_domain(s, reader, scope, path));
      for (const Expr& access : nest_.structure->loads[at(reader)]) {
        const Load& load = *as<Load>(access);
        if (load.tensor.value == s) add_read(load, stage, read);
      }
    }
    for (size_t i = 0; i < read.size(); ++i) {
      const IndexSet whole{pool_.constant(0), stage.axes[i].extent - 1};
      const IndexSet set = read[i].value_or(whole);
      region.mins.push_back(set.min);
      region.extents.push_back(set.width + 1);
    }
    return Unit{};
  }

  // Returns the scope of the stage's buffer. If no step names a scope, the threads around the
  // attach path decide: the scope is as near to the threads as the path.
  StorageScope storage_scope(int s, std::span<const std::pair<int, int>> path) const {
    if (stages_[at(s)].scope != StorageScope::kAuto) return stages_[at(s)].scope;
    int rank = -1;
    for (const auto& [stage, iter] : path) {
      rank = std::max(rank, thread_rank(stages_[at(stage)].iters[at(iter)].annotation));
    }
    return rank < 0    ? StorageScope::kGlobal
           : rank == 0 ? StorageScope::kShared
                       : StorageScope::kLocal;
  }

  // Whether a loop counts as inside the attach point. A thread's does by TVM's rule, scope rank <=
  // thread rank, wherever it stands: a shared buffer holds what all threads of a block read, a
  // local one what its own thread reads. StorageScope's values are TVM's scope ranks.
  static bool is_relaxed(Annotation annotation, bool inside, StorageScope scope) {
    const int rank = thread_rank(annotation);
    if (rank < 0) return inside;
    if (scope == StorageScope::kWarp && annotation == Annotation::kThreadX) return true;
    return static_cast<int>(scope) <= rank;
  }

  // domain_: the values of the reader's roots while what is inside the attach point of `s` runs.
  Result<Unit> reader_domain(int s,
                             int reader,
                             StorageScope scope,
                             std::span<const std::pair<int, int>> path) {
    const StateStage& stage = stages_[at(reader)];
    const auto attach = path.empty() ? std::pair(-1, -1) : path.front();
    bool found = false;
    domain_.assign(stage.iters.size(), IndexSet{});
    // Visits the leaves from the innermost outwards. The loop that `s` is attached at stands still,
    // like the loops around it.
    for (auto leaf = stage.leaves.rbegin(); leaf != stage.leaves.rend(); ++leaf) {
      found |= attach == std::pair(reader, *leaf);
      const StateIterator& iter = stage.iters[at(*leaf)];
      const int loop = nest_.loop_of[at(reader)][at(*leaf)];
      const bool whole = loop >= 0 && is_relaxed(iter.annotation, !found, scope);
      domain_[at(*leaf)] = whole ? IndexSet{pool_.constant(0), iter.extent - 1}
                                 : IndexSet{leaf_value(reader, *leaf), 0};
    }
    // Then visits the loops around the reader. Some of these loops may be inside, too, or bound to
    // threads.
    relaxed_.assign(nest_.loops.size(), 0);
    bool any_relaxed = false;
    for (const auto& [outer, iter] : attach_path(nest_.state, reader)) {
      found |= attach == std::pair(outer, iter);
      const StateIterator& it = stages_[at(outer)].iters[at(iter)];
      const int loop = nest_.loop_of[at(outer)][at(iter)];
      if (loop < 0 || !is_relaxed(it.annotation, !found, scope)) continue;
      relaxed_[at(loop)] = it.extent;
      any_relaxed = true;
    }
    if (!found && !path.empty()) {
      return Error(body(s).name,
                   " is computed at ",
                   body(attach.first).name,
                   ", which is not around its reader ",
                   body(reader).name);
    }
    pass_up_sets(reader);
    if (!any_relaxed) return Unit{};
    for (int i = 0; i < stage.num_roots; ++i) {
      const IndexSet around = relax(pool_, domain_[at(i)].min, relaxed_);
      domain_[at(i)] = {around.min, around.width + domain_[at(i)].width};
    }
    return Unit{};
  }

  IndexId leaf_value(int s, int leaf) {
    const int loop = nest_.loop_of[at(s)][at(leaf)];
    return loop < 0 ? pool_.constant(0) : pool_.variable(loop, nest_.loops[at(loop)].extent);
  }

  IndexSet whole_of(int s, int iter) {
    const StateStage& stage = stages_[at(s)];
    const IndexId min =
        iter < stage.num_axes ? nest_.regions[at(s)].mins[at(iter)] : pool_.constant(0);
    return {min, stage.iters[at(iter)].extent - 1};
  }

  // Passes the sets of the leaves of stage `s` up to its root iterators.
  void pass_up_sets(int s) {
    const StateStage& stage = stages_[at(s)];
    for (int i = 0; i < stage.num_roots; ++i) {
      if (std::ranges::find(stage.leaves, i) == stage.leaves.end()) continue;
      const IndexSet whole = whole_of(s, i);  // a loop runs from 0, its axis from its min
      domain_[at(i)] = {pool_.add(domain_[at(i)].min, whole.min), domain_[at(i)].width};
    }
    for (auto r = stage.relations.rbegin(); r != stage.relations.rend(); ++r) {
      const IndexSet &outer = domain_[at(r->outer)], &inner = domain_[at(r->inner)];
      if (r->fuse) {
        unfuse(s, *r);
      } else if (outer == whole_of(s, r->outer) && inner == whole_of(s, r->inner)) {
        domain_[at(r->parent)] = whole_of(s, r->parent);
      } else {
        const int64_t factor = stage.iters[at(r->inner)].extent;
        const IndexId start = pool_.add(pool_.mul(outer.min, factor), inner.min);
        domain_[at(r->parent)] = {pool_.add(start, whole_of(s, r->parent).min),
                                  outer.width * factor + inner.width};
      }
    }
  }

  // A fused range that stays in one row keeps its place there; of another, the row counts whole.
  void unfuse(int s, const Relation& r) {
    const StateStage& stage = stages_[at(s)];
    const IndexSet fused = domain_[at(r.parent)];
    const IndexSet outer = whole_of(s, r.outer), inner = whole_of(s, r.inner);
    if (fused == whole_of(s, r.parent)) {
      domain_[at(r.outer)] = outer;
      domain_[at(r.inner)] = inner;
      return;
    }
    const int64_t row = stage.iters[at(r.inner)].extent;
    const IndexSet rows = combine(pool_, IndexOp::kFloorDiv, fused, {pool_.constant(row), 0});
    domain_[at(r.outer)] = {pool_.add(rows.min, outer.min), rows.width};
    const int64_t extent = fused.width + 1;
    const IndexNode& start = pool_[fused.min];
    const bool aligned =
        floor_mod(start.stride, extent) == 0 && floor_mod(start.residue, extent) == 0;
    if (fused.width == 0 || (row % extent == 0 && aligned)) {
      const IndexId first = pool_.floor_mod(fused.min, row);
      domain_[at(r.inner)] = {pool_.add(first, inner.min), fused.width};
    } else {
      domain_[at(r.inner)] = inner;
    }
  }

  // Adds what an access reads to what is read of the stage; no more than there is.
  void add_read(const Load& load, const Stage& stage, std::vector<std::optional<IndexSet>>& read) {
    for (size_t i = 0; i < read.size(); ++i) {
      const IndexSet whole{pool_.constant(0), stage.axes[i].extent - 1};
      IndexSet set = index_set(pool_, load.indices[i], domain_).value_or(whole);
      const IndexNode& min = pool_[set.min];
      if (min.high <= 0 && min.low + set.width >= whole.width) set = whole;
      read[i] = read[i] ? hull(pool_, *read[i], set) : set;
    }
  }

  // Extents of all iterators from the region's. An inner part is no longer than what it splits, but
  // where threads are bound to it.
  Result<Unit> pass_down_extents(int s) {
    StateStage& stage = stages_[at(s)];
    for (int i = 0; i < stage.num_axes; ++i) {
      stage.iters[at(i)].extent = nest_.regions[at(s)].extents[at(i)];
    }
    // Whether threads are bound to an iterator, or to one that was made of it.
    std::vector<bool> bound(stage.iters.size());
    for (const int leaf : stage.leaves) {
      bound[at(leaf)] = thread_rank(stage.iters[at(leaf)].annotation) >= 0;
    }
    for (auto r = stage.relations.rbegin(); r != stage.relations.rend(); ++r) {
      if (r->fuse) {
        bound[at(r->outer)] = bound[at(r->inner)] = bound[at(r->parent)];
      } else {
        bound[at(r->parent)] = bound[at(r->outer)] || bound[at(r->inner)];
      }
    }
    for (const Relation& r : stage.relations) {
      StateIterator &parent = stage.iters[at(r.parent)], &outer = stage.iters[at(r.outer)],
                    &inner = stage.iters[at(r.inner)];
      if (r.fuse) {
        if (inner.extent > kMaxLoop / outer.extent) return Error("a loop of over 2^48 iterations");
        parent.extent = outer.extent * inner.extent;
        continue;
      }
      const int given = r.nparts ? r.outer : r.inner;
      const int64_t rest = ceil_div(parent.extent, r.factor);
      const int64_t length = bound[at(given)] ? r.factor : std::min(r.factor, parent.extent);
      outer.extent = r.nparts ? length : rest;
      inner.extent = r.nparts ? rest : length;
    }
    return Unit{};
  }

  // Loops of one iteration are left out, but for those bound to threads (reference.md, program and
  // bindings).
  void make_loops(int s) {
    const StateStage& stage = stages_[at(s)];
    nest_.loop_of[at(s)].assign(stage.iters.size(), -1);
    for (const int leaf : stage.leaves) {
      const StateIterator& iter = stage.iters[at(leaf)];
      if (iter.extent == 1 && thread_rank(iter.annotation) < 0) continue;
      nest_.loop_of[at(s)][at(leaf)] = static_cast<int>(nest_.loops.size());
      nest_.loops.push_back({s, leaf, iter.extent, iter.annotation, false});
    }
  }

  ReplayNest& nest_;
  IndexPool& pool_;
  std::vector<StateStage>& stages_;
  std::vector<IndexSet> domain_;  // value sets of the reader's iterators
  std::vector<int64_t> relaxed_;  // one per loop: its extent if the loop counts as inside, else 0
};

}  // namespace

std::vector<std::pair<int, int>> attach_path(const State& state, int stage) {
  std::vector<std::pair<int, int>> path;
  for (int s = stage; state.stages[at(s)].compute_at == ComputeAt::kIterator;) {
    const int target = state.stages[at(s)].at_stage;
    const std::vector<int>& leaves = state.stages[at(target)].leaves;
    auto leaf = std::ranges::find(leaves, state.stages[at(s)].at_iter);
    CHECK(leaf != leaves.end());
    for (++leaf; leaf != leaves.begin();) path.emplace_back(target, *--leaf);
    s = target;
  }
  return path;
}

Result<Unit> infer_bounds(ReplayNest& nest) { return BoundInference(nest).run(); }

// A split's parent is outer * extent(inner) + inner; a fused iterator's parts are its quotient and
// its remainder by extent(inner). An axis starts at its region's min.
void pass_up_values(ReplayNest& nest, int stage, std::vector<IndexId>& values) {
  const StateStage& s = nest.state.stages[at(stage)];
  IndexPool& pool = nest.pool;
  const auto min_of = [&](int iter) {
    return iter < s.num_axes ? nest.regions[at(stage)].mins[at(iter)] : pool.constant(0);
  };
  for (int i = 0; i < s.num_axes; ++i) {
    if (values[at(i)].value >= 0) values[at(i)] = pool.add(values[at(i)], min_of(i));
  }
  for (auto r = s.relations.rbegin(); r != s.relations.rend(); ++r) {
    const int64_t inner = s.iters[at(r->inner)].extent;
    if (r->fuse) {
      const IndexId fused = values[at(r->parent)];
      if (fused.value < 0) continue;
      values[at(r->outer)] = pool.add(pool.floor_div(fused, inner), min_of(r->outer));
      values[at(r->inner)] = pool.add(pool.floor_mod(fused, inner), min_of(r->inner));
    } else {
      if (values[at(r->outer)].value < 0 || values[at(r->inner)].value < 0) continue;
      const IndexId start = pool.add(values[at(r->inner)], pool.mul(values[at(r->outer)], inner));
      values[at(r->parent)] = pool.add(start, min_of(r->parent));
    }
  }
}

std::vector<IndexId> access_indices(IndexPool& pool,
                                    const Load& access,
                                    const ComputeDag& dag,
                                    std::span<const IndexId> values) {
  const Stage& read = dag[access.tensor];
  std::vector<IndexId> indices;
  indices.reserve(access.indices.size());
  for (size_t i = 0; i < access.indices.size(); ++i) {
    indices.push_back(index_value(pool, access.indices[i], values, read.axes[i].extent));
  }
  return indices;
}

}  // namespace pruner::ansor
