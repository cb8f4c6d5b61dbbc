// The measurers of `--build-only`: searches go as always, but what they propose is built, written
// into one bundle, and measured later, elsewhere.
#pragma once

#include <map>
#include <memory>

#include "bundle/bundle.h"
#include "measure/local_measurer.h"

namespace pruner {

/// The fields of Record that say how a program was chosen.
struct TrialLabels {
  std::string origin, mode;
};

class BundleBuild : public std::enable_shared_from_this<BundleBuild> {
 public:
  /// Makes the measurers' common part. `builder` builds the programs and need not have the device.
  static std::shared_ptr<BundleBuild> make(std::unique_ptr<LocalMeasurer> builder,
                                           BundleWriter bundle);

  /// Returns the measurer of a search whose records have these labels. All of the measurer's
  /// results are `later`.
  std::unique_ptr<Measurer> measurer(TrialLabels labels);

 private:
  class Measurers;
  BundleBuild(std::unique_ptr<LocalMeasurer> builder, BundleWriter bundle)
      : builder_(std::move(builder)), bundle_(std::move(bundle)) {}
  const Space& space_of(const Task& task);

  std::unique_ptr<LocalMeasurer> builder_;
  BundleWriter bundle_;
  std::map<std::string, Space> spaces_;  // space of each task, by its key
};

}  // namespace pruner
