// The measurer of one device of this machine, whose two halves can also be used alone: one machine
// may build what another runs.
#pragma once

#include "measure/build_worker.h"
#include "measure/measure.h"

namespace pruner {

class LocalMeasurer : public Measurer {
 public:
  /// Makes it, and starts its workers: this program's own executable, `program`, with the hidden
  /// worker commands.
  static Result<std::unique_ptr<LocalMeasurer>> make(const MeasureOptions& options,
                                                     const std::string& program);

  /// The code of a batch, or why there is none; of the first few, if asked to stop.
  virtual Result<std::vector<Build>> build(const Task& task, std::span<const Candidate> batch) = 0;
  /// Checks and times what build() has made, here or elsewhere.
  virtual Result<std::vector<MeasureResult>> run(const Task& task,
                                                 std::span<const Build> builds,
                                                 double best_s) = 0;
};

}  // namespace pruner
