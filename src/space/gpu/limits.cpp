// The limits that a GPU candidate must keep, and the drawing of candidates within these limits.
#include <algorithm>
#include <numeric>
#include <ranges>

#include "space/factors.h"
#include "space/gpu/space.h"
#include "space/matrix_lines.h"
#include "space/nearest.h"
#include "space/sketch_rule.h"
#include "support/ceil_div.h"
#include "target/machine_model.h"

namespace pruner {
namespace {

constexpr int64_t kMostBlocks = (int64_t{1} << 31) - 1;

// Whether tiles of an axis fit it. Both are counted in what an instruction takes, which is the
// least that a tile can have.
bool fits_axis(int64_t extent, int64_t tile, int64_t of_instruction) {
  return wastes_little(ceil_div(extent, of_instruction), tile / of_instruction);
}

class Limits {
 public:
  Limits(const Sketch& sketch, const Gpu& gpu, const Candidate& candidate)
      : sketch_(sketch), gpu_(gpu), factors_(candidate) {}

  std::string problem() const {
    for (const StagePlan& plan : sketch_.plans) {
      std::string found = of(plan);
      if (!found.empty()) return found;
    }
    return "";
  }

  /// Whether the block has registers for the sums of a contraction's root.
  bool registers_suffice(const StagePlan& root) const {
    int64_t accumulators = 1;
    for (const AxisTiles& tiles : root.tiles) accumulators *= elements_of_thread(root, tiles);
    return registers_suffice(root, accumulators);
  }
  /// Returns the most bytes of shared memory that a contraction may take.
  int64_t most_shared_bytes(const StagePlan& contraction) const {
    return contraction.structure->has_fragments() ? gpu_.most_shared_bytes_per_block
                                                  : gpu_.shared_bytes_per_block;
  }
  /// Returns the bytes of shared memory that a contraction's operands, or its sums, take.
  int64_t shared_bytes(const StagePlan& contraction) const {
    int64_t bytes = 0;
    for (const StagePlan& plan : sketch_.plans) {
      if (!plan.operand || sketch_.plan(plan.at).root != contraction.root) continue;
      const int64_t buffers = plan.is_held() ? 1 : factors_.value(contraction.buffers);
      const int64_t own = buffers * fetched_elements(plan) * dtype_bytes(stage(plan).dtype);
      const int64_t unit = contraction.structure->is_of_groups() ? kGroupAlignment : 1;
      bytes += ceil_div(own, unit) * unit;
    }
    for (const StagePlan& plan : sketch_.plans)
      if (plan.at == contraction.root && plan.memory == Scope::kShared)
        bytes += row_bytes(plan, contraction.root);
    // Sums lie where the chunks were.
    return goes_through_shared(contraction) ? std::max(bytes, sums_bytes(contraction)) : bytes;
  }
  int64_t fetched_elements(const StagePlan& fetch) const {
    const std::vector<int64_t> box = factors_.fetched_box(sketch_, fetch);
    return std::accumulate(box.begin(), box.end(), int64_t{1}, std::multiplies<>());
  }

  /// Returns the number of contractions that warps compute in a root's kernel: 1 or 2.
  int64_t contractions(const StagePlan& root) const {
    if (!root.structure->has_fragments() || sketch_.tables->attention) return 1;
    return std::ranges::count_if(sketch_.plans, [&](const StagePlan& plan) {
      return plan.root == root.stage && sketch_.tables->mmas[plan.stage].has_value();
    });
  }

 private:
  const Stage& stage(const StagePlan& plan) const { return sketch_.dag[plan.stage]; }

