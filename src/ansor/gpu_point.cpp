// A GPU's record: blocks, threads and tiles of contractions, threads of elements and rows.
#include <fmt/format.h>

#include <algorithm>

#include "ansor/wanted_point.h"

namespace pruner::ansor {

namespace {

// The factor of the split whose inner part has the annotation; 0: there is none.
int64_t factor_at(const StateStage& stage, Annotation annotation) {
  for (const Relation& r : stage.relations) {
    if (!r.fuse && !r.nparts && annotation_of(stage, r.inner) == annotation) return r.factor;
  }
  return 0;
}

class GpuPointReader : public PointReader {
 public:
  using PointReader::PointReader;

  WantedPoint read() {
    if (!match_.same_stages) differs("other stages");
    for (const StagePlan& plan : sketch_.plans) {
      if (number(plan.stage) < 0) continue;
      const bool root = plan.stage == plan.root;
      if (plan.structure->fetches()) {
        root ? read_block_tile(plan) : read_thread_tile(plan);
      } else if (plan.structure == &kFetch) {
        read_fetch(plan);
      } else if (plan.structure == &kBlockRows) {
        if (!root) read_row_reduction(plan);
      } else if (root) {
        read_elements(plan);
      } else {
        differs("a reduction is in a kernel of its own");
      }
    }
    return std::move(wanted_);
  }

 private:
  // Returns the decision of the level that is bound to `bind`, for the plan's one axis, or kFixed.
  static DecisionRef decision_of(const StagePlan& plan, Bind bind) {
    DecisionRef found = kFixed;
    for (size_t l = 0; l < plan.structure->levels.size(); ++l) {
      const DecisionRef own = plan.tiles[0].decision(static_cast<int>(l));
      if (plan.structure->levels[l].bind == bind && own != kFixed) found = own;
    }
    return found;
  }

  // The same reductions are computed across threads.
  void check_rows(const StagePlan& plan, bool rows) {
    if (rows != reduces_over_threads(stage(number(plan.stage))))
      differs("other reductions across threads");
  }

  // The root of a contraction: fused blocks, virtual threads and threads, then one thread's tile.
  void read_block_tile(const StagePlan& plan) {
    check_rows(plan, false);
    const StateStage& root = stage(number(plan.stage));
    const Annotation bound[] = {Annotation::kBlockX, Annotation::kVThread, Annotation::kThreadX};
    bool same = root.compute_at == ComputeAt::kRoot && root.leaves.size() >= 3;
    for (size_t i = 0; i < 3 && same; ++i) same = annotation_of(root, root.leaves[i]) == bound[i];
    if (!same) differs("other loops around a contraction");
  }

  // SSSRRSRS.
  void read_thread_tile(const StagePlan& plan) {
    check_rows(plan, false);
    const StateStage& tiled = stage(number(plan.stage));
    const int root = number(plan.root);
    const bool attached = root >= 0 && tiled.compute_at == ComputeAt::kIterator &&
                          tiled.at_stage == root &&
                          annotation_of(stage(root), tiled.at_iter) == Annotation::kThreadX;
    if (!attached) differs("a contraction that is not computed by each thread");
    std::vector<std::vector<SplitPart>> axes;
    bool tiles = true;
    for (int a = 0; a < tiled.num_roots; ++a) {
      axes.push_back(parts_of(tiled, a));
      tiles = tiles && axes.back().size() == (a < tiled.num_axes ? 5u : 3u);
    }
    if (!tiles) return differs("other tiles");
    if (!in_order(tiled, axes)) differs("tiles in another order");
    if (attached) match_root(stage(root), axes);
    for (const AxisTiles& own : plan.tiles) {
      const std::vector<int64_t> tile = factors(tiled, own.axis);
      size_t part = 0;  // SSSRRSRS has five parts of a spatial axis, three of a reduce axis
      for (size_t l = 0; l < plan.structure->levels.size(); ++l) {
        const Level& level = plan.structure->levels[l];
        const bool reduction = level.axes == Axes::kReduction;
        if (reduction != (own.axis >= tiled.num_axes)) continue;
        if (part > 0 && tile.size() == (reduction ? 3u : 5u)) {
          want(own.decision(static_cast<int>(l)),
               static_cast<double>(tile[part]),
               fmt::format("{} of {}", level.name, reduction ? "a reduction" : "an axis"));
        }
        ++part;
      }
    }
    const int64_t unroll = std::max(unroll_of(tiled), root < 0 ? 0 : unroll_of(stage(root)));
    want(plan.unroll, static_cast<double>(unroll), "unrolling", 0);
  }

