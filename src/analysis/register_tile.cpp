#include "analysis/register_tile.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/operand.h"
#include "space/plan.h"
#include "target/machine_model.h"

namespace pruner {
namespace {

constexpr double kTapsOfRun = 4;  // taps that read one order of a run's parts (codegen's spread())

class TileLoads {
 public:
  TileLoads(const LoopNest& nest,
            const Target& target,
            const NestStage& stage,
            const RegisterTile& tile)
      : nest_(nest), dag_(*nest.dag), target_(target), stage_(stage), tile_(tile) {
    const std::vector<Iterator>& axes = dag_[stage.stage].reduce_axes;
    unrolled_from_ = axes.size();
    while (unrolled_from_ > 0) {
      const double taps = taps_ * static_cast<double>(axes[unrolled_from_ - 1].extent);
      if (taps * tile.count() > static_cast<double>(stage.unroll_steps)) break;
      taps_ = taps;
      --unrolled_from_;
    }
  }

  double cycles() const {
    double cycles = 0, shared = 0;  // vectors that unrolled taps of windows read more than once
    for (const Access& access : accesses_of(nest_, stage_)) cycles += cycles_of(access, shared);
    if (shared == 0) return cycles;
    const double kept = tile_.count() + shared * taps_;
    const double spilled = std::max(0.0, kept - static_cast<double>(target_.vector_registers));
    return cycles + target_.draft.spill_cycles / taps_ * spilled;
  }

 private:
  // Elements by which an access moves with an iterator, in the buffer of the part that is attached.
  double stride_of(const Access& access, int iterator) const {
    const Stage& producer = dag_[access.producer];
    if (producer.is_placeholder()) return element_stride(access, producer, iterator);
    return element_stride(access, nest_.of(access.producer).extents, iterator);
  }

  // Places that the points of one row of a tile read, over all taps of a window that is unrolled
  // along the row, by the number of their reads: neighbours share what their windows share.
  double window_share(const Access& access, const NestLoop& row, double row_stride) const {
    const Stage& s = dag_[stage_.stage];
    for (size_t r = s.reduce_axes.size(); r-- > unrolled_from_;) {  // the innermost first
      const auto taps = static_cast<double>(s.reduce_axes[r].extent);
      const int iterator = static_cast<int>(s.axes.size() + r);
      const double tap_stride = stride_of(access, iterator);
      if (tap_stride == 0) continue;
      const double step = row_stride / tap_stride;  // distance of neighbours in taps
      const double points = static_cast<double>(row.extent);
      if (step < 1 || step >= taps || step != std::floor(step)) continue;
      return ((points - 1) * step + taps) / (points * taps);
    }
    return 1;
  }

  // Values that a row of the tile broadcasts, where the vector axis counts as a quotient alone: one
  // for each step of it.
  double broadcasts(const Access& access) const {
    const auto elements = static_cast<int64_t>(tile_.vectors * tile_.lanes);
    double most = 1;
    for_each_quotient(access, tile_.vector_axis, [&](const SteppedIndex::Quotient& q) {
      most = std::max(most, static_cast<double>(elements / std::gcd(q.divisor, elements)));
    });
    return std::min(most, tile_.vectors);
  }

  // Whether each vector reads a run by its quotients, which is spread over the lanes: tiles that
  // start anywhere may be parted elsewhere.
  bool is_spread(const Access& access) const {
    bool spread = false, apart = false;
    for_each_quotient(access, tile_.vector_axis, [&](const SteppedIndex::Quotient& q) {
      const bool run = reads_one_run(q, static_cast<int64_t>(tile_.lanes));
      (run ? spread : apart) = true;
    });
    const auto overlaps = [&](std::span<const NestLoop> loops) {
      return std::ranges::any_of(loops, [&](const NestLoop& loop) {
        return loop.axis == tile_.vector_axis && loop.clamp >= 0;
      });
    };
    return spread && !apart && !overlaps(stage_.loops) &&
           !(stage_.at.valid() && overlaps(nest_.of(stage_.at).loops));
  }

  // Runs are kept for the taps of a step that are unrolled, beside the sums.
  double spread_cycles(double runs) const {
    const double kept = tile_.count() + runs;
    const double spilled = std::max(0.0, kept - static_cast<double>(target_.vector_registers));
    const double taps =
        std::clamp(static_cast<double>(stage_.unroll_steps) / tile_.count(), 1.0, kTapsOfRun);
    return runs * target_.draft.spread_cycles + target_.draft.spill_cycles / taps * spilled;
  }

  // Share of a tile's vectors whose lanes read at more than one place, where the vector axis counts
  // as a quotient alone: those across a step of it (codegen/llvm/indices.cpp, below_divisor()).
  double parted_vectors(const Access& access) const {
    const auto vectors = static_cast<int64_t>(tile_.vectors),
               lanes = static_cast<int64_t>(tile_.lanes);
    double parted = 0;
    for_each_quotient(access, tile_.vector_axis, [&](const SteppedIndex::Quotient& q) {
      const int64_t step = std::gcd(q.divisor, vectors * lanes);
      int64_t count = 0;
      for (int64_t v = 0; v < vectors; ++v) count += v * lanes % step + lanes > step;
      parted = std::max(parted, static_cast<double>(count) / tile_.vectors);
    });
    return parted;
  }

