#include "target/device_file.h"

#include <algorithm>
#include <variant>

#include "support/file.h"
#include "support/match.h"
#include "target/dot_rates.h"
#include "target/tensor_rates.h"

namespace pruner {

namespace {

/// Bounds limits a number of a file. A number beyond its bounds is a mistake, and products of such
/// numbers would overflow.
struct Bounds {
  double least = 1, most = 1 << 30;
};
constexpr Bounds kRate = {1e3, 1e18};         // FLOP/s, bytes/s, Hz
constexpr Bounds kGigaRate = {1e-6, 1e12};    // GFLOP/s, GB/s
constexpr Bounds kPerCycle = {1e-3, 1e4};     // instructions per cycle of a core
constexpr Bounds kSeconds = {1e-12, 1e3};     // time that starting something takes
constexpr Bounds kCacheBytes = {1, 1 << 30};  // caches of a core
constexpr Bounds kLargeBytes = {1, 1e12};     // last cache of a machine or a device

/// A field by its name in a file.
template <typename T>
struct FieldRow {
  const char* name;
  std::variant<bool T::*, int T::*, int64_t T::*, double T::*, std::string T::*> field;
  Bounds bounds = {};  // limits of a number
};

constexpr FieldRow<Target> kNameFields[] = {
    {"name", &Target::device},
    {"source", &Target::source},
};
constexpr FieldRow<Target> kCpuFields[] = {
    {"mcpu", &Target::mcpu},
    {"features", &Target::features},
    {"threads", &Target::threads, {1, kMostThreads}},
    {"vector_bytes", &Target::vector_bytes},
    {"vector_registers", &Target::vector_registers, {8, 1024}},  // fewer hold no tile
    {"fmas_per_cycle", &Target::fmas_per_cycle, kPerCycle},
    {"loads_per_cycle", &Target::loads_per_cycle, kPerCycle},
    {"masked_vectors", &Target::masked_vectors},
    {"cache_line_bytes", &Target::cache_line_bytes, kCacheBytes},
    {"l1_bytes", &Target::l1_bytes, kCacheBytes},
    {"l2_bytes", &Target::l2_bytes, kCacheBytes},
    {"l3_bytes", &Target::l3_bytes, kLargeBytes},
    {"peak_flops", &Target::peak_flops, kRate},
    {"l1_bandwidth", &Target::l1_bandwidth, kRate},
    {"l2_bandwidth", &Target::l2_bandwidth, kRate},
    {"l3_bandwidth", &Target::l3_bandwidth, kRate},
    {"dram_bandwidth", &Target::dram_bandwidth, kRate},
    {"launch_s", &Target::launch_s, kSeconds},
};
constexpr FieldRow<Gpu> kGpuFields[] = {
    {"arch", &Gpu::arch},
    {"max_threads_per_block", &Gpu::max_threads_per_block, {1, 65536}},
    {"max_registers_per_thread", &Gpu::max_registers_per_thread, {1, 65536}},
    {"registers_per_block", &Gpu::registers_per_block},
    {"shared_bytes_per_block", &Gpu::shared_bytes_per_block},
    {"most_shared_bytes_per_block", &Gpu::most_shared_bytes_per_block},
    {"max_vthreads", &Gpu::max_vthreads, {1, 65536}},
    {"vector_bytes", &Gpu::vector_bytes, {1, 1024}},
    {"warp_size", &Gpu::warp_size, {1, 1024}},
    {"sms", &Gpu::sms, {1, 65536}},
    {"partitions_per_sm", &Gpu::partitions_per_sm, {1, 64}},
    {"fp32_lanes_per_sm", &Gpu::fp32_lanes_per_sm, {1, 65536}},
    {"max_threads_per_sm", &Gpu::max_threads_per_sm, {1, 65536}},
    {"max_blocks_per_sm", &Gpu::max_blocks_per_sm, {1, 65536}},
    {"registers_per_sm", &Gpu::registers_per_sm},
    {"shared_bytes_per_sm", &Gpu::shared_bytes_per_sm},
    {"l2_bytes", &Gpu::l2_bytes, kLargeBytes},
    {"clock_hz", &Gpu::clock_hz, kRate},
    {"peak_flops", &Gpu::peak_flops, kRate},
    {"dram_bandwidth", &Gpu::dram_bandwidth, kRate},
    {"l2_bandwidth", &Gpu::l2_bandwidth, kRate},
    {"shared_bandwidth", &Gpu::shared_bandwidth, kRate},
    {"launch_s", &Gpu::launch_s, kSeconds},
};
constexpr FieldRow<DeviceAbstraction> kAbstractionFields[] = {
    {"peak_performance", &DeviceAbstraction::peak_performance, kGigaRate},
    {"glbmem_bandwidth", &DeviceAbstraction::glbmem_bandwidth, kGigaRate},
    {"vec_len", &DeviceAbstraction::vec_len, {1, 65536}},
    {"active_blocks_per_sm", &DeviceAbstraction::active_blocks_per_sm, {1, 65536}},
    {"sm_nums", &DeviceAbstraction::sm_nums, {1, 65536}},
    {"arch_sm_partition", &DeviceAbstraction::arch_sm_partition, {1, 64}},
    {"arch_warp_size", &DeviceAbstraction::arch_warp_size, {1, 1024}},
    {"reg_cap", &DeviceAbstraction::reg_cap, {1, 65536}},
};
// These fields have code of their own that reads and writes them.
constexpr std::string_view kOtherCpuFields[] = {"backend", "isa", "dots", "draft"},
                           kOtherGpuFields[] = {"backend", "psa", "tensor_rates"};

template <typename T>
Result<Unit> read_field(const Json& value, const FieldRow<T>& row, T& object) {
  const auto expected = [&](const auto&... what) {
    return Error(row.name, " is ", value.dump(), ", expected ", what...);
  };
  const auto within = [&row](const Json& number) {
    return number.is_number() && number.get<double>() >= row.bounds.least &&
           number.get<double>() <= row.bounds.most;
  };
  return match(
      row.field,
      [&](bool T::*field) -> Result<Unit> {
        if (!value.is_boolean()) return expected("true or false");
        object.*field = value.template get<bool>();
        return Unit{};
      },
      [&](std::string T::*field) -> Result<Unit> {
        if (!value.is_string()) return expected("a text");
        object.*field = value.template get<std::string>();
        return Unit{};
      },
      [&](double T::*field) -> Result<Unit> {
        if (!within(value))
          return expected("a number from ", row.bounds.least, " to ", row.bounds.most);
        object.*field = value.template get<double>();
        return Unit{};
      },
      [&]<typename Whole>(Whole T::*field) -> Result<Unit> {
        if (!value.is_number_integer() || !within(value))
          return expected("a whole number from ",
                          static_cast<int64_t>(row.bounds.least),
                          " to ",
                          static_cast<int64_t>(row.bounds.most));
        object.*field = value.template get<Whole>();
        return Unit{};
      });
}

template <typename T, size_t N>
Result<Unit> read_fields(const Json& json, const FieldRow<T> (&rows)[N], T& object) {
  for (const FieldRow<T>& row : rows) {
    if (json.contains(row.name)) TRY(read_field(json.at(row.name), row, object));
  }
  return Unit{};
}

template <typename T, size_t N>
void write_fields(const T& object, const FieldRow<T> (&rows)[N], Json& json) {
  for (const FieldRow<T>& row : rows)
    std::visit([&](auto field) { json[row.name] = object.*field; }, row.field);
}

template <typename Rows>
void add_names(const Rows& rows, std::vector<std::string_view>& names) {
  for (const auto& row : rows) {
    if constexpr (std::is_convertible_v<decltype(row), std::string_view>) {
      names.push_back(row);
    } else {
      names.push_back(row.name);
    }
  }
}

/// Fails if the object has a field that none of the tables has.
template <typename... Tables>
Result<Unit> check_names(const Json& json, const Tables&... tables) {
  std::vector<std::string_view> names;
  (add_names(tables, names), ...);
  for (const auto& [key, value] : json.items()) {
    if (std::ranges::find(names, key) != names.end()) continue;
    std::string known;
    for (const std::string_view name : names) known.append(known.empty() ? "" : ", ").append(name);
    return Error("unknown field \"", key, "\", expected one of: ", known);
  }
  return Unit{};
}

Result<std::string> read_text(const Json& json, const char* name) {
  if (!json.contains(name)) return Error("missing key \"", name, "\"");
  if (json.at(name).is_string()) return json.at(name).get<std::string>();
  return Error(name, " is ", json.at(name).dump(), ", expected a text");
}

Result<Backend> read_backend(const Json& json) {
  if (!json.contains("backend")) return Target().backend;
  TRY_ASSIGN(const std::string text, read_text(json, "backend"));
  if (const std::optional<Backend> backend = parse_backend(text)) return *backend;
  return Error("backend is \"", text, "\", expected llvm, cuda or opencl");
}

Result<double> read_rate(const Json& rate, std::string_view name, double most) {
  const double value = rate.is_number() ? rate.get<double>() : -1;
  if (value >= 0 && value <= most) return value;
  return Error(name, " is ", rate.dump(), ", expected a number from 0 to ", most);
}

// A rate of 0 takes an instruction away; none brings one that the CPU has not.
Result<Unit> read_dots(const Json& dots, Target& target) {
  if (!dots.is_object()) return Error("dots is ", dots.dump(), ", expected an object");
  TRY(check_names(dots, kDotRates));
  for (const DotRateRow& row : kDotRates) {
    if (!dots.contains(row.name)) continue;
    const Result<double> rate = read_rate(dots.at(row.name), row.name, kMostDotRate);
    if (!rate.ok()) return Error("dots: ", rate.error().message());
    if (*rate > 0 && !has_dots(target, row))
      return Error(
          "dots: ", row.name, " is ", *rate, ", but this CPU lacks ", row.features(target.isa));
    target.dots.*row.rate = *rate;
  }
  return Unit{};
}

// Reads like read_dots(): 0 takes a unit away; a unit that the architecture lacks is an error.
Result<Unit> read_tensor_rates(const Json& rates, Gpu& gpu) {
  TRY(check_names(rates, kTensorRates));
  for (const TensorRateRow& row : kTensorRates) {
    if (!rates.contains(row.name)) continue;
    TRY_ASSIGN(const double rate, read_rate(rates.at(row.name), row.name, kMostTensorRate));
    if (rate > 0 && !row.is_on(compute_capability(gpu)))
      return Error(row.name,
                   " is ",
                   rate,
                   ", but ",
                   gpu.arch.empty() ? "a device without an arch" : gpu.arch,
                   " lacks it: sm_",
                   row.oldest,
                   row.newest == row.oldest ? " alone has it" : " is the first that has it");
    gpu.tensor_rates.*row.rate = rate;
  }
  return Unit{};
}

constexpr double kLeastDraftNumber = 1e-3;  // formulas divide by some

Result<Unit> read_draft(const Json& draft, CpuModel& model) {
  if (!draft.is_object()) return Error("draft is ", draft.dump(), ", expected an object");
  const auto checked = [&]() -> Result<Unit> {
    TRY(check_names(draft, kCpuModelRows));
    for (const CpuModelRow& row : kCpuModelRows) {
      if (draft.contains(row.name))
        TRY(read_field(draft.at(row.name),
                       FieldRow<CpuModel>{row.name, row.field, {kLeastDraftNumber, row.most}},
                       model));
    }
    return Unit{};
  }();
  if (!checked.ok()) return Error("draft: ", checked.error().message());
  return Unit{};
}

Result<Target> cpu_from_json(const Json& json) {
  TRY_ASSIGN(const std::string mcpu, read_text(json, "mcpu"));
  TRY(check_names(json, kNameFields, kCpuFields, kOtherCpuFields));
  std::optional<Isa> isa = kHostIsa;
  if (json.contains("isa")) {
    TRY_ASSIGN(const std::string text, read_text(json, "isa"));
    isa = parse_isa(text);
    if (!isa) return Error("isa is \"", text, "\", expected x86-64 or AArch64");
  }
  TRY_ASSIGN(Target target, cpu_target(mcpu, 1, *isa));
  TRY(read_fields(json, kCpuFields, target));
  if (!std::ranges::count(std::initializer_list<int64_t>{16, 32, 64}, target.vector_bytes)) {
    return Error("vector_bytes is ", target.vector_bytes, ", expected 16, 32 or 64");
  }
  drop_missing_dots(target);
  if (json.contains("dots")) TRY(read_dots(json.at("dots"), target));
  if (json.contains("draft")) TRY(read_draft(json.at("draft"), target.draft));
  return target;
}

// Typical values for the bandwidths that vendors' sheets leave out.
constexpr double kL2OverMemory = 3;
constexpr double kSharedBytesPerCycle = 128;  // per multiprocessor

Result<Unit> read_psa(const Json& psa, DeviceAbstraction& abstraction) {
  if (!psa.is_object()) return Error("psa is ", psa.dump(), ", expected an object");
  Result<Unit> read = check_names(psa, kAbstractionFields);
  if (read.ok()) read = read_fields(psa, kAbstractionFields, abstraction);
  if (!read.ok()) return Error("psa: ", read.error().message());
  return Unit{};
}

Result<Target> gpu_from_json(const Json& json, Backend backend) {
  TRY(check_names(json, kNameFields, kGpuFields, kOtherGpuFields));
  Target target;
  target.backend = backend;
  if (json.contains("arch")) {
    TRY_ASSIGN(const std::string arch, read_text(json, "arch"));
    if (!arch.empty()) {
      TRY_ASSIGN(target.gpu, with_arch(target.gpu, arch));
    }
  }
  TRY(read_fields(json, kGpuFields, target.gpu));
  TRY(check_block_limits(target.gpu));
  int64_t& most = target.gpu.most_shared_bytes_per_block;
  const int64_t shared = target.gpu.shared_bytes_per_block;
  if (!json.contains("most_shared_bytes_per_block")) most = std::max(most, shared);
  if (most < shared)
    return Error("most_shared_bytes_per_block is ",
                 most,
                 ", expected no less than shared_bytes_per_block, ",
                 shared);
  if (!json.contains("l2_bandwidth"))
    target.gpu.l2_bandwidth = kL2OverMemory * target.gpu.dram_bandwidth;
  if (!json.contains("shared_bandwidth"))
    target.gpu.shared_bandwidth = kSharedBytesPerCycle * target.gpu.sms * target.gpu.clock_hz;
  target.gpu.psa = abstraction_of(target.gpu);
  if (json.contains("psa")) TRY(read_psa(json.at("psa"), target.gpu.psa));
  if (json.contains("tensor_rates")) {
    const Json& rates = json.at("tensor_rates");
    if (!rates.is_object()) return Error("tensor_rates is ", rates.dump(), ", expected an object");
    const Result<Unit> read = read_tensor_rates(rates, target.gpu);
    if (!read.ok()) return Error("tensor_rates: ", read.error().message());
  }
  return target;
}

/// The names of the known devices, of GPUs or of CPUs alone if asked.
std::string known_devices(std::optional<bool> gpus) {
  std::string names;
  for (const DeviceFile& file : device_files()) {
    const Result<Target> target = read_device(std::string(file.name));
    if (!gpus || (target.ok() && target->is_gpu() == *gpus))
      names.append(names.empty() ? "" : ", ").append(file.name);
  }
  return names;
}

Result<Target> read_device_text(const std::string& origin, std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json.ok()) return Error(origin, ": ", json.error().message());
  Result<Target> target = target_from_json(*json);
  if (!target.ok()) return Error(origin, ": ", target.error().message());
  target->device = origin;  // so that the printed target finds the device again
  return target;
}

}  // namespace

