// pruner devices: what code can be made for; pruner device show: one device; pruner device probe:
// this machine's peaks, measured now.
#include <fmt/format.h>

#include <filesystem>

#include "cli/commands.h"
#include "cli/source.h"
#include "measure/device_probe.h"
#include "report/device_table.h"
#include "runtime/gpu_context.h"
#include "support/file.h"
#include "target/device_file.h"

namespace pruner {

/// What this machine has: its CPU, and the first device of each kind, which `--target cuda` and
/// `--target opencl` mean.
static std::vector<Target> devices_here() {
  std::vector<Target> here = {host_target(0)};
  for (const BackendRow& row : kBackends) {
    if (!row.is_gpu) continue;
    const Result<std::vector<GpuFacts>> found = list_gpus(row.backend);
    if (!found.ok()) continue;
    const GpuFacts& facts = found->front();
    Target target = *parse_target(row.name, 0);
    target.source = fmt::format("{} ({})", facts.name, facts.driver);
    target.gpu.arch = facts.arch;
    target.gpu.sms = static_cast<int>(facts.units);
    target.gpu.peak_flops = target.gpu.dram_bandwidth = 0;  // `device probe` measures them
    here.push_back(std::move(target));
  }
  return here;
}

static Json to_json(const Target& target) {
  return {{"target", print(target)},
          {"fingerprint", device_fingerprint(target)},
          {"threads", target.threads},
          {"vector_bytes", target.vector_bytes},
          {"vector_registers", target.vector_registers},
          {"l1_bytes", target.l1_bytes},
          {"l2_bytes", target.l2_bytes},
          {"l3_bytes", target.l3_bytes},
          {"peak_gflops", target.peak_flops * target.threads / 1e9}};
}

Result<int> run_devices_host(const Options& options) {
  const Json json = to_json(host_target(static_cast<int>(options.threads)));
  fmt::print("{}", options.json ? print_json(json) + "\n" : print_fields(json));
  return kDone;
}

Result<int> run_devices_list(const Options& options) {
  const std::vector<Target> here = devices_here();
  std::vector<Target> known;
  for (const DeviceFile& file : device_files()) {
    TRY_ASSIGN(Target target, read_device(std::string(file.name)));
    known.push_back(std::move(target));
  }
  if (options.json) {
    fmt::print("{}\n", print_json(devices_json(here, known)));
  } else {
    fmt::print("{}", print_devices(here, known));
  }
  return kDone;
}

Result<int> run_device_show(const Options& options) {
  if (options.name.empty())
    return Error("a device is missing: a FILE.json, or a name that `pruner devices` lists");
  TRY_ASSIGN(const Target target, read_device(options.name));
  const Json json = target_to_json(target);
  fmt::print("{}", options.json ? json.dump(2) + "\n" : print_fields(json));
  return kDone;
}

Result<int> run_device_probe(const Options& options) {
  TRY_ASSIGN(const Target target, read_target(options));
  Result<Target> found = probe_device(target, options.min_time_s);
  if (!found.ok()) return Error("--target: ", found.error().message());
  Target& probed = *found;
  const std::string& file = options.out_file;
  if (!file.empty()) probed.device = std::filesystem::path(file).stem().string();
  const Json json = target_to_json(probed);
  if (!file.empty()) TRY(write_file(file, json.dump(2) + "\n"));
  fmt::print("{}", options.json ? json.dump(2) + "\n" : print_fields(json));
  if (!file.empty() && !options.json) {
    fmt::print("written to {0}: --target '{1} --device={0}', --psa {0}\n",
               file,
               backend_name(probed.backend));
  }
  return kDone;
}

}  // namespace pruner
