#include "target/host.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>
#include <span>
#include <sstream>

#include "support/cpu_budget.h"
#include "target/cpu_table.h"

namespace pruner {

static std::string read_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

// The value of the first line "key : value".
static std::string_view value_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !line.starts_with(key)) continue;
    const std::string_view between = line.substr(key.size(), colon - key.size());
    if (between.find_first_not_of(" \t") != std::string_view::npos) continue;
    const size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string_view::npos ? std::string_view() : line.substr(start);
  }
  return {};
}

static int number(std::string_view text) {
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  int value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  return value;
}

struct ModelRow {
  int family, first_model, last_model;
  const char* mcpu;
};
static constexpr ModelRow kAmdModels[] = {
    {0x17, 0x00, 0x2f, "znver1"},
    {0x17, 0x30, 0xaf, "znver2"},
    {0x19, 0x00, 0x0f, "znver3"},
    {0x19, 0x10, 0x1f, "znver4"},
    {0x19, 0x20, 0x5f, "znver3"},
    {0x19, 0x60, 0xaf, "znver4"},
    {0x1a, 0x00, 0xff, "znver5"},
};
static constexpr ModelRow kIntelModels[] = {
    {6, 0x1a, 0x2f, "nehalem"},        {6, 0x2a, 0x2d, "sandybridge"},
    {6, 0x3a, 0x3a, "ivybridge"},      {6, 0x3e, 0x3e, "ivybridge"},
    {6, 0x3c, 0x3c, "haswell"},        {6, 0x3f, 0x3f, "haswell"},
    {6, 0x45, 0x46, "haswell"},        {6, 0x3d, 0x3d, "broadwell"},
    {6, 0x47, 0x47, "broadwell"},      {6, 0x4f, 0x4f, "broadwell"},
    {6, 0x56, 0x56, "broadwell"},      {6, 0x4e, 0x4e, "skylake"},
    {6, 0x5e, 0x5e, "skylake"},        {6, 0x8e, 0x8e, "skylake"},
    {6, 0x9e, 0x9e, "skylake"},        {6, 0xa5, 0xa6, "skylake"},
    {6, 0x55, 0x55, "skylake-avx512"}, {6, 0x6a, 0x6c, "icelake-server"},
    {6, 0x7d, 0x7e, "icelake-client"}, {6, 0x8c, 0x8d, "tigerlake"},
    {6, 0x8f, 0x8f, "sapphirerapids"}, {6, 0xcf, 0xcf, "emeraldrapids"},
    {6, 0xad, 0xae, "graniterapids"},  {6, 0x97, 0x9a, "alderlake"},
    {6, 0xb7, 0xbf, "raptorlake"},
};
// If a model is in no row, the first of its flags here says what the model is at least.
struct FlagRow {
  const char *flag, *mcpu;
};
static constexpr FlagRow kAmdFlags[] = {
    {"avx512_vp2intersect", "znver5"}, {"avx512f", "znver4"}, {"vaes", "znver3"}};
static constexpr FlagRow kIntelFlags[] = {{"amx_fp16", "graniterapids"},
                                          {"avx512_fp16", "sapphirerapids"},
                                          {"avx512_vbmi2", "icelake-server"},
                                          {"avx512f", "skylake-avx512"},
                                          {"avx_vnni", "alderlake"}};
static constexpr struct {
  int part;
  const char* mcpu;
} kArmParts[] = {
    {0xd03, "cortex-a53"},
    {0xd08, "cortex-a72"},
    {0xd0b, "cortex-a76"},
    {0xd41, "cortex-a78"},
    {0xd0c, "neoverse-n1"},
    {0xd49, "neoverse-n2"},
    {0xd40, "neoverse-v1"},
    {0xd4f, "neoverse-v2"},
};

// A flag of /proc/cpuinfo and LLVM's feature.
struct FeatureRow {
  const char *flag, *feature;
};
static constexpr FeatureRow kArmFeatures[] = {
    {"asimddp", "dotprod"}, {"i8mm", "i8mm"}, {"bf16", "bf16"}};
static constexpr FeatureRow kFeatures[] = {
    {"sse4_2", "sse4.2"},
    {"popcnt", "popcnt"},
    {"avx", "avx"},
    {"f16c", "f16c"},
    {"fma", "fma"},
    {"avx2", "avx2"},
    {"bmi1", "bmi"},
    {"bmi2", "bmi2"},
    {"abm", "lzcnt"},
    {"movbe", "movbe"},
    {"avx512f", "avx512f"},
    {"avx512dq", "avx512dq"},
    {"avx512cd", "avx512cd"},
    {"avx512bw", "avx512bw"},
    {"avx512vl", "avx512vl"},
    {"avx512ifma", "avx512ifma"},
    {"avx512vbmi", "avx512vbmi"},
    {"avx512_vbmi2", "avx512vbmi2"},
    {"avx512_vnni", "avx512vnni"},
    {"avx512_bitalg", "avx512bitalg"},
    {"avx512_vpopcntdq", "avx512vpopcntdq"},
    {"avx512_bf16", "avx512bf16"},
    {"avx512_fp16", "avx512fp16"},
    {"avx_vnni", "avxvnni"},
    {"amx_tile", "amx-tile"},
    {"amx_bf16", "amx-bf16"},
    {"amx_int8", "amx-int8"},
    {"amx_fp16", "amx-fp16"},
    {"gfni", "gfni"},
    {"vaes", "vaes"},
    {"vpclmulqdq", "vpclmulqdq"},
};

