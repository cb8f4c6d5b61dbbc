#include "cli/measurer.h"

#include <filesystem>

#include "cli/source.h"

namespace pruner {

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
