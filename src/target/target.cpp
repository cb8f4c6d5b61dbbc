#include "target/target.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <sstream>

#include "target/cpu_table.h"
#include "target/device_file.h"
#include "target/dot_rates.h"
#include "target/gpu_table.h"
#include "target/host.h"

namespace pruner {

static constexpr std::string_view kGeneric = "generic";

std::string_view isa_name(Isa isa) { return isa == Isa::kArm ? "AArch64" : "x86-64"; }

std::string triple_of(Isa isa) {
  return isa == Isa::kArm ? "aarch64-linux-gnu" : "x86_64-linux-gnu";
}

std::optional<Isa> parse_isa(std::string_view text) {
  const std::string_view first = text.substr(0, text.find("-linux"));
  for (const auto& [name, isa] : {std::pair("x86_64", Isa::kX86),
                                  {"x86-64", Isa::kX86},
                                  {"aarch64", Isa::kArm},
                                  {"arm64", Isa::kArm},
                                  {"AArch64", Isa::kArm}}) {
    if (first == name || first.starts_with(std::string(name) + "-")) return isa;
  }
  return std::nullopt;
}

static Target from_row(const CpuRow& row, int threads, Isa generic = kHostIsa) {
  Target target;
  target.isa = row.name == kGeneric ? generic : row.isa;
  target.device = row.name;
  target.mcpu = row.name;
  target.threads = threads;
  target.dots = row.dots;
  target.vector_bytes = row.vector_bytes;
  target.vector_registers = target.isa == Isa::kArm ? 32 : row.vector_registers;
  target.fmas_per_cycle = row.fmas_per_cycle;
  target.loads_per_cycle = row.loads_per_cycle;
  target.masked_vectors = row.vector_bytes == 64;
  target.l1_bytes = row.l1_kib << 10;
  target.l2_bytes = row.l2_kib << 10;
  target.l3_bytes = row.l3_mib << 20;
  target.peak_flops = row.gflops * 1e9;
  // Typical of a core: what it loads in a cycle from L1, half of the level before from each next.
  const double clock_hz = target.peak_flops / (2.0 * target.lanes(4) * row.fmas_per_cycle);
  target.l1_bandwidth = clock_hz * row.loads_per_cycle * static_cast<double>(row.vector_bytes);
  target.l2_bandwidth = target.l1_bandwidth / 2;
  target.l3_bandwidth = target.l1_bandwidth / 4;
  target.dram_bandwidth = std::min(25e9 * threads, 200e9);
  return target;
}

static Target from_host(const HostCpu& host, int threads) {
  const CpuRow* row = find_cpu(host.mcpu);
  Target target = from_row(row ? *row : kCpus[0], threads > 0 ? threads : host.cores);
  target.device = "host";
  target.features = host.features;
  drop_missing_dots(target);  // a hypervisor may hide what the model has
  const auto known = [](int64_t size, int64_t otherwise) { return size > 0 ? size : otherwise; };
  target.cache_line_bytes = known(host.cache_line_bytes, target.cache_line_bytes);
  target.l1_bytes = known(host.l1_bytes, target.l1_bytes);
  target.l2_bytes = known(host.l2_bytes, target.l2_bytes);
  target.l3_bytes = known(host.l3_bytes, target.l3_bytes);
  return target;
}

static const HostCpu& this_host() {  // read once: it does not change under a process
  static const HostCpu host = read_host();
  return host;
}

Target host_target(int threads) { return from_host(this_host(), threads); }

static Error unknown_cpu(std::string_view name) {
  std::string known;
  for (const CpuRow& row : kCpus) known += (known.empty() ? "" : ", ") + std::string(row.name);
  return Error("unknown cpu \"", name, "\", expected native or one of: ", known);
}

Result<Target> cpu_target(std::string_view mcpu, int threads, Isa generic) {
  const CpuRow* row = find_cpu(mcpu);
  if (!row) return unknown_cpu(mcpu);
  return from_row(*row, threads, generic);
}

Result<Gpu> with_arch(Gpu gpu, std::string_view arch) {
  const GpuArchRow* row = find_gpu_arch(arch);
  if (!row) {
    std::string known;
    for (const GpuArchRow& each : kGpuArchs)
      known.append(known.empty() ? "" : ", ").append(each.name);
    return Error("unknown arch \"", arch, "\", expected one of: ", known);
  }
  gpu.arch = arch;
  gpu.max_threads_per_sm = row->max_threads_per_sm;
  gpu.max_blocks_per_sm = row->max_blocks_per_sm;
  gpu.registers_per_sm = row->registers_per_sm;
  gpu.registers_per_block = row->registers_per_block;
  gpu.shared_bytes_per_sm = row->shared_kib_per_sm << 10;
  gpu.partitions_per_sm = row->partitions_per_sm;
  gpu.fp32_lanes_per_sm = row->fp32_lanes_per_sm;
  gpu.most_shared_bytes_per_block = row->most_shared_kib_per_block << 10;
  gpu.tensor_rates = row->tensor_rates;
  return gpu;
}

// This machine's own name means this machine, with the caches that it has.
static Result<Target> from_cpu(std::string_view mcpu, std::optional<Isa> isa, int threads) {
  const HostCpu& host = this_host();
  const bool here = isa.value_or(kHostIsa) == kHostIsa;
  if (here && (mcpu.empty() || mcpu == "native" || mcpu == host.mcpu))
    return from_host(host, threads);
  if (mcpu.empty()) mcpu = kGeneric;
  if (mcpu == "native") mcpu = host.mcpu;
  TRY_ASSIGN(Target target,
             cpu_target(mcpu, threads > 0 ? threads : host.cores, isa.value_or(kHostIsa)));
  if (isa && *isa != target.isa) {
    return Error("--mcpu=", mcpu, " is ", isa_name(target.isa), ", --mtriple is ", isa_name(*isa));
  }
  return target;
}

using TargetOptions = std::map<std::string, std::string, std::less<>>;

// "-mcpu=haswell" and "--mcpu=haswell" alike.
static Result<TargetOptions> parse_options(std::istringstream& words) {
  TargetOptions options;
  for (std::string word; words >> word;) {
    const size_t start = word.find_first_not_of('-');
    const size_t equals = word.find('=');
    if (start == 0 || start == std::string::npos || equals == std::string::npos || equals < start) {
      return Error("\"", word, "\" is not of the form --name=value");
    }
    options[word.substr(start, equals - start)] = word.substr(equals + 1);
  }
  return options;
}

static std::string option(const TargetOptions& options, std::string_view name) {
  const auto found = options.find(name);
  return found == options.end() ? "" : found->second;
}

static Error unknown_option(std::string_view name, std::string_view expected) {
  return Error("unknown option --", name, ", expected ", expected);
}

static Result<int64_t> parse_count(const std::string& name, const std::string& text, int64_t most) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > most)
    return Error("--", name, " is \"", text, "\", expected 1 to ", most);
  return value;
}

