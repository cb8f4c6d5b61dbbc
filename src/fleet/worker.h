// A fleet's worker: takes trials off its kind's queue, measures them as the local measurer does,
// and gives the results back. Where the device's machine has no compiler, one worker makes and
// signs the code and another runs it.
#pragma once

#include <functional>
#include <memory>

#include "fleet/broker.h"
#include "fleet/messages.h"
#include "measure/local_measurer.h"

namespace pruner {

struct FleetWorkerOptions {
  WorkerRole role = WorkerRole::kMeasure;
  std::string kind;                  // whose queue is served
  Target target;                     // of this device; of no meaning to one that builds
  std::string name;                  // among all workers; letters, digits and '-'
  std::string program = {};          // its hash: a tuner's has to be the same
  NKey key = {};                     // with which one that builds signs
  std::vector<std::string> trusted;  // public keys whose code one that runs takes
  double most_drift = 0.03;          // of its speed, before it leaves; 0: it stays
  std::function<bool()> stop;
  /// What measures; asked again when a run wants other options.
  std::function<Result<std::unique_ptr<LocalMeasurer>>(MeasureOptions options)> make_measurer;
};

class FleetWorker {
 public:
  /// Says that it is here. The broker outlives it.
  static Result<std::unique_ptr<FleetWorker>> join(Broker& broker, FleetWorkerOptions options);
  virtual ~FleetWorker() = default;
  /// Serves until it is stopped or told to drain. Errors: the server, this machine, and that it has
  /// become slower than it was, so that its times would not be comparable. Gives the trials
  /// measured.
  virtual Result<int64_t> serve() = 0;
};

}  // namespace pruner
