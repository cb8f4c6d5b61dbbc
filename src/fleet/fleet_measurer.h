// The measurer of a run whose trials go to a fleet: Measurer (measure/measure.h) over a broker.
// Nothing that was measured is lost or counted twice, whoever is killed when.
#pragma once

#include <functional>
#include <memory>

#include "fleet/broker.h"
#include "fleet/messages.h"

namespace pruner {

struct FleetOptions {
  std::string kind = {};     // of the workers
  Target target = {};        // what is measured is for this
  std::string run = {};      // a name of this run alone, the same when it goes on
  std::string program = {};  // its hash, which is the workers', too
  MeasureOptions measure = {};
  int messages_a_worker = 2;       // one waits while another is measured
  size_t candidates_at_most = 16;  // of a message
  bool stops_workers = false;  // what stops the run stops them: their last results are waited for
};

class FleetMeasurer : public Measurer {
 public:
  /// Errors: no worker of the kind is there, or they are for another target, of another build of
  /// the program, or take code that nobody there makes.
  static Result<std::unique_ptr<FleetMeasurer>> make(std::unique_ptr<Broker> broker,
                                                     const FleetOptions& options);

  /// What was measured for the run when nobody recorded it any more: `take` records one (again or
  /// for the first time), then it is forgotten.
  virtual Result<int64_t> recover(
      const std::function<Result<Unit>(const ResultMessage&)>& take) = 0;
};

/// The workers that are here, by their names.
Result<std::vector<WorkerState>> list_workers(Broker& broker);

}  // namespace pruner
