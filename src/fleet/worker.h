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
  std::string kind;                  // kind whose queue is served
  Target target;                     // target of this device; without meaning for a builder
  std::string name;                  // name among all workers; letters, digits and '-'
  std::string program = {};          // hash of the program: a tuner's has to be the same
  NKey key = {};                     // key with which a builder signs
  std::vector<std::string> trusted;  // public keys whose code a runner takes
  double most_drift = 0.03;          // loss of speed before a worker leaves; 0: it stays
  std::function<bool()> stop;
  /// Makes what measures; called again when a run wants other options.
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
