// A fleet's worker: takes trials off its kind's queue, measures them as the local measurer does,
// and gives the results back.
#pragma once

#include <functional>
#include <memory>

#include "fleet/broker.h"
#include "measure/measure.h"

namespace pruner {

struct FleetWorkerOptions {
  Target target;             // of this device; its kind's queue is served
  std::string name;          // among all workers; letters, digits and '-'
  double most_drift = 0.03;  // of its speed, before it leaves; 0: it stays
  std::function<bool()> stop;
  /// What measures; asked again when a run wants other options.
  std::function<Result<std::unique_ptr<Measurer>>(MeasureOptions options)> make_measurer;
};

/// Serves until it is stopped or told to drain. Errors: the server, this machine, and that it has
/// become slower than it was, so that its times would not be comparable. Gives the trials measured.
Result<int64_t> serve_fleet(Broker& broker, const FleetWorkerOptions& options);

}  // namespace pruner
