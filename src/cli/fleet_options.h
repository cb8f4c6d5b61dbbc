// --server, --fleet and who this is: a connection to a fleet's server, and the measurer of a run
// there.
#pragma once

#include "cli/options.h"
#include "fleet/fleet_measurer.h"
#include "fleet/nats_broker.h"
#include "tune/tune.h"
#include "tune/work_dir.h"

namespace pruner {

struct FleetAccess {
  BrokerAccess broker;

  /// `flag`: of the server's address, with what help calls it.
  void add_to(CLI::App& app, const char* flag, const char* help);
  bool given() const { return !broker.url.empty(); }
};

struct FleetRunOptions {
  FleetAccess access;
  std::string kind;  // of the workers; empty: that of this machine

  void add_to(CLI::App& app);
  bool given() const { return access.given(); }
};

/// The measurer of a run of that name, on the fleet's workers for `target`.
Result<std::unique_ptr<FleetMeasurer>> make_fleet_measurer(const FleetRunOptions& options,
                                                           const Target& target,
                                                           const MeasureOptions& measure,
                                                           const std::string& run);
/// A name that no other run has.
std::string fresh_run_name();
/// The name of the run in a work dir, kept there so that it can go on.
Result<std::string> run_name(const WorkDir& dir);
/// Records what workers measured for a run in a work dir while nobody was there to do it.
Result<Unit> record_late_results(FleetMeasurer& measurer,
                                 std::span<const WeightedTask> tasks,
                                 const TuneOptions& tune,
                                 const WorkDir& dir);

}  // namespace pruner