  std::string of(const StagePlan& plan) const {
    std::string problem = tiles_problem(plan);
    if (!problem.empty()) return problem;
    if (plan.stage == plan.root) return root_problem(plan);
    if (plan.operand) {
      // Operands of matrix instructions are copied in the longest runs that there are.
      const bool divided = sketch_.plan(plan.at).structure->has_fragments() ||
                           fetched_elements(plan) % vector_of(plan) == 0;
      return divided ? "" : "runs do not divide what is fetched of " + stage(plan).name;
    }
    if (!plan.structure->fetches()) return "";
    if (shared_bytes(plan) > most_shared_bytes(plan)) return "too much shared memory";
    return group_takes_columns(plan) ? "" : "no instruction of a group has so many columns";
  }
  bool group_takes_columns(const StagePlan& contraction) const {
    if (!contraction.structure->is_of_groups()) return true;
    const MmaContraction& c = *sketch_.tables->mmas[contraction.stage];
    int64_t fragments = 1;
    for (const AxisTiles& tiles : sketch_.plan(contraction.root).tiles)
      if (tiles.axis == c.n)
        fragments = factors_.inside(tiles, contraction.structure->fetch.level + 1);
    return c.instruction->takes(fragments * kColumnLanes / c.instruction->n);
  }
  // Returns the bytes of shared memory for what the root of a contraction needs of the block's
  // rows.
  int64_t row_bytes(const StagePlan& reduction, StageId root) const {
    for (const AxisTiles& tiles : sketch_.plan(root).tiles)
      if (tiles.axis == reduction.row_axes - 1)
        return factors_.inside(tiles, 0) * dtype_bytes(stage(reduction).dtype);
    return dtype_bytes(stage(reduction).dtype);
  }
  bool goes_through_shared(const StagePlan& contraction) const {
    return factors_.value(contraction.epilogue, 0) == 1;
  }
  int64_t sums_bytes(const StagePlan& contraction) const {
    const MmaContraction& c = *sketch_.tables->mmas[contraction.stage];
    int64_t rows = 1, columns = 1;
    for (const AxisTiles& tiles : sketch_.plan(contraction.root).tiles) {
      if (tiles.axis == c.m) rows = factors_.inside(tiles, 0);
      if (tiles.axis == c.n) columns = factors_.inside(tiles, 0);
    }
    return epilogue_bytes(rows, columns);
  }
  int64_t vector_of(const StagePlan& fetch) const {
    return factors_.bound(fetch, fetch.tiles[0], Bind::kVector);
  }

  std::string tiles_problem(const StagePlan& plan) const {
    for (const AxisTiles& tiles : plan.tiles) {
      const bool own = plan.accumulates() == (tiles.axis >= std::ssize(stage(plan).axes));
      if (tiles.axis < 0 || !own) continue;
      const Iterator& axis = iterator_of(stage(plan), tiles.axis);
      if (!fits_axis(axis.extent, factors_.inside(tiles, 0), fixed_elements(tiles)))
        return "the tiles of " + stage(plan).name + "." + axis.name + " do not fit it";
    }
    return "";
  }

