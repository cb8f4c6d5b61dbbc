#include "cli/tuning.h"

#include <filesystem>
#include <regex>

#include "cli/source.h"

namespace pruner {

Result<Unit> keep_matching(const std::string& pattern, std::vector<WeightedTask>& tasks) {
  if (pattern.empty()) return Unit{};
  try {
    const std::regex regex(pattern);
    std::erase_if(tasks,
                  [&](const WeightedTask& t) { return !std::regex_search(t.task.name, regex); });
  } catch (const std::regex_error& e) {
    return Error("--tasks: \"", pattern, "\" is no regular expression: ", e.what());
  }
  if (tasks.empty())
    return Error("--tasks: no task's name matches \"", pattern, "\"; see pruner tasks");
  return Unit{};
}

Result<std::unique_ptr<Measurer>> make_measurer(const Options& options,
                                                const std::atomic<bool>& interrupted) {
  std::error_code code;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", code);
  if (code) return Error("/proc/self/exe: cannot be read: ", code.message());
  MeasureOptions measure{
      .build_jobs = job_count(options), .seed = static_cast<uint64_t>(options.seed), .stop = {}};
  measure.stop = [&interrupted] { return interrupted.load(); };
  return make_local_measurer(measure, program.string());
}

}  // namespace pruner