  // Share of an access' vectors that lie in two lines, each of which takes two loads: they begin at
  // multiples of what all strides have in common, from the begin of a buffer, which is a line's.
  double crossing_share(const Access& access, double element_bytes) const {
    if (packing_of(nest_, access.producer) != nullptr) return 0;
    const Stage& s = dag_[stage_.stage];
    const auto bytes = static_cast<int64_t>(element_bytes);
    int64_t common = target_.cache_line_bytes;
    const auto add = [&](int iterator, int64_t extent) {
      if (iterator == tile_.vector_axis || extent == 1) return;
      const double stride = std::abs(stride_of(access, iterator));
      if (stride == std::floor(stride))
        common = std::gcd(common, static_cast<int64_t>(stride) * bytes);
    };
    for (size_t i = 0; i < s.axes.size(); ++i) add(static_cast<int>(i), s.axes[i].extent);
    for (size_t i = 0; i < s.reduce_axes.size(); ++i)
      add(static_cast<int>(s.axes.size() + i), s.reduce_axes[i].extent);
    const auto vector = static_cast<int64_t>(tile_.lanes * tile_.terms) * bytes;
    common = std::gcd(common, vector);
    const int64_t places = target_.cache_line_bytes / common;
    const int64_t within = std::max<int64_t>(0, target_.cache_line_bytes - vector) / common + 1;
    return 1 - static_cast<double>(std::min(within, places)) / static_cast<double>(places);
  }

  // Cycles of one access' loads in one step: vectors that differ are loaded once each, a value
  // without the vector axis is broadcast. `shared` grows by the vectors that windows share.
  double cycles_of(const Access& access, double& shared) const {
    const Stage& producer = dag_[access.producer];
    if (!producer.is_placeholder() && nest_.of(access.producer).scope == Scope::kRegister) return 0;
    const double bytes = static_cast<double>(dtype_bytes(producer.dtype));
    double rows = 1, row_bytes = 0, share = 1;
    for (size_t i = tile_.begin; i < stage_.loops.size(); ++i) {
      const NestLoop& loop = stage_.loops[i];
      if (loop.kind != LoopKind::kUnroll || loop.axis == tile_.vector_axis) continue;
      const double stride = stride_of(access, loop.axis);
      if (stride == 0) continue;
      const double of_row = window_share(access, loop, stride);
      share *= of_row;
      rows *= static_cast<double>(loop.extent) * of_row;
      row_bytes = std::abs(stride) * bytes;
    }
    const bool conflict = row_bytes > 0 &&
                          std::fmod(row_bytes, static_cast<double>(kSetPeriodBytes)) == 0 &&
                          rows > target_.draft.set_ways;
    const double loads = rows * (conflict ? target_.draft.set_conflict_factor : 1);
    double stride = tile_.vector_axis >= 0 ? stride_of(access, tile_.vector_axis) : 1;
    if (stride != 0 && packing_of(nest_, access.producer) != nullptr) stride = 1;
    const bool whole =
        tile_.lanes * tile_.terms * bytes >= static_cast<double>(target_.vector_bytes);
    const double narrow = std::max(target_.loads_per_cycle, target_.draft.narrow_per_cycle);
    if (stride == 0 && is_spread(access)) return spread_cycles(rows * tile_.vectors);
    if (stride == 0) {
      const double parted = tile_.vector_axis >= 0 ? parted_vectors(access) : 0;
      const double values = tile_.vector_axis >= 0 ? broadcasts(access) : 1;
      return loads * ((1 - parted) * values / narrow +
                      parted * tile_.vectors * tile_.lanes * target_.draft.gather_cycles_per_lane);
    }
    if (share < 1) shared += rows * tile_.vectors;
    if (stride == 1)
      return loads * tile_.vectors * (1 + crossing_share(access, bytes)) /
             (whole ? target_.loads_per_cycle : narrow);
    return loads * tile_.vectors * tile_.lanes * target_.draft.gather_cycles_per_lane;
  }