static Result<Target> parse_llvm(const TargetOptions& options, int threads) {
  static constexpr std::string_view kKnown[] = {"mcpu", "mtriple", "threads", "device"};
  // Options that TVM writes in records and that mean nothing here.
  static constexpr std::string_view kPassedOver[] = {
      "keys", "link-params", "libs", "mattr", "model", "num-cores"};
  for (const auto& [name, value] : options) {
    if (std::ranges::find(kKnown, name) == std::end(kKnown) &&
        std::ranges::find(kPassedOver, name) == std::end(kPassedOver)) {
      return unknown_option(name, "--mcpu, --threads or --device");
    }
  }
  if (threads < 0 || threads > kMostThreads)
    return Error(threads, " threads, expected 1 to ", kMostThreads);
  if (const std::string text = option(options, "threads"); !text.empty()) {
    TRY_ASSIGN(const int64_t value, parse_count("threads", text, kMostThreads));
    if (threads == 0) threads = static_cast<int>(value);
  }
  const std::string mcpu = option(options, "mcpu"), device = option(options, "device");
  if (!device.empty() && !mcpu.empty()) return Error("--device has its own cpu, leave out --mcpu");
  const std::string triple = option(options, "mtriple");
  const std::optional<Isa> isa = parse_isa(triple);
  if (!triple.empty() && !isa) {
    return Error("--mtriple is \"", triple, "\", expected x86_64-linux-gnu or aarch64-linux-gnu");
  }
  if (device.empty()) return from_cpu(mcpu, isa, threads);
  TRY_ASSIGN(Target target, read_device(device));
  if (target.is_gpu()) return Error("\"", device, "\" is a GPU, expected a CPU");
  if (threads > 0) target.threads = threads;
  return target;
}

