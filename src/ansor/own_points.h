// A replayed record as a point of our own space: the splits, threads and places of its stages ->
// the candidate that computes the same in the same kernels, chunks and tiles, or else the legal one
// nearest to it, and what was changed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>

#include "ansor/nest.h"
#include "ansor/wanted_point.h"

namespace pruner::ansor {

/// NearestPoint says what a record is in our space.
struct NearestPoint {
  Candidate candidate;
  std::string other;              // why the record's program is no point of ours; empty: it is
  std::set<std::string> changed;  // kinds of differences: "tiles", "loops", ...

  bool same() const { return other.empty(); }
};

/// Returns the candidate of the matched sketches with the fewest other loops, then the nearest
/// numbers. A property of the record is kept if the sketch has the choice and earlier choices leave
/// the property legal. The error says why nothing is legal.
/// Properties on a CPU: tiles of SSRSRS along each axis (how much each level holds), inner
/// reduction, depth at which stages are computed, unrolling, parallel loops.
/// Properties on a GPU: blocks, virtual threads, threads and tiles of SSSRRSRS, chunks, width of
/// fetches, reductions across threads, unrolling.
Result<NearestPoint> nearest_point(const Space& space,
                                   std::span<const PointMatch> matches,
                                   const State& state);

/// The stages of a record that bear the names that `name` gives for a sketch's.
PointMatch match_by_name(SketchId id,
                         const Sketch& sketch,
                         const Structure& structure,
                         const std::function<std::string(const StagePlan&)>& name);

/// A space, and the stages of one structure of records in each of its direct sketches.
struct OwnSpace {
  std::shared_ptr<const Structure> structure;
  Space space;
  std::vector<PointMatch> matches;
};

/// Spaces of records' workloads, one for each structure and limits, made when first asked for; may
/// be asked by several threads.
class OwnPoints {
 public:
  /// `hardware`: the limits in a record, 8 numbers, or none for the usual ones.
  Result<NearestPoint> find(const ReplayNest& nest, std::span<const int64_t> hardware);

 private:
  std::shared_ptr<const OwnSpace> space_of(const std::shared_ptr<const Structure>& structure,
                                           std::span<const int64_t> hardware,
                                           bool gpu);

  std::mutex mutex_;
  std::map<std::pair<const Structure*, std::vector<int64_t>>, std::shared_ptr<const OwnSpace>>
      spaces_;
};

}  // namespace pruner::ansor