static std::string x86_cpu(std::string_view text, const std::set<std::string>& flags) {
  const auto has = [&](std::initializer_list<const char*> names) {
    return std::ranges::all_of(names, [&](const char* name) { return flags.contains(name); });
  };
  const bool avx2 = has({"avx2", "fma", "bmi1", "bmi2", "f16c", "abm", "movbe"});
  const bool avx512 = avx2 && has({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"});
  const int family = number(value_of(text, "cpu family")), model = number(value_of(text, "model"));
  const std::string_view vendor = value_of(text, "vendor_id");
  const bool amd = vendor == "AuthenticAMD";
  std::string name;
  for (const ModelRow& row : amd ? std::span<const ModelRow>(kAmdModels) : kIntelModels) {
    if (row.family == family && row.first_model <= model && model <= row.last_model)
      name = row.mcpu;
  }
  if (name.empty() && (amd || vendor == "GenuineIntel")) {
    for (const FlagRow& row : amd ? std::span<const FlagRow>(kAmdFlags) : kIntelFlags) {
      if (!flags.contains(row.flag)) continue;
      name = row.mcpu;
      break;
    }
  }
  if (name == "skylake-avx512" && has({"avx512_bf16"})) name = "cooperlake";
  if (name == "skylake-avx512" && has({"avx512_vnni"})) name = "cascadelake";
  // A hypervisor may hide vectors that the model has: then the level that is there.
  if (const CpuRow* row = find_cpu(name); row && row->vector_bytes == 64 && !avx512) name = "";
  const bool narrow = name == "nehalem" || name == "sandybridge" || name == "ivybridge";
  if (!avx2 && !narrow) name = "";
  if (!name.empty()) return name;
  if (avx512) return "x86-64-v4";
  return avx2 ? "x86-64-v3" : has({"sse4_2", "popcnt"}) ? "x86-64-v2" : "x86-64";
}

static std::set<std::string> words_of(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::set<std::string> words;
  for (std::string word; in >> word;) words.insert(word);
  return words;
}

// "+avx2,-avx512f": which of the rows this CPU has.
static std::string feature_string(std::span<const FeatureRow> rows,
                                  const std::set<std::string>& flags) {
  std::string features;
  for (const auto& [flag, feature] : rows) {
    features += features.empty() ? "" : ",";
    features += (flags.contains(flag) ? "+" : "-") + std::string(feature);
  }
  return features;
}

HostCpu parse_cpuinfo(std::string_view text) {
  HostCpu host;
  host.model_name = value_of(text, "model name");
  if (const std::string_view part = value_of(text, "CPU part"); !part.empty()) {
    host.mcpu = "generic";
    for (const auto& row : kArmParts) {
      if (row.part == number(part)) host.mcpu = row.mcpu;
    }
    if (host.model_name.empty()) host.model_name = "ARM part " + std::string(part);
    host.features = feature_string(kArmFeatures, words_of(value_of(text, "Features")));
    return host;
  }
  const std::set<std::string> flags = words_of(value_of(text, "flags"));
  if (flags.empty()) {
    host.mcpu = "generic";
    return host;
  }
  host.mcpu = x86_cpu(text, flags);
  host.features = feature_string(kFeatures, flags);
  return host;
}

static int64_t cache_size(const std::string& text) {  // "1024K"
  const int64_t size = std::max(number(text), 0);
  return text.ends_with("M") ? size << 20 : size << 10;
}

bool may_use_tiles() {
#if defined(__x86_64__)
  constexpr int kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM (arch_prctl(2))
  static const bool granted = syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
  return granted;
#else
  return false;
#endif
}

HostCpu read_host() {
  std::ifstream in("/proc/cpuinfo");
  std::ostringstream text;
  text << in.rdbuf();
  HostCpu host = parse_cpuinfo(text.str());
  const auto tiles = [&] { return host.features.find("+amx"); };
  while (!may_use_tiles() && tiles() != std::string::npos) host.features[tiles()] = '-';
  host.cores = cpu_budget().threads;
  for (int i = 0; i < 8; ++i) {
    const std::string cache = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    const int level = number(read_line(cache + "level"));
    if (level < 0 || read_line(cache + "type") == "Instruction") continue;
    const int64_t size = cache_size(read_line(cache + "size"));
    if (level == 1) host.l1_bytes = size;
    if (level == 2) host.l2_bytes = size;
    if (level == 3) host.l3_bytes = size;
    host.cache_line_bytes = std::max(number(read_line(cache + "coherency_line_size")), 0);
  }
  return host;
}

}  // namespace pruner
