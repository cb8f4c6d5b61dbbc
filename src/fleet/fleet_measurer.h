// The measurer of a run whose trials go to a fleet: Measurer (measure/measure.h) over a broker.
// Nothing that was measured is lost or counted twice, whoever is killed when.
#pragma once

#include <functional>
#include <memory>

#include "fleet/broker.h"
#include "fleet/messages.h"

namespace pruner {

struct FleetOptions {
  std::string kind = {};     // kind of the workers
  Target target = {};        // target that candidates are measured for
  std::string run = {};      // name of this run alone, the same when the run goes on
  std::string program = {};  // hash of the program, which is the workers', too
  MeasureOptions measure = {};
  int messages_a_worker = 2;       // messages per worker; one waits while another is measured
  size_t candidates_at_most = 16;  // candidates of a message
  bool stops_workers = false;  // stopping the run stops workers; their last results are waited for
};

class FleetMeasurer : public Measurer {
 public:
  /// Errors: no worker of the kind is there, or they are for another target, of another build of
  /// the program, or take code that nobody there makes.
  static Result<std::unique_ptr<FleetMeasurer>> make(std::unique_ptr<Broker> broker,
                                                     const FleetOptions& options);

  /// Gives `take` each result that was measured for the run when nobody recorded it any more. Once
  /// `take` has recorded the result (again or for the first time), it is forgotten.
  virtual Result<int64_t> recover(
      const std::function<Result<Unit>(const ResultMessage&)>& take) = 0;
};

/// The workers that are here, by their names.
Result<std::vector<WorkerState>> list_workers(Broker& broker);

}  // namespace pruner
