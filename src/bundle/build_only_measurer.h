// The measurer of `--build-only`: a search goes as always, but what it proposes is built, written
// into a bundle, and measured later, elsewhere.
#pragma once

#include "bundle/bundle.h"
#include "measure/local_measurer.h"

namespace pruner {

/// What the records of the bundle's programs say of how they were chosen (Record).
struct TrialLabels {
  std::string origin, mode;
};

/// Builds by `builder`, which need not have the device. Its results are `later`.
std::unique_ptr<Measurer> make_build_only_measurer(std::unique_ptr<LocalMeasurer> builder,
                                                   BundleWriter bundle,
                                                   TrialLabels labels);

}  // namespace pruner
