// Names of a fleet's streams, subjects and tables.
#pragma once

#include <string>

namespace pruner::fleet {

inline constexpr char kTrials[] = "TRIALS";           // trial.KIND.RUN
inline constexpr char kObjects[] = "OBJECTS";         // object.KIND.RUN
inline constexpr char kResults[] = "RESULTS";         // result.RUN
inline constexpr char kTasks[] = "pruner_tasks";      // keyed by the hash of the task
inline constexpr char kWorkers[] = "pruner_workers";  // keyed by name; gone when a worker is silent
inline constexpr char kControl[] = "pruner_control";  // "drain.WORKER": it shall end

inline std::string trial_subject(const std::string& kind, const std::string& run) {
  return "trial." + kind + "." + run;
}
inline std::string object_subject(const std::string& kind, const std::string& run) {
  return "object." + kind + "." + run;
}
inline std::string objects_of_kind(const std::string& kind) { return "object." + kind + ".*"; }
inline std::string trials_of_kind(const std::string& kind) { return "trial." + kind + ".*"; }
inline std::string result_subject(const std::string& run) { return "result." + run; }
inline std::string kind_queue(const std::string& kind) { return "kind_" + kind; }
inline std::string run_queue(const std::string& run) { return "run_" + run; }

}  // namespace pruner::fleet
