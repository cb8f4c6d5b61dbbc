#include "space/gpu/kernels.h"

#include <algorithm>
#include <map>
#include <set>

#include "space/dag_edit.h"
#include "space/gpu/mma_contraction.h"

namespace pruner {
namespace {

class KernelMaker {
 public:
  KernelMaker(ComputeDag dag,
              const std::vector<std::string>& cross_thread,
              const Gpu& gpu,
              const LoopStructure& contraction)
      : dag_(std::move(dag)), cross_thread_(cross_thread), gpu_(gpu), contraction_(contraction) {}

  Kernels make() {
    find_pairs();
    fetch_operands();
    inline_stages();
    add_results();
    Kernels kernels;
    kernels.stages.resize(dag_.stages.size());
    for (int s = dag_.size() - 1; s >= 0; --s) {  // consumers first
      const StageId id{s};
      if (dag_[id].is_placeholder()) continue;
      const StageId reader = dag_[id].is_reduction() ? needed_by(id) : StageId{};
      kernels.stages[id] = {
          structure(id), reader.valid() ? root(reader) : root(id), reader, first_of_two(id)};
      if (reader.valid() && shared(reader) && crosses(id))
        kernels.stages[reader].structure = &kHeldRows;
    }
    for (KernelStage& stage : kernels.stages) stage.structure = structure_of_root(kernels, stage);
    kernels.agree = rows_agree(kernels) && pairs_agree();
    kernels.dag = std::move(dag_);
    return kernels;
  }

 private:
  bool crosses(StageId id) const {
    return dag_[id].is_reduction() &&
           std::ranges::find(cross_thread_, base_name(id)) != cross_thread_.end();
  }
  // Returns the stage's name without the suffix that add_results() adds.
  std::string base_name(StageId id) const {
    const std::string& name = dag_[id].name;
    return name.ends_with(kLocal) ? name.substr(0, name.size() - kLocal.size()) : name;
  }
  bool tiled(StageId id) const {
    if (!dag_[id].is_reduction() || !needs_multi_level_tiling(dag_, id) || crosses(id))
      return false;
    // Others than those of the instruction make an operand of it.
    return !contraction_.has_fragments() || find_mma(dag_, id, contraction_.instruction, gpu_);
  }
  bool shared(StageId id) const { return dag_[id].tag == kSharedTag; }
  bool transforms(StageId id) const { return !dag_[id].unrolled.empty(); }
  // Whether a stage is a transform of which another transform reads just what its tile needs.
  bool part(StageId id) const {
    const std::vector<StageId> readers = dag_.consumers(id);
    return transforms(id) && readers.size() == 1 && !dag_[id].output && transforms(readers[0]) &&
           dag_[readers[0]].tag != kTileTag;
  }

  // Finds contractions on tensor cores that have one reader and share their first operand: a kernel
  // computes both (a gated product).
  void find_pairs() {
    if (!contraction_.has_fragments()) return;
    for (StageId second{0}; second.value < dag_.size(); ++second.value) {
      for (StageId first{0}; first < second; ++first.value) {
        if (tiled(first) && tiled(second) && is_pair(first, second))
          pairs_.emplace(dag_[second].name, dag_[first].name);
      }
    }
  }
  bool is_pair(StageId first, StageId second) const {
    const std::set<StageId> ends = ends_of(first);
    if (ends.size() != 1 || ends_of(second) != ends) return false;
    if (dag_[first].output || dag_[second].output || dag_[first].dtype != dag_[second].dtype)
      return false;
    const auto one = find_mma(dag_, first, contraction_.instruction, gpu_),
               other = find_mma(dag_, second, contraction_.instruction, gpu_);
    if (!one || !other || one->a.stage != other->a.stage || one->b.stage == other->b.stage)
      return false;
    const auto reads = [&](StageId contraction, StageId operand) {
      std::vector<Expr> indices;
      visit(dag_[contraction].body, [&](const Expr& e) {
        const Load* read = as<Load>(e);
        if (read != nullptr && read->tensor == operand) indices = read->indices;
      });
      return indices;
    };
    return one->instruction == other->instruction && dag_[first].shape() == dag_[second].shape() &&
           one->a.terms_first == other->a.terms_first &&
           one->b.terms_first == other->b.terms_first &&
           std::ranges::equal(reads(first, one->a.stage),
                              reads(second, one->a.stage),
                              [](const Expr& a, const Expr& b) { return structural_equal(a, b); });
  }
  // Returns the stages in which what is made of a stage element by element ends.
  std::set<StageId> ends_of(StageId id) const {
    std::set<StageId> ends;
    for (const StageId reader : dag_.consumers(id)) {
      if (dag_[reader].output || dag_[reader].is_reduction() ||
          !reads_elementwise(dag_, reader, id)) {
        ends.insert(reader);
      } else {
        ends.merge(ends_of(reader));
      }
    }
    return ends;
  }
  // Whether both contractions of each pair have one root.
  bool pairs_agree() const {
    return std::ranges::all_of(pairs_, [&](const auto& pair) {
      const auto second = stage_named(pair.first), first = stage_named(pair.second);
      return first && second && follower(*first).valid() && follower(*first) == follower(*second);
    });
  }
  StageId first_of_two(StageId id) const {
    const auto found = pairs_.find(dag_[id].name);
    return found == pairs_.end() ? StageId{} : *stage_named(found->second);
  }
  std::optional<StageId> stage_named(const std::string& name) const {
    const auto found = std::ranges::find(dag_.stages, name, &Stage::name);
    if (found == dag_.stages.end()) return std::nullopt;
    return StageId{static_cast<int32_t>(found - dag_.stages.begin())};
  }

