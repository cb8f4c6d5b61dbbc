// pruner doctor: what this machine and this build have, what each missing part would give, and how
// busy the machine is.
#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "cli/commands.h"
#include "codegen/cuda/nvrtc.h"
#include "model/boosted_trees.h"
#include "model/nn/trainer.h"
#include "runtime/gpu_context.h"
#include "support/cpu_budget.h"
#include "target/core_watch.h"
#include "target/dot_rates.h"

namespace pruner {

namespace {

/// A part: what was found, or why it is missing and what it is for.
struct Finding {
  std::string part;
  bool found = false;
  std::string text;        // description of the part, or the fault
  std::string gives = {};  // benefit of a missing part
};

Finding finding(std::string part, const Result<Unit>& found, std::string text, std::string gives) {
  if (found.ok()) return {std::move(part), true, std::move(text)};
  return {std::move(part), false, found.error().message(), std::move(gives)};
}

// A part of the build.
Finding built_in(
    std::string part, bool found, const char* text, const char* wrong, std::string gives) {
  return finding(std::move(part),
                 found ? Result<Unit>(Unit{}) : Result<Unit>(Error(wrong)),
                 text,
                 std::move(gives));
}

std::string bytes_text(int64_t bytes) {
  return bytes < 1 << 20 ? fmt::format("{} KB", bytes >> 10) : fmt::format("{} MB", bytes >> 20);
}

Finding cpu(const Target& host) {
  return {"CPU",
          true,
          fmt::format("{}, vectors of {} bits, L1 {}, L2 {}, L3 {}",
                      device_fingerprint(host),
                      host.vector_bytes * 8,
                      bytes_text(host.l1_bytes),
                      bytes_text(host.l2_bytes),
                      bytes_text(host.l3_bytes))};
}

// Finds the units that multiply numbers of 16 and 8 bits.
Finding units(const Target& host) {
  std::string names;
  for (const DotRateRow& row : kDotRates) {
    if (host.dots.*row.rate > 0 && has_dots(host, row))
      names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  if (!names.empty()) return {"units for narrow numbers", true, names};
  return {"units for narrow numbers",
          false,
          "this CPU has none",
          "--precision bf16 and int8 at more than float32's rate"};
}

Finding threads() {
  const PrunerCpuBudget budget = cpu_budget();
  std::string text = fmt::format("{} of a kernel: {} logical CPUs", budget.threads, budget.allowed);
  if (budget.fast < budget.allowed)
    text += fmt::format(", {} of them efficient cores", budget.allowed - budget.fast);
  text += fmt::format(", {} cores", budget.cores);
  if (std::isfinite(budget.quota)) text += fmt::format(", a quota of {:.2f} CPUs", budget.quota);
  if (budget.wished > 0) text += fmt::format(", OMP_NUM_THREADS={}", budget.wished);
  return {"threads", true, text};
}

Finding gpu(Backend backend) {
  const std::string name(row_of(backend).name);
  const Result<std::vector<GpuFacts>> found = list_gpus(backend);
  if (!found.ok())
    return {
        name + " devices", false, found.error().message(), "--target " + name + " on this machine"};
  std::string text;
  for (const GpuFacts& facts : *found)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", facts.name, facts.driver);
  return {name + " devices", true, text};
}

Finding nvrtc() {
  const Result<NvrtcVersion> found = find_nvrtc();
  if (found.ok())
    return {"CUDA's compiler",
            true,
            fmt::format("NVRTC {}.{}, {}", found->major, found->minor, found->path)};
  return {
      "CUDA's compiler", false, found.error().message(), "--target cuda, with or without a GPU"};
}

Finding others(double seconds) {
  const CoreWatch watch;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const CoreTime time = watch.time();
  const std::string busy = print_busy(time);
  if (busy.empty()) return {"quiet", true, "nothing else runs on the cores"};
  return {
      "quiet", false, busy, "times that can be compared: tune and bench when nothing else runs"};
}

struct Doctor {
  double look_s = 1;

  void add_to(CLI::App& app) {
    begin_group(app, OptionGroup::kMeasuring);
    add_option(app, "--look-s SECONDS", look_s).help("how long the cores are watched", "1");
  }

  Result<int> run(const Invocation& call) const {
    const Target host = host_target(0);
    const std::vector<Finding> findings = {
        cpu(host),
        units(host),
        threads(),
        built_in("code for CPUs",
                 PRUNER_LLVM != 0,
                 "LLVM 19, in this build",
                 "this build has no LLVM",
                 "tuning and modules for CPUs: install llvm-19-dev and build the preset release"),
        built_in("linking modules",
                 PRUNER_LLD != 0,
                 "lld 19, in this build",
                 "this build has no lld: the system's linker is used",
                 "modules in a fraction of the time: install liblld-19-dev and build again"),
        finding(
            "training by LibTorch",
            find_torch(),
            "the plug-in is here",
            "the default mode and the others that learn while they tune; draft-only does without"),
        finding("training by xgboost",
                BoostedTrees::find_library(),
                "the library is here",
                "the modes of Ansor's and MetaSchedule's model (xgb)"),
        built_in(".npz and .pth files",
                 PRUNER_ZIP != 0,
                 "libzip, in this build",
                 "this build has no libzip",
                 "`pruner run`, torch's weights"),
        gpu(Backend::kCuda),
        nvrtc(),
        gpu(Backend::kOpenCl),
        others(look_s),
    };
    Json json = Json::array();
    std::string text;
    for (const Finding& f : findings) {
      Json row = {{"part", f.part}, {"found", f.found}, {"text", f.text}};
      if (!f.found) row["gives"] = f.gives;
      json.push_back(std::move(row));
      text += fmt::format("{}  {:<25} {}\n", f.found ? "yes" : "no ", f.part, f.text);
      if (!f.found) text += fmt::format("{:<30} would give: {}\n", "", f.gives);
    }
    return call.show(json, text);
  }
};

}  // namespace

RunCommand make_doctor(CLI::App& app) { return make_command<Doctor>(app); }

}  // namespace pruner
