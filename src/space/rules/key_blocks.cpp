// Attention by blocks of keys, so that no more than a block of a tile's scores stands in memory
// (FlashAttention, Dao et al., 2022), and threads may divide the keys (its split for decoding).
// Each block has a softmax of its own; the blocks are weighed by how their maxima differ:
//   M[i, o] = max_j S[i, o, j]
//   E[i, o, j] = exp(S[i, o, j] - M[i, o])
//   L[i, o] = sum_j E[i, o, j]
//   P[i, o, d] = sum_j E[i, o, j] V[o * W + j, d] / L[i, o]
//   w[i, o] = L[i, o] exp(M[i, o] - max_o M[i, o])
//   sum_j E[i, j] V[j, d] = sum_o w[i, o] P[i, o, d]
//   sum_j E[i, j] = sum_o w[i, o]
// There the maximum and the sum run along with the blocks; here they are kept, eight bytes a row
// and block, and the results of a block are not scaled anew with each further one.
#include <algorithm>
#include <limits>
#include <optional>

#include "space/dag_edit.h"
#include "space/sketch_rule.h"
#include "space/weighed_softmax.h"

namespace pruner {
namespace {

constexpr int64_t kLeastBlock = 64, kMostBlock = 256;

// The most keys of a block, in whole vectors, of which several make up the axis; 0: none.
int64_t block_of(int64_t keys, int64_t lanes) {
  for (int64_t block = kMostBlock; block >= kLeastBlock; --block)
    if (keys % block == 0 && block % lanes == 0 && block < keys) return block;
  return 0;
}

class KeyBlocks {
 public:
  KeyBlocks(ComputeDag& dag, const WeighedSoftmax& softmax, int64_t block)
      : dag_(dag), s_(softmax), block_(block) {}

  void run() {
    collect_scores();
    const StageId whole_sum = copy_behind(s_.weighed, s_.sum);
    const StageId whole = copy_behind(whole_sum, s_.weighed);
    for (const StageId id : divided_) divide(id);
    for (const StageId id : {s_.largest, s_.sum}) divide_row(id);
    divide_weighed();
    combine_blocks(whole_sum, whole);
  }

 private:
  // The stages with a score for each key: up to the contraction, as far as no other reads them.
  void collect_scores() {
    divided_ = {s_.exps, s_.scores};
    for (size_t at = 1; at < divided_.size(); ++at) {
      for (const StageId id : dag_.producers(divided_[at])) {
        const bool own = !dag_[id].is_placeholder() && !dag_[id].output &&
                         dag_.consumers(id).size() == 1 &&
                         reads_elementwise(dag_, divided_[at], id);
        if (own) divided_.push_back(id);
      }
    }
  }

  // A copy of `of` behind stage `before`, which takes its readers' place.
  StageId copy_behind(StageId before, StageId of) {
    const StageId copy{before.value + 1};
    insert_stage(dag_, copy.value, copy_stage(dag_, of, dag_[of].name));
    redirect(dag_, of, copy);
    dag_[of].name += ".block";
    return copy;
  }

  bool has_blocks(StageId id) const { return std::ranges::find(divided_, id) != divided_.end(); }

  // A body at new values of its iterators, with the block that its reads are of.
  Expr with_block(const Expr& body,
                  const std::vector<Expr>& values,
                  const Expr& o,
                  const Expr& j) const {
    return rewrite(body, [&](const Expr& e) -> Expr {
      if (const Var* var = as<Var>(e)) return values[static_cast<size_t>(var->id.value)];
      const Load* read = as<Load>(e);
      if (read == nullptr || !(has_blocks(read->tensor) || read->tensor == s_.largest)) return {};
      std::vector<Expr> indices;
      for (const Expr& index : read->indices) indices.push_back(substitute(index, values));
      if (has_blocks(read->tensor)) {
        indices.back() = o;
        indices.push_back(j);
        return load(read->tensor, std::move(indices), e->dtype);
      }
      // A block without visible keys has no maximum: its terms are exp(-inf) = 0, no differences of
      // infinities.
      indices.push_back(o);
      return max(load(read->tensor, std::move(indices), e->dtype),
                 float_imm(std::numeric_limits<float>::lowest(), e->dtype));
    });
  }

  Iterator blocks_of(const Iterator& keys) const {
    return {keys.name + "_o", keys.extent / block_, keys.open};
  }
  Iterator within(const Iterator& keys) const { return {keys.name + "_i", block_}; }

  // Iterator `o` of the stage is new; without it, the one numbered `key` was k = o * block + j.
  void divide_body(Stage& stage, size_t o, size_t key) const {
    std::vector<Expr> values = iterator_vars(stage);
    const Expr block = values[o];
    values.erase(values.begin() + static_cast<int64_t>(o));
    const Expr place = values[key];
    values[key] = block * Expr(block_) + place;
    stage.body = with_block(stage.body, values, block, place);
  }

  // X[..., k] -> X[..., o, j], k = o * block + j.
  void divide(StageId id) {
    Stage& stage = dag_[id];
    const size_t last = stage.axes.size() - 1;
    const Iterator keys = stage.axes[last];
    stage.axes[last] = blocks_of(keys);
    stage.axes.push_back(within(keys));
    divide_body(stage, last, last);
  }