  // The reader that finishes what a reduction leaves, element by element. Of two contractions with
  // one reader that are no pair, the first: a kernel computes one.
  StageId follower(StageId id) const {
    const std::vector<StageId> readers = dag_.consumers(id);
    if (readers.size() != 1 || dag_[id].output) return {};
    const StageId reader = readers[0];
    for (const StageId other : dag_.producers(reader)) {
      if (tiled(id) && other < id && tiled(other) && first_of_two(id) != other) return {};
    }
    const bool follows = !dag_[reader].is_reduction() && !shared(reader) && !transforms(reader) &&
                         reads_elementwise(dag_, reader, id);
    return follows ? reader : StageId{};
  }

  // Contractions read their operands through shared memory (AddCacheRead).
  void fetch_operands() {
    for (int s = 0; s < dag_.size(); ++s) {
      if (!tiled(StageId{s})) continue;
      for (const StageId operand : dag_.producers(StageId{s})) {
        if (dag_[operand].axes.empty() || !reads_boxes(StageId{s}, operand)) continue;
        std::string name = dag_[operand].name + ".shared";
        if (const auto shared = stage_named(name); shared && shares(StageId{s}, *shared)) {
          redirect_in(StageId{s}, operand, *shared);
          continue;
        }
        if (has_stage(name)) name += "." + dag_[StageId{s}].name;  // second contraction's copy
        Stage copy = copy_stage(dag_, operand, name);
        copy.tag = kSharedTag;
        insert_stage(dag_, s, std::move(copy));
        ++s;
        redirect_in(StageId{s}, operand, StageId{s - 1});
      }
    }
  }
  bool has_stage(const std::string& name) const { return stage_named(name).has_value(); }
  // Whether the second contraction of a pair reads the copy of the first.
  bool shares(StageId contraction, StageId copy) const {
    const StageId first = first_of_two(contraction);
    return first.valid() && std::ranges::count(dag_.consumers(copy), first) > 0;
  }
  bool reads_boxes(StageId reader, StageId operand) const {
    for (const Access& access : accesses_of(dag_, reader)) {
      if (access.producer == operand && std::ranges::find(access.whole, true) != access.whole.end())
        return false;
    }
    return true;
  }
  void redirect_in(StageId reader, StageId from, StageId to) {
    dag_[reader].body = rewrite(dag_[reader].body, [&](const Expr& e) -> Expr {
      const Load* read = as<Load>(e);
      return read && read->tensor == from ? load(to, read->indices, e->dtype) : Expr();
    });
  }

  // All but reductions and outputs (AlwaysInline: on a GPU without a test but for the size).
  void inline_stages() {
    for (int s = dag_.size() - 1; s >= 0; --s) {
      const Stage& stage = dag_[StageId{s}];
      if (stage.is_placeholder() || stage.is_reduction() || stage.output || shared(StageId{s}))
        continue;
      const bool into =
          transforms(StageId{s}) ? is_tiled_like(StageId{s}) : fits_readers(dag_, StageId{s});
      if (into) inline_stage(dag_, StageId{s});
    }
  }
  // Whether the one reader of a transform may be computed in its tiles.
  bool is_tiled_like(StageId id) const {
    const std::vector<StageId> readers = dag_.consumers(id);
    return readers.size() == 1 && !dag_[readers[0]].is_reduction() && !shared(readers[0]) &&
           !transforms(readers[0]) && reads_elementwise(dag_, readers[0], id);
  }