  std::string root_problem(const StagePlan& plan) const {
    const int64_t threads = factors_.block_threads(plan);
    if (threads > gpu_.max_threads_per_block) return "too many threads in a block";
    const bool tiled = plan.structure->fetches();
    const bool small = tiled && stage(plan).num_elements() <= 2 * gpu_.warp_size;
    if (threads < gpu_.warp_size && !small) return "fewer threads than a warp";
    int64_t vthreads = 1, accumulators = 1, blocks = 1;
    for (const AxisTiles& tiles : plan.tiles) {
      const int64_t block = factors_.inside(tiles, 0);
      vthreads *= factors_.bound(plan, tiles, Bind::kVirtualThreads);
      accumulators *= elements_of_thread(plan, tiles);
      blocks *= ceil_div(extent(plan, tiles), block);
    }
    if (vthreads > gpu_.max_vthreads) return "too many virtual threads";
    if (tiled && !registers_suffice(plan, accumulators))
      return "the accumulators exceed the registers";
    if (blocks > kMostBlocks) return "too many blocks";
    int64_t bytes = 0;  // a partial result a thread
    for (const StagePlan& other : sketch_.plans) {
      if (other.root == plan.stage && other.structure == &kBlockRows && other.accumulates())
        bytes += threads * dtype_bytes(stage(other).dtype);
    }
    return bytes > gpu_.shared_bytes_per_block ? "too much shared memory" : "";
  }
  int64_t elements_of_thread(const StagePlan& root, const AxisTiles& tiles) const {
    return factors_.inside(tiles, 0) / factors_.bound(root, tiles, Bind::kThreads) /
           factors_.bound(root, tiles, Bind::kWarps);
  }
  bool registers_suffice(const StagePlan& root, int64_t accumulators) const {
    const int64_t registers = contractions(root) * accumulators + fragment_registers(root) +
                              attention_registers() + kGpuModel.registers_beside_accumulators;
    const int64_t most = std::max(registers, row_registers(root));
    if (most > gpu_.max_registers_per_thread) return false;
    return !root.structure->has_fragments() ||
           most * factors_.block_threads(root) <= gpu_.registers_per_block;
  }
  /// Returns the registers of a thread for rows that warps load before a contraction's chunks.
  int64_t row_registers(const StagePlan& root) const {
    int64_t most = 0;
    for (const StagePlan& plan : sketch_.plans) {
      if (plan.root != root.stage || plan.structure != &kHeldRows || !stage(plan).is_reduction())
        continue;
      most = std::max(
          most,
          row_lane_registers(stage(plan).reduce_size()) + kGpuModel.registers_beside_accumulators);
    }
    return most;
  }
  /// Returns the registers of a thread that an instruction's operands take, or their descriptors,
  /// beside the sums.
  int64_t fragment_registers(const StagePlan& root) const {
    if (!root.structure->has_fragments()) return 0;
    if (root.structure->is_of_groups()) return kGpuModel.group_registers;
    int64_t rows = 0, columns = 0;
    for (const AxisTiles& tiles : root.tiles) {
      const int64_t lanes = factors_.bound(root, tiles, Bind::kThreads);
      const int64_t own = factors_.inside(tiles, root.structure->fetch.level + 1);
      if (lanes == kRowLanes) rows = own;
      if (lanes == kColumnLanes) columns = own;
    }
    return operand_registers(rows, contractions(root) * columns);
  }
  /// Returns the registers of a thread that attention holds of a chunk of keys: scores, weights of
  /// half as many bytes, and three numbers a row. 0 in other kernels.
  int64_t attention_registers() const {
    if (!sketch_.tables->attention) return 0;
    int64_t scores = 1, rows = 1;
    for (const AxisTiles& tiles : sketch_.plan(sketch_.tables->attention->scores).tiles) {
      scores *= factors_.inside(tiles, 0);
      if (tiles.axis == sketch_.tables->attention->rows()) rows = factors_.inside(tiles, 0);
    }
    return scores + scores / 2 + 3 * rows;
  }
  /// Returns the elements that a root's blocks divide; for a transform, its tiles. The rows of a
  /// block are not fused with the elements of each row.
  int64_t extent(const StagePlan& plan, const AxisTiles& tiles) const {
    const Stage& s = stage(plan);
    if (tiles.axis >= 0)
      return s.unrolled.empty() ? iterator_of(s, tiles.axis).extent : s.tile(tiles.axis);
    const bool fused = plan.structure == &kThreadElements || plan.structure == &kThreadTransform;
    return fused ? tile_count(s) : 1;
  }

  const Sketch& sketch_;
  const Gpu& gpu_;
  const Factors factors_;
};

/// Makes a candidate within the limits: by chance, or near to what is wanted.
class Drawer {
 public:
  Drawer(const Sketch& sketch, const Gpu& gpu, Rng& rng) : sketch_(sketch), gpu_(gpu), rng_(&rng) {}
  Drawer(const Sketch& sketch, const Gpu& gpu, std::span<const double> wanted)
      : sketch_(sketch), gpu_(gpu), wanted_(wanted.begin(), wanted.end()) {}

