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

  /// Adds the options. `flag` is the option of the server's address and the name of its value.
  void add_to(CLI::App& app, const char* flag, const char* help);
  bool given() const { return !broker.url.empty(); }
};

struct FleetRunOptions {
  FleetAccess access;
  std::string kind;  // kind of the workers; empty: this program's kind for the target

  void add_to(CLI::App& app);
  bool given() const { return access.given(); }
};

/// Returns the measurer of the run `run`, on the fleet's workers for `target`.
Result<std::unique_ptr<FleetMeasurer>> make_fleet_measurer(const FleetRunOptions& options,
                                                           const Target& target,
                                                           const MeasureOptions& measure,
                                                           const std::string& run);
/// Returns a name that no other run has.
std::string fresh_run_name();
/// Returns the name of the run in a work dir. The name is kept there so that the run can go on.
Result<std::string> run_name(const WorkDir& dir);
/// Records the results of a run that workers measured while nobody was there to record them.
Result<Unit> record_late_results(FleetMeasurer& measurer,
                                 std::span<const WeightedTask> tasks,
                                 const TuneOptions& tune,
                                 const WorkDir& dir);

}  // namespace pruner