const DeviceFile* find_device_file(std::string_view name) {
  const auto found = std::ranges::find(device_files(), name, &DeviceFile::name);
  return found == device_files().end() ? nullptr : &*found;
}

Result<Unit> check_block_limits(const Gpu& gpu) {
  const struct {
    const char* name;
    int64_t value, least;
  } rows[] = {
      {"max_threads_per_block", gpu.max_threads_per_block, gpu.warp_size},
      {"max_registers_per_thread", gpu.max_registers_per_thread, 63},
      {"registers_per_block", gpu.registers_per_block, 8192},
      {"shared_bytes_per_block", gpu.shared_bytes_per_block, 1024},  // OpenCL's embedded profile
  };
  if (gpu.warp_size > 128) return Error("warp_size is ", gpu.warp_size, ", expected at most 128");
  for (const auto& [name, value, least] : rows)
    if (value < least) return Error(name, " is ", value, ", expected at least ", least);
  return Unit{};
}

Result<Target> target_from_json(const Json& json) {
  if (!json.is_object()) return Error("found ", json.type_name(), ", expected an object");
  TRY_ASSIGN(const Backend backend, read_backend(json));
  TRY_ASSIGN(Target target,
             row_of(backend).is_gpu ? gpu_from_json(json, backend) : cpu_from_json(json));
  TRY(read_text(json, "name"));
  TRY(read_fields(json, kNameFields, target));
  return target;
}