  Candidate draw(SketchId id) {
    candidate_.sketch = id;
    for (size_t i = 0; i < sketch_.decisions.size(); ++i)
      candidate_.decisions.push_back(choose(i, choices(static_cast<DecisionRef>(i))));
    for (const StagePlan& plan : sketch_.plans) {
      if (plan.stage != plan.root) continue;
      if (plan.structure->fetches()) draw_block_tile(plan);
      if (plan.structure == &kBlockRows) draw_rows(plan);
    }
    for (const StagePlan& plan : sketch_.plans) {
      if (plan.accumulates() && plan.structure->fetches()) draw_chunks(plan);
    }
    for (const StagePlan& plan : sketch_.plans) {
      if (plan.structure == &kFetch) draw_vectors(plan);
    }
    return std::move(candidate_);
  }

 private:
  size_t below(size_t n) { return static_cast<size_t>(rng_->below(static_cast<int64_t>(n))); }

  int32_t choose(size_t decision, const std::vector<int32_t>& from) {
    if (rng_ != nullptr) return from[below(from.size())];
    const double wish = wanted_[decision];
    if (wish < 0) return from.front();
    return *std::ranges::min_element(from, {}, [&](int32_t choice) {
      return choice_distance(sketch_.decisions[decision], wish, choice);
    });
  }
  int32_t& decision(DecisionRef ref) { return candidate_.decisions[ref]; }
  const std::vector<int32_t>& choices(DecisionRef ref) const {
    const Decision& decision = sketch_.decisions[static_cast<size_t>(ref)];
    return rng_ != nullptr ? decision.drawn() : decision.choices;
  }

  // A choice that `fits` accepts; the smallest when none does.
  template <typename Fits>
  int64_t draw(DecisionRef ref, const Fits& fits) {
    if (ref == kFixed) return 1;
    std::vector<int32_t> fitting;
    for (const int32_t choice : choices(ref)) {
      if (fits(choice)) fitting.push_back(choice);
    }
    return decision(ref) =
               fitting.empty() ? choices(ref).front() : choose(static_cast<size_t>(ref), fitting);
  }

