// A replayed record of a GPU as a point of our own space: the splits and threads of its stages ->
// the candidate that computes the same in the same kernels, chunks and tiles, or what the space has
// no choice for. Records of a CPU are not looked for.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "space/ansor/nest.h"
#include "space/space.h"

namespace pruner::ansor {

/// A space with, for each sketch that has a record's stages, the stage of each plan.
struct OwnSpace {
  struct Match {
    SketchId sketch;
    std::vector<int> stages;  // of the state, by plan
  };
  std::shared_ptr<const Structure> structure;
  Space space;
  std::vector<Match> matches;
};

/// Spaces of records' workloads, one for each structure and limits, made when first asked for; may
/// be asked by several threads.
class OwnPoints {
 public:
  /// `hardware`: the limits in a record, 8 numbers, or none for the usual ones.
  Result<Candidate> find(const ReplayNest& nest, std::span<const int64_t> hardware);

 private:
  std::shared_ptr<const OwnSpace> space_of(const std::shared_ptr<const Structure>& structure,
                                           std::span<const int64_t> hardware);

  std::mutex mutex_;
  std::map<std::pair<const Structure*, std::vector<int64_t>>, std::shared_ptr<const OwnSpace>>
      spaces_;
};

}  // namespace pruner::ansor