Json target_to_json(const Target& target) {
  Json json;
  write_fields(target, kNameFields, json);
  if (!target.is_gpu()) {
    json["isa"] = isa_name(target.isa);
    write_fields(target, kCpuFields, json);
    for (const DotRateRow& row : kDotRates) {
      if (has_dots(target, row)) json["dots"][row.name] = target.dots.*row.rate;
    }
    for (const CpuModelRow& row : kCpuModelRows) {
      if (target.draft.*row.field != CpuModel().*row.field)
        json["draft"][row.name] = target.draft.*row.field;
    }
    return json;
  }
  json["backend"] = backend_name(target.backend);
  write_fields(target.gpu, kGpuFields, json);
  write_fields(target.gpu.psa, kAbstractionFields, json["psa"]);
  for (const TensorRateRow& row : kTensorRates) {
    if (row.is_on(compute_capability(target.gpu)))
      json["tensor_rates"][row.name] = target.gpu.tensor_rates.*row.rate;
  }
  return json;
}

DeviceAbstraction abstraction_of(const Gpu& gpu) {
  DeviceAbstraction psa;
  psa.peak_performance = gpu.peak_flops * 1e-9;
  psa.glbmem_bandwidth = gpu.dram_bandwidth * 1e-9;
  psa.sm_nums = gpu.sms;
  psa.arch_sm_partition = gpu.partitions_per_sm;
  psa.arch_warp_size = gpu.warp_size;
  return psa;
}