  template <typename T>
  void shuffle(std::vector<T>& items) {
    if (rng_ == nullptr) return;
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

  // The levels of an axis that are decided, and what binds them.
  struct DecidedLevel {
    DecisionRef decision;
    Bind bind;
  };
  static bool is_threads(const DecidedLevel& level) {
    return level.bind == Bind::kThreads || level.bind == Bind::kWarps;
  }
  static std::vector<DecidedLevel> decided(const StagePlan& plan, const AxisTiles& tiles) {
    std::vector<DecidedLevel> found;
    for (size_t l = 0; l < plan.structure->levels.size(); ++l) {
      const Level& level = plan.structure->levels[l];
      if (level.iterations == Iterations::kDecided && tiles.decision(static_cast<int>(l)) != kFixed)
        found.push_back({tiles.decision(static_cast<int>(l)), level.bind});
    }
    return found;
  }

  // Axis after axis, each within what the axes before have left of threads, virtual threads,
  // registers and shared memory; a block that is too small for a warp is drawn again.
  void draw_block_tile(const StagePlan& plan) {
    const bool small = sketch_.dag[plan.stage].num_elements() <= 2 * gpu_.warp_size;
    for (int attempt = 0; attempt < 64; ++attempt) {
      left_ = {gpu_.max_threads_per_block,
               gpu_.max_vthreads,
               gpu_.max_registers_per_thread - kGpuModel.registers_beside_accumulators};
      if (plan.structure->has_fragments()) {
        // Threads are counted in warps, or groups of them, registers in sums of four elements, of
        // warps with their operands.
        left_.threads /= gpu_.warp_size * plan.structure->warps;
        left_.registers /= (plan.structure->is_of_groups() ? 4 : 6) *
                           Limits(sketch_, gpu_, candidate_).contractions(plan);
      }
      std::vector<const AxisTiles*> axes;
      for (const AxisTiles& tiles : plan.tiles) {
        axes.push_back(&tiles);
        make_smallest(plan, tiles);
      }
      shuffle(axes);
      for (const AxisTiles* tiles : axes) draw_axis(plan, *tiles);
      const int64_t used = Factors(candidate_).block_threads(plan);
      if (small || used >= gpu_.warp_size) return;
      if (rng_ == nullptr) want_more_threads(plan);
    }
  }

  // Twice the threads of an axis, from its largest tile or else from the blocks of the longest.
  void want_more_threads(const StagePlan& plan) {
    DecisionRef threads = kFixed, from = kFixed;
    double most = 1, rest = 0;
    for (const AxisTiles& tiles : plan.tiles) {
      const std::vector<DecidedLevel> levels = decided(plan, tiles);
      const auto own = std::ranges::find_if(levels, is_threads);
      if (own == levels.end()) continue;
      for (const DecidedLevel& level : std::views::reverse(levels)) {
        if (is_threads(level) || decision(level.decision) <= most) continue;
        most = decision(level.decision);
        threads = own->decision;
        from = level.decision;
      }
      const double blocks =
          static_cast<double>(choices(own->decision).back()) / decision(own->decision);
      if (from != kFixed || blocks <= rest) continue;
      rest = blocks;
      threads = own->decision;
    }
    if (threads == kFixed) return;
    if (from != kFixed) wanted_[from] = decision(from) / 2.0;
    double& wish = wanted_[threads];
    wish = 2 * std::max(wish, static_cast<double>(decision(threads)));
  }

  // The threads, virtual threads and registers that the block tile may still take.
  struct Left {
    int64_t threads = 0, vthreads = 0, registers = 0;
  };

  void draw_axis(const StagePlan& plan, const AxisTiles& tiles) {
    const int64_t extent = sketch_.dag[plan.stage].axes[tiles.axis].extent;
    int64_t tile = Factors(candidate_).inside(tiles, 0);
    const int64_t fixed = fixed_elements(tiles);
    std::vector<DecidedLevel> levels = decided(plan, tiles);
    shuffle(levels);
    for (const DecidedLevel& level : levels) {
      const MmaInstruction* columns =
          level.bind == Bind::kSerial ? columns_of_group(plan, tiles.axis) : nullptr;
      const auto registers_suffice = [&](int64_t v) {
        if (!plan.structure->is_of_groups()) return true;
        const int32_t before = std::exchange(decision(level.decision), static_cast<int32_t>(v));
        const bool suffice = Limits(sketch_, gpu_, candidate_).registers_suffice(plan);
        decision(level.decision) = before;
        return suffice;
      };
      int64_t most = is_threads(level) ? left_.threads
                     : level.bind == Bind::kVirtualThreads
                         ? std::min(left_.vthreads, left_.registers)
                         : left_.registers;
      const auto fits = [&](int64_t v) {
        return v <= most && fits_axis(extent, tile * v, fixed) && (!columns || columns->takes(v)) &&
               registers_suffice(v);
      };
      int64_t value = draw(level.decision, fits);
      while (value > 1 && !smallest_chunk_fits(plan)) {
        most = value - 1;
        value = draw(level.decision, fits);
      }
      tile *= value;
      (is_threads(level) ? left_.threads : left_.registers) /= value;
      if (level.bind == Bind::kVirtualThreads) left_.vthreads /= value;
    }
  }

  // Returns the instruction of which a group has columns along an axis; null: there is none.
  const MmaInstruction* columns_of_group(const StagePlan& root, int axis) const {
    if (!root.structure->is_of_groups()) return nullptr;
    for (const StagePlan& plan : sketch_.plans) {
      const auto& mma = sketch_.tables->mmas[plan.stage];
      if (plan.root == root.stage && mma && mma->n == axis) return mma->instruction;
    }
    return nullptr;
  }

  bool fits_shared(const StagePlan& contraction) const {
    const Limits limits(sketch_, gpu_, candidate_);
    return limits.shared_bytes(contraction) <= limits.most_shared_bytes(contraction);
  }

  void make_smallest(const StagePlan& plan, const AxisTiles& tiles) {
    for (const DecidedLevel& level : decided(plan, tiles))
      decision(level.decision) = choices(level.decision).front();
  }
  static bool is_chunked(const Stage& stage, const AxisTiles& tiles) {
    return tiles.axis >= std::ssize(stage.axes);
  }
  void make_chunks_smallest(const StagePlan& contraction) {
    for (const AxisTiles& tiles : contraction.tiles) {
      if (is_chunked(sketch_.dag[contraction.stage], tiles)) make_smallest(contraction, tiles);
    }
  }

  // With one buffer and without sums, so that these don't make large blocks rare.
  bool smallest_chunk_fits(const StagePlan& root) {
    for (const StagePlan& plan : sketch_.plans) {
      if (!plan.accumulates() || plan.root != root.stage) continue;
      make_chunks_smallest(plan);
      const std::vector<int32_t> decided = candidate_.decisions;
      for (const DecisionRef more : {plan.buffers, plan.epilogue}) make_least(more);
      const bool fits = fits_shared(plan);
      candidate_.decisions = decided;
      if (!fits) return false;
    }
    return true;
  }
  void make_least(DecisionRef ref) {
    if (ref != kFixed) decision(ref) = choices(ref).front();
  }

  // Chunks of the reduction that the shared memory holds.
  void draw_chunks(const StagePlan& plan) {
    const Stage& stage = sketch_.dag[plan.stage];
    make_chunks_smallest(plan);
    for (const DecisionRef more : {plan.buffers, plan.epilogue})
      if (!fits_shared(plan)) make_least(more);
    std::vector<const AxisTiles*> axes;
    for (const AxisTiles& tiles : plan.tiles) {
      if (is_chunked(stage, tiles)) axes.push_back(&tiles);
    }
    shuffle(axes);
    for (const AxisTiles* tiles : axes) {
      const int64_t extent = iterator_of(stage, tiles->axis).extent;
      int64_t tile = Factors(candidate_).inside(*tiles, 0);
      const int64_t fixed = fixed_elements(*tiles);
      std::vector<DecidedLevel> levels = decided(plan, *tiles);
      shuffle(levels);
      for (const DecidedLevel& level : levels) {
        tile *= draw(level.decision, [&](int64_t v) {
          if (!fits_axis(extent, tile * v, fixed)) return false;
          const int32_t before = std::exchange(decision(level.decision), static_cast<int32_t>(v));
          const bool fit = fits_shared(plan);
          decision(level.decision) = before;
          return fit;
        });
      }
    }
  }

  void draw_vectors(const StagePlan& plan) {
    const int64_t all = Limits(sketch_, gpu_, candidate_).fetched_elements(plan);
    for (const DecidedLevel& level : decided(plan, plan.tiles[0]))
      draw(level.decision, [&](int64_t v) { return all % v == 0; });
  }

  void draw_rows(const StagePlan& plan) {
    int64_t threads = 1;  // threads of a row, then of all rows of a block
    for (const AxisTiles& tiles : plan.tiles) {
      for (const DecidedLevel& level : decided(plan, tiles)) {
        threads *= draw(level.decision, [&](int64_t v) {
          return tiles.axis != kFusedRows ||
                 (threads * v <= gpu_.max_threads_per_block && threads * v >= gpu_.warp_size);
        });
      }
    }
  }

  const Sketch& sketch_;
  const Gpu& gpu_;
  Rng* rng_ = nullptr;          // source of drawn values; null: nearest to wanted_
  std::vector<double> wanted_;  // wanted value of each decision
  Left left_;
  Candidate candidate_;
};

}  // namespace

std::string gpu_problem(const Sketch& sketch, const Gpu& gpu, const Candidate& candidate) {
  return Limits(sketch, gpu, candidate).problem();
}

Candidate draw_gpu(const Sketch& sketch, SketchId id, const Gpu& gpu, Rng& rng) {
  return Drawer(sketch, gpu, rng).draw(id);
}

Candidate nearest_on_gpu(const Sketch& sketch,
                         SketchId id,
                         const Gpu& gpu,
                         std::span<const double> wanted) {
  return Drawer(sketch, gpu, wanted).draw(id);
}

}  // namespace pruner
