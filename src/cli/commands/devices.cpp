// pruner devices: what code can be made for; pruner device probe: this machine's peaks,
// measured now.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/source.h"
#include "measure/measure.h"
#include "report/profile_table.h"

namespace pruner {

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
  if (options.json) {
    fmt::print("{}\n", print_json(json));
    return kDone;
  }
  for (const auto& [key, value] : json.items()) {
    fmt::print("{:<18} {}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return kDone;
}

Result<int> run_devices_list(const Options& options) {
  const Target host = host_target(0);
  if (options.json) {
    fmt::print("{}\n", print_json(Json::array({to_json(host)})));
  } else {
    fmt::print("llvm   {}  (this machine; `pruner devices host` says more)\n",
               device_fingerprint(host));
  }
  return kDone;
}

Result<int> run_device_probe(const Options& options) {
  const Target host = host_target(static_cast<int>(options.threads));
  const PeakRates peaks = probe_peaks(host, options.min_time_s);
  fmt::print("{}\n", options.json ? print_json(to_json(peaks)) : print(peaks));
  return kDone;
}

}  // namespace pruner