  // A stage that writes what a contraction, or a reduction across threads, leaves (AddCacheWrite),
  // where no other does.
  void add_results() {
    for (int s = 0; s < dag_.size(); ++s) {
      const StageId id{s};
      const bool rows = crosses(id) && !row_root(id).valid() && !needed_by(id).valid();
      const bool needs = tiled(id) ? !follower(id).valid() : rows;
      if (!needs) continue;
      const Stage& stage = dag_[id];
      Stage copy = copy_stage(dag_, id, stage.name);
      copy.output = stage.output;
      dag_[id].output = false;
      dag_[id].name += kLocal;
      insert_stage(dag_, s + 1, std::move(copy));
      redirect(dag_, id, StageId{s + 1});
      ++s;
    }
  }

  // The stage whose rows need the reduction `id`, each one element of it: all its readers lead
  // there. Invalid: none.
  StageId row_root(StageId id) const {
    StageId found;
    if (dag_[id].output) return {};
    for (const StageId reader : dag_.consumers(id)) {
      const StageId root = crosses(reader) ? row_root(reader) : reader;
      if (!root.valid() || (found.valid() && found != root)) return {};
      found = root;
      if (!reads_row(reader, id)) return {};
    }
    if (!found.valid() || dag_[found].is_reduction() || shared(found) || transforms(found))
      return {};
    for (const StageId producer : dag_.producers(found)) {
      if (tiled(producer)) return {};
    }
    return found;
  }
  // Returns the first operand of a contraction on tensor cores, or the contraction's root, that the
  // reduction `id` is computed for in the same kernel: all that reads the reduction leads to
  // elements of this stage. Of a reduction across threads, the elements of a row need it, else one
  // element of the operand. Invalid: there is none.
  StageId needed_by(StageId id) const {
    const Stage& stage = dag_[id];
    if (!contraction_.has_fragments() || stage.output || tiled(id)) return {};
    // Lanes of a warp exchange what they have of a row.
    const bool exchanged = stage.combiner == Combiner::kSum || stage.combiner == Combiner::kMax;
    if (crosses(id) && (!exchanged || stage.dtype != DType::kFloat32)) return {};
    StageId found;
    for (const StageId reader : dag_.consumers(id)) {
      const StageId needs = crosses(id) && crosses(reader) ? needed_by(reader) : reader;
      if (!needs.valid() || (found.valid() && found != needs)) return {};
      found = needs;
      if (crosses(id) ? !reads_row(reader, id) : !reads_once(reader, id)) return {};
    }
    if (!found.valid()) return {};
    return is_first_factor(found) || (crosses(id) && is_root_of_rows(found, id)) ? found
                                                                                 : StageId{};
  }
  // Whether a stage follows a contraction of which the rows are those of the reduction.
  bool is_root_of_rows(StageId id, StageId reduction) const {
    for (const StageId producer : dag_.producers(id)) {
      if (!tiled(producer) || follower(producer) != id) continue;
      const auto mma = find_mma(dag_, producer, contraction_.instruction, gpu_);
      return mma && mma->m + 1 == row_rank(dag_[reduction]);
    }
    return false;
  }
  // `reader` reads each element of `producer` about once.
  bool reads_once(StageId reader, StageId producer) const {
    const std::vector<Access> accesses = accesses_of(dag_, reader);
    return std::ranges::count(accesses, producer, &Access::producer) == 1 &&
           dag_[producer].num_elements() >= dag_[reader].num_elements();
  }
  // Whether a stage is the rows that a contraction's instruction multiplies, of 16 bits.
  bool is_first_factor(StageId id) const {
    if (!shared(id) || dtype_bytes(dag_[id].dtype) != 2) return false;
    const StageId contraction = dag_.consumers(id)[0];
    const auto mma = find_mma(dag_, contraction, contraction_.instruction, gpu_);
    return mma && mma->a.stage == id && !mma->a.terms_first;
  }
  // `reader` reads `producer` at its own leading axes.
  bool reads_row(StageId reader, StageId producer) const {
    const size_t rank = static_cast<size_t>(row_rank(dag_[producer]));
    if (dag_[reader].axes.size() < rank) return false;
    for (size_t d = 0; d < rank; ++d) {
      if (dag_[reader].axes[d].extent != dag_[producer].axes[d].extent) return false;
    }
    for (const Access& access : accesses_of(dag_, reader)) {
      for (size_t d = 0; access.producer == producer && d < rank; ++d) {
        const bool own = lone_iterator(access.indices[d]) == static_cast<int>(d);
        if (!own && dag_[producer].axes[d].extent != 1) return false;
      }
    }
    return true;
  }