struct LimitRow {
  std::string_view tvm_name;  // name in targets: ours and those that TVM writes in records
  int64_t Gpu::*field;
};
// The first name of a field is the one that is printed.
static constexpr LimitRow kLimits[] = {
    {"max_threads_per_block", &Gpu::max_threads_per_block},
    {"max_num_threads", &Gpu::max_threads_per_block},
    {"registers_per_block", &Gpu::registers_per_block},
    {"shared_memory_per_block", &Gpu::shared_bytes_per_block},
    {"max_shared_memory_per_block", &Gpu::shared_bytes_per_block},
    {"l2_cache_size_bytes", &Gpu::l2_bytes},
};
static constexpr std::string_view kWarpOption = "thread_warp_size";

/// Returns what is named and nothing else: the device, or what every device of the backend and arch
/// has.
static Result<Target> base_gpu(Backend backend, const std::string& device, std::string_view arch) {
  Target target;
  if (!device.empty()) {
    TRY_ASSIGN(target, read_device(device));
    if (!target.is_gpu()) return Error("\"", device, "\" is a CPU, expected a GPU");
  } else if (!row_of(backend).has_arch) {  // limits of mobile GPUs, too (Ansor's parameters)
    target.gpu.max_threads_per_block = 256;
    target.gpu.shared_bytes_per_block = 32 << 10;
  }
  target.backend = backend;
  if (!arch.empty() && arch != target.gpu.arch) {
    if (!target.gpu.arch.empty())
      return Error("\"", device, "\" is ", target.gpu.arch, ", --arch is ", arch);
    TRY_ASSIGN(target.gpu, with_arch(target.gpu, arch));
  }
  // OpenCL C has no words for what an arch has beyond other devices: statements of warps, and
  // units.
  if (!row_of(backend).has_arch) {
    target.gpu.arch.clear();
    target.gpu.tensor_rates = {};
  }
  return target;
}

static Result<Target> parse_gpu(Backend backend, const TargetOptions& options) {
  static constexpr std::string_view kKnown[] = {"device", "model", "arch", kWarpOption};
  // Options that TVM writes in records and that mean nothing here.
  static constexpr std::string_view kPassedOver[] = {"from_device",
                                                     "host",
                                                     "image_base_address_alignment",
                                                     "keys",
                                                     "libs",
                                                     "local_memory_per_block",
                                                     "max_function_args",
                                                     "mcpu",
                                                     "mtriple",
                                                     "tag",
                                                     "texture_depth_limit",
                                                     "texture_spatial_limit"};
  std::string device = option(options, "device"), model = option(options, "model");
  if (model == "unknown") model = "";  // TVM's word for none
  if (!device.empty() && !model.empty())
    return Error("--device and --model are one, leave out one");
  if (device.empty()) device = model;
  TRY_ASSIGN(Target target, base_gpu(backend, device, option(options, "arch")));
  const bool is_file = !device.empty() && find_device_file(device) == nullptr;
  for (const auto& [name, value] : options) {
    const auto limit = std::ranges::find(kLimits, std::string_view(name), &LimitRow::tvm_name);
    const bool is_limit = limit != std::end(kLimits) || name == kWarpOption;
    if (is_limit && is_file) return Error("--device has its own limits, leave out --", name);
    if (name == kWarpOption) {
      TRY_ASSIGN(const int64_t warp_size, parse_count(name, value, 1024));
      target.gpu.warp_size = static_cast<int>(warp_size);
    } else if (is_limit) {
      TRY_ASSIGN(target.gpu.*limit->field, parse_count(name, value, int64_t{1} << 40));
    } else if (std::ranges::find(kKnown, name) == std::end(kKnown) &&
               std::ranges::find(kPassedOver, name) == std::end(kPassedOver)) {
      return unknown_option(name, "--model, --arch or --device");
    }
  }
  TRY(check_block_limits(target.gpu));
  target.device = device;
  return target;
}