Result<Target> read_device(const std::string& device) {
  if (const DeviceFile* file = find_device_file(device))
    return read_device_text(device, file->text);
  const bool is_path = device.find('/') != std::string::npos || device.ends_with(".json");
  if (!is_path) {
    return Error("unknown device \"",
                 device,
                 "\", expected a FILE.json or one of: ",
                 known_devices(std::nullopt));
  }
  TRY_ASSIGN(const std::string text, read_file(device));
  return read_device_text(device, text);
}

Result<Target> with_abstraction(Target target, const std::string& device) {
  TRY_ASSIGN(const Target other, read_device(device));
  if (other.is_gpu() != target.is_gpu()) {
    return Error("\"",
                 device,
                 "\" is a ",
                 other.is_gpu() ? "GPU" : "CPU",
                 ", expected a file of a ",
                 target.is_gpu() ? "GPU" : "CPU",
                 " or one of: ",
                 known_devices(target.is_gpu()));
  }
  if (target.is_gpu()) {
    target.gpu.psa = other.gpu.psa;
    target.drafted_as = std::make_shared<const Gpu>(other.gpu);
    return target;
  }
  // Not the caches: the space of schedules asks for them, and records belong to a space.
  for (double Target::*rate : {&Target::fmas_per_cycle,
                               &Target::loads_per_cycle,
                               &Target::peak_flops,
                               &Target::l1_bandwidth,
                               &Target::l2_bandwidth,
                               &Target::l3_bandwidth,
                               &Target::dram_bandwidth,
                               &Target::launch_s})
    target.*rate = other.*rate;
  target.draft = other.draft;
  return target;
}

}  // namespace pruner