  const LoopStructure* structure(StageId id) const {
    if (shared(id)) return &kFetch;
    if (transforms(id)) return &kThreadTransform;
    if (tiled(id)) return &contraction_;
    if (!crosses(id)) return &kThreadElements;
    return needed_by(id).valid() ? &kHeldRows : &kBlockRows;
  }
  // Nothing but reductions of one thread an element is computed in its kernel.
  bool simple_root(StageId id) const {
    for (const StageId producer : dag_.producers(id)) {
      if (tiled(producer) || (crosses(producer) && row_root(producer) == id)) return false;
    }
    return true;
  }
  StageId root(StageId id) const {
    if (shared(id) || part(id)) return root(dag_.consumers(id)[0]);
    if (tiled(id)) return follower(id);
    if (crosses(id)) return row_root(id);
    const StageId reader = dag_[id].is_reduction() ? follower(id) : StageId{};
    return reader.valid() && simple_root(reader) ? reader : id;
  }
  // Returns the structure of a root: the stages in its kernel decide it.
  const LoopStructure* structure_of_root(const Kernels& kernels, const KernelStage& stage) const {
    if (stage.structure != &kThreadElements || stage.needed_by.valid()) return stage.structure;
    for (const KernelStage& other : kernels.stages) {
      const bool decides = other.structure->fetches() || other.structure == &kBlockRows;
      if (other.root == stage.root && decides) return other.structure;
    }
    return stage.structure;
  }

  bool rows_agree(const Kernels& kernels) const {
    std::map<int32_t, int> ranks;  // rank of the row reductions of a root, or of a held operand
    for (size_t i = 0; i < kernels.stages.size(); ++i) {
      const StageId id{static_cast<int32_t>(i)};
      const KernelStage& stage = kernels.stages[id];
      const StageId reader = stage.needed_by.valid() ? stage.needed_by : stage.root;
      const bool of_rows = stage.structure == &kBlockRows || stage.structure == &kHeldRows;
      if (stage.needed_by.valid() && stage.structure != kernels.stages[reader].structure &&
          kernels.stages[reader].structure == &kHeldRows)
        return false;
      if (!of_rows || reader == id || !dag_[id].is_reduction()) continue;
      const int rank = row_rank(dag_[id]);
      // A lane's elements of a held row are of one axis.
      if (stage.needed_by.valid() && rank + 1 != std::ssize(dag_[reader].axes)) return false;
      if (ranks.emplace(reader.value, rank).first->second != rank) return false;
    }
    return true;
  }

  static constexpr std::string_view kLocal = ".local";
  ComputeDag dag_;
  const std::vector<std::string>& cross_thread_;
  const Gpu& gpu_;
  const LoopStructure& contraction_;
  std::map<std::string, std::string> pairs_;  // the first contraction of each second one, by name
};

}  // namespace

Kernels make_kernels(ComputeDag dag,
                     const std::vector<std::string>& cross_thread,
                     const Gpu& gpu,
                     const LoopStructure& structure) {
  return KernelMaker(std::move(dag), cross_thread, gpu, structure).make();
}

int row_rank(const Stage& reduction) {
  int rank = static_cast<int>(reduction.axes.size());
  while (rank > 0 && reduction.axes[static_cast<size_t>(rank) - 1].extent == 1) --rank;
  return rank;
}

std::vector<std::string> cross_thread_reductions(const ComputeDag& dag, const Gpu& gpu) {
  std::vector<std::string> names;
  for (int s = 0; s < dag.size(); ++s) {
    const Stage& stage = dag[StageId{s}];
    if (!stage.is_reduction()) continue;
    const int64_t outputs = stage.num_elements(), terms = stage.reduce_size();
    const bool pays = needs_multi_level_tiling(dag, StageId{s})
                          ? outputs <= gpu.max_threads_per_block && outputs < terms
                          : terms > gpu.warp_size;
    if (pays) names.push_back(stage.name);
  }
  return names;
}

}  // namespace pruner