Result<Target> parse_target(std::string_view text, int threads) {
  std::istringstream words{std::string(text)};
  std::string kind;
  words >> kind;
  const std::optional<Backend> backend = parse_backend(kind);
  if (!backend) return Error("unknown target \"", kind, "\", expected llvm, cuda or opencl");
  const Result<TargetOptions> options = parse_options(words);
  if (!options.ok()) return Error(kind, ": ", options.error().message());
  Result<Target> target =
      row_of(*backend).is_gpu ? parse_gpu(*backend, *options) : parse_llvm(*options, threads);
  if (!target.ok()) return Error(kind, ": ", target.error().message());
  return target;
}

static std::string print_gpu(const Target& target) {
  const bool is_known = find_device_file(target.device) != nullptr;
  std::string text(backend_name(target.backend));
  if (!target.device.empty()) text += (is_known ? " --model=" : " --device=") + target.device;
  if (!target.gpu.arch.empty() && !is_known) text += " --arch=" + target.gpu.arch;
  if (!target.device.empty() && !is_known) return text;
  const Result<Target> base = base_gpu(target.backend, target.device, target.gpu.arch);
  if (!base.ok()) return text;
  for (auto row = std::begin(kLimits); row != std::end(kLimits); ++row) {
    const bool first = std::find_if(std::begin(kLimits), row, [&](const LimitRow& other) {
                         return other.field == row->field;
                       }) == row;
    if (first && target.gpu.*row->field != base->gpu.*row->field)
      text.append(" --").append(row->tvm_name) += "=" + std::to_string(target.gpu.*row->field);
  }
  if (target.gpu.warp_size != base->gpu.warp_size)
    text.append(" --").append(kWarpOption) += "=" + std::to_string(target.gpu.warp_size);
  return text;
}

int compute_capability(std::string_view arch) {
  constexpr std::string_view kArch = "sm_";
  if (!arch.starts_with(kArch)) return 0;
  return std::atoi(std::string(arch.substr(kArch.size())).c_str());
}

std::string print(const Target& target) {
  if (target.is_gpu()) return print_gpu(target);
  const bool is_file = target.device != "host" && target.device != target.mcpu;
  const std::string triple = target.isa != kHostIsa && target.mcpu == kGeneric
                                 ? "-mtriple=" + triple_of(target.isa) + " "
                                 : "";
  return "llvm " + (is_file ? "--device=" + target.device : triple + "-mcpu=" + target.mcpu) +
         " --threads=" + std::to_string(target.threads);
}

std::string device_fingerprint(const Target& target) {
  if (target.is_gpu()) {
    std::string text(backend_name(target.backend));
    for (const std::string& part : {target.device, target.gpu.arch}) {
      if (!part.empty()) text += " " + part;
    }
    return text;
  }
  const bool is_file = target.device != "host" && target.device != target.mcpu;
  const std::string model = is_file                  ? target.device
                            : target.isa != kHostIsa ? std::string(isa_name(target.isa))
                                                     : this_host().model_name;
  return model + " " + target.mcpu + " x" + std::to_string(target.threads);
}

}  // namespace pruner