  static bool in_order(const StateStage& stage, const std::vector<std::vector<SplitPart>>& axes) {
    struct Level {
      bool reduce;
      size_t part;
    };
    constexpr Level kOrder[] = {{false, 0},
                                {false, 1},
                                {false, 2},
                                {true, 0},
                                {true, 1},
                                {false, 3},
                                {true, 2},
                                {false, 4}};
    std::vector<int> leaves;
    for (const Level& level : kOrder) {
      for (int a = 0; a < stage.num_roots; ++a) {
        if ((a >= stage.num_axes) == level.reduce) leaves.push_back(axes[a][level.part].iter);
      }
    }
    return leaves == stage.leaves;
  }

  // The root is split as the contraction is, with one tile a thread.
  void match_root(const StateStage& root, const std::vector<std::vector<SplitPart>>& axes) {
    bool same = true;
    for (int a = 0; a < root.num_axes && static_cast<size_t>(a) < axes.size(); ++a) {
      const std::vector<SplitPart> mine = parts_of(root, a);
      const std::vector<SplitPart>& tiles = axes[a];
      same = same && tiles.size() == 5 && mine.size() == 4 && mine[1].factor == tiles[1].factor &&
             mine[2].factor == tiles[2].factor &&
             mine[3].factor == tiles[3].factor * tiles[4].factor;
    }
    if (!same) differs("a contraction's reader has other tiles");
  }

  void read_fetch(const StagePlan& plan) {
    const StageId reader = sketch_.tables->consumers[plan.stage][0];
    const StateStage& shared = stage(number(plan.stage));
    const bool inside = shared.compute_at == ComputeAt::kIterator && number(reader) >= 0 &&
                        shared.at_stage == number(reader);
    if (!inside) return differs("a shared tile at another place");
    const StateStage& contraction = stage(number(reader));
    const int last_axis = contraction.num_roots - 1;
    if (contraction.num_roots == contraction.num_axes ||
        shared.at_iter != parts_of(contraction, last_axis)[0].iter)
      differs("a shared tile at another place");
    int64_t threads = 1;
    for (int a = 0; a < contraction.num_axes; ++a) {
      const std::vector<SplitPart> parts = parts_of(contraction, a);
      threads *= parts.size() == 5 ? parts[2].factor : 0;
    }
    if (factor_at(shared, Annotation::kThreadX) != threads)
      differs("a shared tile is fetched by other threads");
    const int64_t vector = std::max<int64_t>(factor_at(shared, Annotation::kVectorize), 1);
    want(decision_of(plan, Bind::kVector), static_cast<double>(vector), "a run of");
  }

  // Blocks of threads, one element each; few elements are one block.
  void read_elements(const StagePlan& plan) {
    check_rows(plan, false);
    const StateStage& elements = stage(number(plan.stage));
    const size_t reductions = static_cast<size_t>(elements.num_roots - elements.num_axes);
    const bool blocks = !elements.leaves.empty() &&
                        annotation_of(elements, elements.leaves[0]) == Annotation::kBlockX;
    const size_t bound = blocks ? 2 : 1;
    if (elements.compute_at != ComputeAt::kRoot || elements.leaves.size() != bound + reductions ||
        annotation_of(elements, elements.leaves[bound - 1]) != Annotation::kThreadX)
      differs("other loops of an element's thread");
    const int64_t threads = factor_at(elements, Annotation::kThreadX);
    if (blocks || threads != 0)
      want(decision_of(plan, Bind::kThreads), static_cast<double>(threads), "threads of a block");
    want(plan.unroll, static_cast<double>(unroll_of(elements)), "unrolling", 0);
  }

  // One row a block.
  void read_row_reduction(const StagePlan& plan) {
    check_rows(plan, true);
    const StateStage& row = stage(number(plan.stage));
    const int64_t threads = factor_at(row, Annotation::kThreadX);
    if (threads == 0) return differs("a row without a split");
    if (unroll_of(row) > 0) differs("an unrolled row");
    want(decision_of(plan, Bind::kThreads), static_cast<double>(threads), "threads of a row");
  }
};

}  // namespace

WantedPoint wanted_on_gpu(const Space& space, const PointMatch& match, const State& state) {
  return GpuPointReader(space, match, state).read();
}

}  // namespace pruner::ansor
