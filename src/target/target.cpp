#include "target/target.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <sstream>

#include "support/file.h"
#include "target/cpu_table.h"
#include "target/host.h"

namespace pruner {

static constexpr std::string_view kGeneric = "generic";

std::string_view isa_name(Isa isa) { return isa == Isa::kArm ? "AArch64" : "x86-64"; }

std::string triple_of(Isa isa) {
  return isa == Isa::kArm ? "aarch64-linux-gnu" : "x86_64-linux-gnu";
}

// Of a triple's first part, and of isa_name().
static std::optional<Isa> parse_isa(std::string_view text) {
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
  target.vector_bytes = row.vector_bytes;
  target.vector_registers = target.isa == Isa::kArm ? 32 : row.vector_registers;
  target.masked_vectors = row.vector_bytes == 64;
  target.l1_bytes = row.l1_kib << 10;
  target.l2_bytes = row.l2_kib << 10;
  target.l3_bytes = row.l3_mib << 20;
  target.peak_flops = row.gflops * 1e9;
  // Typical of a core: two loads a cycle from L1, about half of the level before from each next.
  target.l1_bandwidth = row.vector_bytes >= 32 ? 200e9 : 80e9;
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

// This machine's own name means this machine, with the caches that it has.
static Result<Target> from_cpu(std::string_view mcpu, std::optional<Isa> isa, int threads) {
  const HostCpu& host = this_host();
  const bool here = isa.value_or(kHostIsa) == kHostIsa;
  if (here && (mcpu.empty() || mcpu == "native" || mcpu == host.mcpu))
    return from_host(host, threads);
  if (mcpu.empty()) mcpu = kGeneric;
  if (mcpu == "native") mcpu = host.mcpu;
  const CpuRow* row = find_cpu(mcpu);
  if (!row) return unknown_cpu(mcpu);
  const Target target = from_row(*row, threads > 0 ? threads : host.cores, isa.value_or(kHostIsa));
  if (isa && *isa != target.isa) {
    return Error("--mcpu=", mcpu, " is ", isa_name(target.isa), ", --mtriple is ", isa_name(*isa));
  }
  return target;
}

struct CountField {
  const char* name;
  int64_t Target::*field;
};
struct RateField {
  const char* name;
  double Target::*field;
};
static constexpr CountField kCounts[] = {
    {"vector_bytes", &Target::vector_bytes},
    {"cache_line_bytes", &Target::cache_line_bytes},
    {"l1_bytes", &Target::l1_bytes},
    {"l2_bytes", &Target::l2_bytes},
    {"l3_bytes", &Target::l3_bytes},
};
static constexpr RateField kRates[] = {
    {"peak_flops", &Target::peak_flops},
    {"l1_bandwidth", &Target::l1_bandwidth},
    {"l2_bandwidth", &Target::l2_bandwidth},
    {"l3_bandwidth", &Target::l3_bandwidth},
    {"dram_bandwidth", &Target::dram_bandwidth},
};

Json target_to_json(const Target& target) {
  Json json = {{"name", target.device}, {"mcpu", target.mcpu}, {"threads", target.threads}};
  json["isa"] = isa_name(target.isa);
  json["features"] = target.features;
  json["vector_registers"] = target.vector_registers;
  json["masked_vectors"] = target.masked_vectors;
  for (const auto& [name, field] : kCounts) json[name] = target.*field;
  for (const auto& [name, field] : kRates) json[name] = target.*field;
  return json;
}

Result<Target> target_from_json(const Json& json) {
  TRY_ASSIGN(const std::string mcpu, json_get<std::string>(json, "mcpu"));
  const CpuRow* row = find_cpu(mcpu);
  if (!row) return unknown_cpu(mcpu);
  int64_t threads = 1;
  if (json.contains("threads")) {
    TRY_ASSIGN(threads, json_get<int64_t>(json, "threads"));
  }
  if (threads < 1 || threads > 4096) return Error("threads is ", threads, ", expected 1 to 4096");
  std::optional<Isa> isa = kHostIsa;
  if (json.contains("isa")) {
    TRY_ASSIGN(const std::string name, json_get<std::string>(json, "isa"));
    isa = parse_isa(name);
    if (!isa) return Error("isa is \"", name, "\", expected x86-64 or AArch64");
  }
  Target target = from_row(*row, static_cast<int>(threads), *isa);
  TRY_ASSIGN(target.device, json_get<std::string>(json, "name"));
  if (json.contains("features")) {
    TRY_ASSIGN(target.features, json_get<std::string>(json, "features"));
  }
  if (json.contains("masked_vectors")) {
    TRY_ASSIGN(target.masked_vectors, json_get<bool>(json, "masked_vectors"));
  }
  int64_t registers = target.vector_registers;
  if (json.contains("vector_registers")) {
    TRY_ASSIGN(registers, json_get<int64_t>(json, "vector_registers"));
  }
  for (const auto& [name, field] : kCounts) {
    if (!json.contains(name)) continue;
    TRY_ASSIGN(target.*field, json_get<int64_t>(json, name));
    if (target.*field < 1) return Error(name, " is ", target.*field, ", expected at least 1");
  }
  for (const auto& [name, field] : kRates) {
    if (!json.contains(name)) continue;
    TRY_ASSIGN(target.*field, json_get<double>(json, name));
    if (!(target.*field > 0)) return Error(name, " is ", target.*field, ", expected more than 0");
  }
  if (registers < 1 || registers > 1024) return Error("vector_registers is ", registers);
  if (!std::ranges::count(std::initializer_list<int64_t>{16, 32, 64}, target.vector_bytes)) {
    return Error("vector_bytes is ", target.vector_bytes, ", expected 16, 32 or 64");
  }
  target.vector_registers = static_cast<int>(registers);
  return target;
}

static Result<Target> from_file(const std::string& path, int threads) {
  TRY_ASSIGN(const std::string text, read_file(path));
  const Result<Json> json = parse_json(text);
  if (!json.ok()) return Error(path, ": ", json.error().message());
  Result<Target> target = target_from_json(*json);
  if (!target.ok()) return Error(path, ": ", target.error().message());
  target->device = path;  // so that the printed target reads the file again
  if (threads > 0) target->threads = threads;
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

static Result<Target> parse_llvm(const TargetOptions& options, int threads) {
  static constexpr std::string_view kKnown[] = {"mcpu", "mtriple", "threads", "device"};
  // What TVM writes in records and means nothing here.
  static constexpr std::string_view kPassedOver[] = {
      "keys", "link-params", "libs", "mattr", "model", "num-cores"};
  for (const auto& [name, value] : options) {
    if (std::ranges::find(kKnown, name) == std::end(kKnown) &&
        std::ranges::find(kPassedOver, name) == std::end(kPassedOver)) {
      return Error("unknown option --", name, ", expected --mcpu, --threads or --device");
    }
  }
  if (const std::string text = option(options, "threads"); !text.empty()) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || *end != '\0' || value < 1 || value > 4096) {
      return Error("--threads is \"", text, "\", expected 1 to 4096");
    }
    if (threads == 0) threads = value;
  }
  const std::string mcpu = option(options, "mcpu"), device = option(options, "device");
  if (!device.empty() && !mcpu.empty()) return Error("--device has its own cpu, leave out --mcpu");
  const std::string triple = option(options, "mtriple");
  const std::optional<Isa> isa = parse_isa(triple);
  if (!triple.empty() && !isa) {
    return Error("--mtriple is \"", triple, "\", expected x86_64-linux-gnu or aarch64-linux-gnu");
  }
  return device.empty() ? from_cpu(mcpu, isa, threads) : from_file(device, threads);
}

Result<Target> parse_target(std::string_view text, int threads) {
  std::istringstream words{std::string(text)};
  std::string kind;
  words >> kind;
  const bool is_gpu = kind == "cuda" || kind == "opencl";
  if (kind != "llvm" && !is_gpu) {
    return Error("unknown target \"", kind, "\", expected llvm, cuda or opencl");
  }
  Result<TargetOptions> options = parse_options(words);
  if (!options.ok()) return Error(kind, ": ", options.error().message());
  if (!is_gpu) {
    Result<Target> target = parse_llvm(*options, threads);
    if (!target.ok()) return Error(kind, ": ", target.error().message());
    return target;
  }
  Target target;
  target.backend = kind == "cuda" ? Backend::kCuda : Backend::kOpenCl;
  target.device = option(*options, options->contains("model") ? "model" : "device");
  return target;
}

std::string print(const Target& target) {
  if (target.backend != Backend::kLlvm) {
    const std::string kind = target.backend == Backend::kCuda ? "cuda" : "opencl";
    return target.device.empty() ? kind : kind + " --model=" + target.device;
  }
  const bool is_file = target.device != "host" && target.device != target.mcpu;
  const std::string triple = target.isa != kHostIsa && target.mcpu == kGeneric
                                 ? "-mtriple=" + triple_of(target.isa) + " "
                                 : "";
  return "llvm " + (is_file ? "--device=" + target.device : triple + "-mcpu=" + target.mcpu) +
         " --threads=" + std::to_string(target.threads);
}

std::string device_fingerprint(const Target& target) {
  if (target.backend != Backend::kLlvm) return print(target);
  const bool is_file = target.device != "host" && target.device != target.mcpu;
  const std::string model = is_file                  ? target.device
                            : target.isa != kHostIsa ? std::string(isa_name(target.isa))
                                                     : this_host().model_name;
  return model + " " + target.mcpu + " x" + std::to_string(target.threads);
}

}  // namespace pruner
