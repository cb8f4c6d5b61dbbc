// How an operand of a stage moves through the caches: the bytes that each part of its loops
// touches, and what a cache of a given size must fetch from beyond.
#pragma once

#include <span>
#include <vector>

#include "space/access.h"
#include "space/loop_nest.h"

namespace pruner {

/// One read tensor, seen from the loops around a stage's body (outer to inner).
struct Operand {
  /// [i]: bytes that the loops from i inwards touch; [loops]: bytes of one evaluation.
  std::vector<double> bytes;
  /// [i]: bytes of a cache, of set_period_bytes a way, that the loops from i inwards occupy. Rows
  /// that lie a power of two apart use a part of the cache's sets, and so occupy more.
  std::vector<double> held;
  double waste = 1;         // lines that come from beyond a core's caches for each one used
  std::vector<bool> moves;  // [i]: another iteration of loop i touches other bytes
};

/// A loop around a stage's body: its own, or one of the stages that it is attached in. `axis` < 0:
/// it moves no iterator of this stage, but on to another region.
struct SurroundingLoop {
  int axis;
  int64_t extent, step;
};

/// A read of `producer` in the loops around the body of a stage.
struct SurroundedRead {
  const Access& access;
  const Stage& producer;
  const NestStage* attached;  // it computes a part of the producer at a time; null: it is whole
  const PackSpec* packing;    // how the producer is packed; null: it is not
  size_t iterators;           // the reading stage's
  std::span<const SurroundingLoop> loops;
  double line_bytes;        // a cache's
  double streams_in_turns;  // most streams that prefetchers follow, a line of each in turns

  /// The buffer's, along a dimension.
  int64_t extent(size_t d) const {
    return attached != nullptr ? attached->extents[d] : producer.axes[d].extent;
  }
};

Operand make_operand(const SurroundedRead& read);

/// Bytes that the loops walk through before they jump, one after the other or a line of each of a
/// few rows in turns: what a prefetcher can follow.
double run_bytes(const SurroundedRead& read);

/// Bytes that come from beyond a cache of `capacity` bytes while the loops run once: each operand
/// is fetched again whenever a loop that moves it, or lies outside one that does, goes on, unless
/// all that such a loop touches fits.
double fetched_bytes(std::span<const Operand> operands,
                     std::span<const SurroundingLoop> loops,
                     double capacity);
/// The same of a first-level cache, where an operand must also fit into the sets that it uses,
/// beside what the loops write there (`written`, as Operand::held).
double fetched_bytes_in_sets(std::span<const Operand> operands,
                             std::span<const SurroundingLoop> loops,
                             double capacity,
                             const std::vector<double>& written);

/// Elements that an access moves by when an iterator moves by one, in a tensor of those extents or
/// in `producer` as a whole; quotients of the iterator stay as they are.
double element_stride(const Access& access, std::span<const int64_t> extents, int axis);
double element_stride(const Access& access, const Stage& producer, int axis);

/// Whether an operand of a GPU's contraction is computed before the chunks: reductions hang in it.
bool is_held(const LoopNest& nest, const NestStage& operand);

}  // namespace pruner
