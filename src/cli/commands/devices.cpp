// pruner device list: what code can be made for; pruner device show: one device; pruner device
// probe: this machine's peaks, measured now.
#include <fmt/format.h>

#include <filesystem>

#include "cli/commands.h"
#include "cli/source.h"
#include "measure/device_probe.h"
#include "report/device_table.h"
#include "runtime/gpu_context.h"
#include "support/file.h"
#include "support/log.h"
#include "target/core_watch.h"
#include "target/device_file.h"

namespace pruner {

namespace {

/// Returns the devices of this machine: its CPU, and the first device of each kind, which `--target
/// cuda` and `--target opencl` mean.
std::vector<Target> devices_here() {
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

// Sizes in bytes; peak_gflops is of all threads.
Json to_json(const Target& target) {
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

struct Host {
  int threads = 0;

  void add_to(CLI::App& app) { add_threads(app, threads); }
  Result<int> run(const Invocation& call) const {
    const Json json = to_json(host_target(threads));
    return call.show(json, print_fields(json));
  }
};

Result<int> list_devices(const Invocation& call) {
  const std::vector<Target> here = devices_here();
  std::vector<Target> known;
  for (const DeviceFile& file : device_files()) {
    TRY_ASSIGN(Target target, read_device(std::string(file.name)));
    known.push_back(std::move(target));
  }
  return call.show(devices_json(here, known), print_devices(here, known));
}

struct Show {
  std::string name;

  void add_to(CLI::App& app) {
    begin_group(app, OptionGroup::kInput);
    add_option(app, "DEVICE", name).help("a device (`pruner device list`) or its FILE.json");
  }
  Result<int> run(const Invocation& call) const {
    if (name.empty())
      return Error("a device is missing: a FILE.json, or a name that `pruner device list` shows");
    TRY_ASSIGN(const Target target, read_device(name));
    const Json json = target_to_json(target);
    fmt::print("{}", call.json ? json.dump(2) + "\n" : print_fields(json));
    return kDone;
  }
};

struct Probe {
  TargetOptions on;
  double min_time_s = 1;
  std::string file;

  void add_to(CLI::App& app) {
    on.add_to(app);
    begin_group(app, OptionGroup::kMeasuring);
    add_option(app, "--min-time SECONDS", min_time_s).help("how long each thing is measured", "1");
    add_out_file(app, file, "the device file to write: NAME.json", {FileKind::kJson});
  }

  Result<int> run(const Invocation& call) const {
    TRY_ASSIGN(const Target target, read_target(on));
    const CoreWatch watch;
    Result<Target> found = probe_device(target, min_time_s);
    const std::string busy = target.is_gpu() ? "" : print_busy(watch.time());
    if (!found.ok()) return Error("--target: ", found.error().message());
    Target& probed = *found;
    if (!busy.empty()) {
      log_warning("while it was measured, {}: what it can do alone is more", busy);
      probed.source += "; " + busy;
    }
    if (!file.empty()) probed.device = std::filesystem::path(file).stem().string();
    const Json json = target_to_json(probed);
    if (!file.empty()) TRY(write_file(file, json.dump(2) + "\n"));
    fmt::print("{}", call.json ? json.dump(2) + "\n" : print_fields(json));
    if (row_of(probed.backend).has_arch && !json.contains("tensor_rates"))
      log_warning("{} has no tensor cores that mma.sync reaches: no tensor_rates", probed.gpu.arch);
    if (!file.empty() && !call.json) {
      fmt::print("written to {0}: --target '{1} --device={0}', --psa {0}\n",
                 file,
                 backend_name(probed.backend));
    }
    return kDone;
  }
};

}  // namespace

RunCommand make_devices_list(CLI::App&) { return list_devices; }
RunCommand make_devices_host(CLI::App& app) { return make_command<Host>(app); }
RunCommand make_device_show(CLI::App& app) { return make_command<Show>(app); }
RunCommand make_device_probe(CLI::App& app) { return make_command<Probe>(app); }

}  // namespace pruner