  // X[...] = fold of Y[..., k] -> X[..., o] = fold of Y[..., o, j]
  void divide_row(StageId id) {
    Stage& stage = dag_[id];
    Iterator& keys = stage.reduce_axes[0];
    stage.axes.push_back(blocks_of(keys));
    keys = within(keys);
    const StageId rows = as<Load>(stage.body)->tensor;
    stage.body = load(rows, iterator_vars(stage), stage.dtype);
    stage.tag = kKeptTag;
  }

  // C[..., d] -> C[..., o, d], and the mean of each block behind it.
  void divide_weighed() {
    Stage& stage = dag_[s_.weighed];
    const size_t last = stage.axes.size() - 1;
    Iterator& keys = stage.reduce_axes[0];
    stage.axes.insert(stage.axes.begin() + static_cast<int64_t>(last), blocks_of(keys));
    keys = within(keys);
    divide_body(stage, last, stage.axes.size() - 1);
  }

  // Rows of the softmax as a stage that weighs values reads them at `values`.
  std::vector<Expr> row_of_weighed(const std::vector<Expr>& values) const {
    std::vector<Expr> row;
    visit(dag_[s_.weighed].body, [&](const Expr& e) {
      const Load* read = as<Load>(e);
      if (read == nullptr || read->tensor != s_.exps || !row.empty()) return;
      for (size_t d = 0; d + 2 < read->indices.size(); ++d)
        row.push_back(substitute(read->indices[d], values));
    });
    return row;
  }

  static std::vector<Expr> followed_by(std::vector<Expr> list, const Expr& last) {
    list.push_back(last);
    return list;
  }

  void combine_blocks(StageId whole_sum, StageId whole) {
    const DType dtype = dag_[s_.sum].dtype;
    const std::string weighed = dag_[whole].name;
    // P; a block's largest term is 1, so L is below 1 where all are 0.
    Stage mean = copy_stage(dag_, s_.weighed, weighed + ".mean");
    std::vector<Expr> vars = iterator_vars(dag_[s_.weighed]);
    const Expr o = vars[mean.axes.size() - 2];
    const Expr terms = load(s_.sum, followed_by(row_of_weighed(vars), o), dtype);
    mean.body = mean.body * cast(mean.dtype, float_imm(1, dtype) / max(terms, float_imm(1, dtype)));
    mean.tag = "elemwise";
    const StageId means{s_.weighed.value + 1};
    insert_stage(dag_, means.value, std::move(mean));

    const Iterator blocks = dag_[s_.sum].axes.back();
    Stage largest = dag_[s_.largest];
    dag_[s_.largest].name += ".block";
    largest.tag.clear();
    largest.axes.pop_back();
    largest.reduce_axes = {blocks};
    largest.body = load(s_.largest, iterator_vars(largest), dtype);
    const StageId whole_largest{means.value + 1};
    insert_stage(dag_, whole_largest.value, std::move(largest));

    Stage weight = copy_stage(dag_, s_.sum, weighed + ".weight");
    std::vector<Expr> at = iterator_vars(weight);
    const Expr own = load(s_.largest, at, dtype);
    at.pop_back();
    weight.body =
        weight.body * call(Intrinsic::kExp, {own - load(whole_largest, std::move(at), dtype)});
    weight.tag = "elemwise";
    const StageId weights{means.value + 2};
    insert_stage(dag_, weights.value, std::move(weight));

    fold(StageId{whole_sum.value + 3}, blocks, [&](const std::vector<Expr>& i) {
      return load(weights, i, dtype);
    });
    fold(StageId{whole.value + 3}, blocks, [&](const std::vector<Expr>& i) {
      std::vector<Expr> block(i.begin(), i.end() - 1);
      block.insert(block.end() - 1, i.back());
      const Expr share = load(weights, followed_by(row_of_weighed(block), i.back()), dtype);
      return cast(dag_[whole].dtype, share) * load(means, block, dag_[means].dtype);
    });
  }

  // Makes a stage the sum over the blocks of what `term` says at its iterators.
  void fold(StageId id, const Iterator& blocks, const auto& term) {
    Stage& stage = dag_[id];
    stage.combiner = Combiner::kSum;
    stage.reduce_axes = {blocks};
    stage.body = term(iterator_vars(stage));
    stage.tag.clear();
  }

  ComputeDag& dag_;
  const WeighedSoftmax s_;
  const int64_t block_;
  std::vector<StageId> divided_;
};

bool apply(ComputeDag& dag, const Target& target) {
  return rewrite_stages(dag, [&](StageId id) {
    const std::optional<WeighedSoftmax> softmax = softmax_of(dag, id);
    if (!softmax) return false;
    const Stage& scores = dag[softmax->scores];
    const int64_t block = block_of(scores.axes.back().extent, target.lanes(4));
    if (block == 0) return false;
    KeyBlocks(dag, *softmax, block).run();
    return true;
  });
}

}  // namespace

const Form kKeyBlocks = {"key-blocks", apply, false};

}  // namespace pruner
