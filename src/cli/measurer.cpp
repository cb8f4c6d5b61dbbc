#include "cli/measurer.h"

#include <charconv>
#include <filesystem>

#include "deploy/memory_plan.h"
#include "support/log.h"

namespace pruner {

/// What a run of the network touches: weights and arena.
static int64_t bytes_of_a_run(const Partition& partition) {
  const std::vector<KernelMemory> no_workspaces(partition.groups.size());
  return partition.weight_bytes() + plan_memory(partition, no_workspaces).arena_bytes;
}

/// "cuda:0,cuda:1": numbers of devices of the target's backend.
static Result<std::vector<int>> parse_devices(std::string_view text, const Target& target) {
  const std::string prefix = std::string(backend_name(target.backend)) + ":";
  if (!target.is_gpu()) return Error("there is nothing to choose from: the target is this CPU");
  std::vector<int> devices;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    int number = -1;
    if (one.starts_with(prefix)) {
      const std::string_view digits = one.substr(prefix.size());
      const auto [end, code] =
          std::from_chars(digits.data(), digits.data() + digits.size(), number);
      if (code != std::errc() || end != digits.data() + digits.size()) number = -1;
    }
    if (number < 0)
      return Error("\"", one, "\" is no device of the target, expected ", prefix, "0, ...");
    if (std::ranges::find(devices, number) != devices.end())
      return Error("\"", one, "\" stands there twice");
    devices.push_back(number);
  }
  return devices;
}

Result<std::unique_ptr<Measurer>> make_measurer(const Options& options,
                                                const Source& source,
                                                const Target& target,
                                                const std::atomic<bool>& interrupted) {
  MeasureOptions measure{.build_jobs = job_count(options),
                         .seed = static_cast<uint64_t>(options.seed),
                         .stop = [&interrupted] { return interrupted.load(); },
                         .flush_l2 = options.flush_l2};
  if (!options.devices.empty()) {
    Result<std::vector<int>> devices = parse_devices(options.devices, target);
    if (!devices.ok()) return Error("--devices: ", devices.error().message());
    measure.devices = *std::move(devices);
  }
  if (const Result<Unit> runs = check_measurable(target, measure.devices); !runs.ok())
    return Error("--target: ", runs.error().message());
  if (source.network)
    measure.weights_from = probe_weights(target, bytes_of_a_run(source.partition));
  log_detail("kernels find their weights in {}",
             measure.weights_from == WeightsFrom::kMemory ? "memory" : "the last-level cache");
  std::error_code code;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", code);
  if (code) return Error("/proc/self/exe: cannot be read: ", code.message());
  return make_local_measurer(measure, program.string());
}

}  // namespace pruner