  const LoopNest& nest_;
  const ComputeDag& dag_;
  const Target& target_;
  const NestStage& stage_;
  const RegisterTile& tile_;
  size_t unrolled_from_ = 0;  // the first of the innermost reduce axes that are unrolled whole
  double taps_ = 1;           // their steps
};

}  // namespace

RegisterTile register_tile(const LoopNest& nest, const NestStage& stage) {
  const int spatial = static_cast<int>((*nest.dag)[stage.stage].axes.size());
  RegisterTile tile;
  tile.structure = stage.structure;
  tile.begin = stage.loops.size();
  for (; tile.begin > 0 && stage.loops[tile.begin - 1].kind == LoopKind::kDot; --tile.begin)
    tile.terms *= static_cast<double>(stage.loops[tile.begin - 1].extent);
  for (; tile.begin > 0 && stage.loops[tile.begin - 1].kind == LoopKind::kMatrix &&
         stage.loops[tile.begin - 1].axis >= spatial;
       --tile.begin)
    tile.steps *= static_cast<double>(stage.loops[tile.begin - 1].extent);
  while (tile.begin > 0 && stage.loops[tile.begin - 1].kind != LoopKind::kSerial &&
         spatial > stage.loops[tile.begin - 1].axis &&
         static_cast<int>(tile.begin) > stage.parallel_loops) {
    --tile.begin;
  }
  for (const NestLoop& loop : stage.loops) {
    if (loop.kind != LoopKind::kVectorize) continue;
    tile.lanes = static_cast<double>(loop.extent);
    if (loop.axis < spatial) tile.vector_axis = loop.axis;
  }
  for (size_t i = tile.begin; i < stage.loops.size(); ++i) {
    const NestLoop& loop = stage.loops[i];
    if (loop.kind == LoopKind::kMatrix && loop.axis < spatial)
      tile.tile_rows *= static_cast<double>(loop.extent);
    if (loop.kind == LoopKind::kUnroll)
      (loop.axis == tile.vector_axis ? tile.vectors : tile.rows) *=
          static_cast<double>(loop.extent);
  }
  return tile;
}

double issued_per_cycle(const Target& target, const RegisterTile& tile) {
  const bool whole = tile.lanes * 4.0 >= static_cast<double>(target.vector_bytes);
  return whole ? target.fmas_per_cycle
               : std::max(target.fmas_per_cycle, target.draft.narrow_per_cycle);
}

double matrix_cycles(const Target& target, const RegisterTile& tile, double rate) {
  const CpuModel& m = target.draft;
  const double most_rows = tile.structure->tile_rows;
  const double sums = most_rows * tile.lanes / target.lanes(4);
  const double whole =
      sums * tile.structure->tile_steps * tile.terms / rate / target.fmas_per_cycle;
  const double rows = std::max(tile.tile_rows, std::min(m.least_matrix_rows, most_rows));
  // A tile in vectors is put together of two rows; the second row takes one more operation.
  const double joined = tile.in_vectors() ? tile.rows / target.fmas_per_cycle : 0;
  return tile.count() * whole * rows / most_rows + joined;
}

double load_cycles(const LoopNest& nest,
                   const Target& target,
                   const NestStage& stage,
                   const RegisterTile& tile) {
  // A load for each row of one operand's tiles, and the vectors of each step of the other's.
  if (tile.is_matrix()) {
    const StageId operand = accesses_of(nest, stage)[0].producer;
    const double bytes =
        tile.lanes * tile.terms * static_cast<double>(dtype_bytes((*nest.dag)[operand].dtype));
    const double of_step = bytes / static_cast<double>(target.vector_bytes);
    return (tile.rows * tile.tile_rows + tile.vectors * tile.steps * of_step) /
           target.loads_per_cycle;
  }
  return TileLoads(nest, target, stage, tile).cycles();
}

bool is_masked(const LoopNest& nest, const NestStage& stage, const RegisterTile& tile) {
  if (stage.unroll_steps == 0 || tile.vector_axis < 0) return false;
  int64_t end = static_cast<int64_t>(tile.vectors * tile.lanes);
  bool several = false;
  const auto add = [&](std::span<const NestLoop> loops) {
    for (const NestLoop& loop : loops) {
      if (loop.axis != tile.vector_axis) continue;
      end += loop.clamp >= 0 ? loop.clamp : (loop.extent - 1) * loop.step;
      several = several || loop.extent > 1;
    }
  };
  add(std::span(stage.loops).first(tile.begin));
  if (stage.at.valid())
    add(std::span(nest.of(stage.at).loops).first(static_cast<size_t>(stage.depth)));
  const auto packs = [&](const Access& access) {
    return packing_of(nest, access.producer) != nullptr;
  };
  // A run that is spread is read up to its axis' end alone; what a single vector reads of it is
  // masked once for many taps.
  const auto spreads = [&](const Access& access) {
    bool spread = false;
    for_each_quotient(access, tile.vector_axis, [&](const SteppedIndex::Quotient& q) {
      spread = spread || reads_one_run(q, static_cast<int64_t>(tile.lanes));
    });
    return spread;
  };
  const std::vector<Access>& accesses = accesses_of(nest, stage);
  return several && end > (*nest.dag)[stage.stage].axes[tile.vector_axis].extent &&
         (std::ranges::none_of(accesses, packs) ||
          (tile.vectors > 1 && std::ranges::any_of(accesses, spreads)));
}

const std::vector<Access>& accesses_of(const LoopNest& nest, const NestStage& stage) {
  return nest.tables->accesses[stage.stage];
}

}  // namespace pruner
