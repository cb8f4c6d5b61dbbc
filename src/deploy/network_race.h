// Builds a network's modules by several choices of schedules, times the modules in turns, and keeps
// the fastest. A schedule that is the fastest of its task alone need not be the fastest in the
// network: there its inputs lie in the caches or not, and its stores push others out.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "deploy/module.h"

namespace pruner {

/// A choice of schedules with a name, such as "untuned".
struct NamedChoice {
  std::string name;
  ScheduleChoice choice;
};

/// How many times as fast one module is as another: the median over the turns of a race, and the
/// bounds of its 95 % confidence interval.
struct Speedup {
  double median = 1, low = 1, high = 1;
};

/// A task that does not take the schedule of the first choice.
struct TakenOver {
  std::string task, choice;  // names
};

struct NetworkRace {
  std::string fastest;  // name of the choice whose module is kept; "mixed": see taken_over
  double ms = 0;        // the kept module's median time over the turns, all phases together
  double last_ms = 0;   // the same of the module of the last choice
  Speedup over_last;    // the kept module beside that one; all are 1 if it is that one
  std::vector<TakenOver> taken_over = {};  // if the mixed module is kept
};

/// Returns the median of the ratios, at least one, and the bounds of its confidence interval, which
/// are two of the ratios (the sign test's).
Speedup speedup_of(std::vector<double> ratios);

/// Moves the fastest of several modules of a network to `path`:
///
/// 1. Builds a module for each choice, and times the kernels of all modules in turns.
/// 2. Builds a mixed module. Each task has the choice whose kernels are fastest in the network; a
///    choice other than the first has to be 2 % faster.
/// 3. Races all modules. The fastest is no slower than the last choice's, as far as the race can
///    tell.
///
/// A network that takes half a second or more has modules for the first and the last choice alone.
/// If the last choice's module cannot be made, a warning says why, the first module is moved to
/// `path`, and the result is nullopt. Any other module that cannot be made is left out. Errors:
/// those of build_module() for the first choice, and those of a run. There are two choices or more,
/// and the phases have one shape each.
Result<std::optional<NetworkRace>> build_fastest(std::span<const Phase> phases,
                                                 const Target& target,
                                                 std::span<const NamedChoice> choices,
                                                 const ModuleOptions& options,
                                                 const std::string& path);

}  // namespace pruner
