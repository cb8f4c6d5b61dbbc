// --server, --fleet and who this is: a connection to a fleet's server, and the measurer of a run
// there.
#pragma once

#include "cli/measurer.h"
#include "fleet/broker.h"
#include "fleet/fleet_measurer.h"
#include "tune/work_dir.h"

namespace pruner {

struct FleetAccess {
  BrokerAccess broker;

  /// `flag`: of the server's address.
  void add_to(CLI::App& app, const char* flag, const char* help);
  bool given() const { return !broker.url.empty(); }
};

struct FleetRunOptions {
  FleetAccess access;
  std::string kind;  // of the workers; empty: that of this machine

  void add_to(CLI::App& app);
  bool given() const { return access.given(); }
};

/// The measurer of a run in `work_dir` at the fleet. What workers measured for the run while nobody
/// was there to record it is recorded first. The broker outlives the measurer.
Result<std::unique_ptr<Measurer>> make_fleet_measurer(Broker& broker,
                                                      const std::string& kind,
                                                      const MeasureOptions& options,
                                                      std::span<const WeightedTask> tasks,
                                                      const TuneOptions& tune,
                                                      const std::string& work_dir);

}  // namespace pruner
