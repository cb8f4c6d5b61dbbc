#include "cli/measurer.h"

#include <charconv>
#include <filesystem>

#include "deploy/memory_plan.h"
#include "fleet/own_workers.h"
#include "measure/workload.h"
#include "space/space.h"
#include "support/log.h"
#include "support/memory.h"

namespace pruner {

/// Returns the constants' bytes in the form with the most (Winograd's: up to four times as many).
static int64_t most_weight_bytes(const Task& task) {
  int64_t most = 0;
  for (const Sketch& sketch : make_space(task).sketches) {
    int64_t bytes = 0;
    for (const Stage& stage : sketch.dag.stages)
      if (stage.constant) bytes += stage.num_elements() * dtype_bytes(stage.dtype);
    most = std::max(most, bytes);
  }
  return most;
}

/// Returns the most bytes that a run of the network touches, weights and arena; 0: an operator.
static int64_t network_bytes(const Source& source) {
  if (!source.network) return 0;
  // Workspaces are left out, since their sizes are known only when code is made.
  const std::vector<KernelMemory> no_workspaces(source.partition().groups.size());
  int64_t bytes = plan_memory(source.partition(), no_workspaces).arena_bytes;
  for (const WeightedTask& weighted : source.tasks)
    bytes += weighted.weight * most_weight_bytes(weighted.task);
  return bytes;
}

Result<std::vector<int>> parse_devices(std::string_view text, const Target& target) {
  if (text.empty()) return std::vector<int>{0};
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

void MeasurerOptions::add_to(CLI::App& app) {
  target.add_to(app);
  add_psa(app, target.device);
  add_seed(app, seed);
  add_jobs(app, jobs);
  begin_group(app, OptionGroup::kMeasuring);
  add_option(app, "--devices NAMES", devices)
      .help("GPUs that measure, of the target's kind: cuda:0,cuda:1", "the first");
  add_option(app, "--flush-l2", flush_l2)
      .help("a GPU's second-level cache is emptied before each timed call");
  fleet.add_to(app);
}

void MeasurerOptions::add_build_only(CLI::App& app) {
  begin_group(app, OptionGroup::kMeasuring);
  add_option(app, "--build-only BUNDLE", bundle)
      .writes()
      .help(
          "build programs into a file that `pruner measure` takes, and measure nothing; --key "
          "signs them");
}

Result<Unit> MeasurerOptions::check(const Target& on) const {
  if (flush_l2 && !on.is_gpu()) return Error("--flush-l2 is of GPUs; the target is this CPU");
  if (fleet.given() && !devices.empty())
    return Error("--devices names GPUs of this machine; workers of --fleet have their own");
  if (build_only() && fleet.given())
    return Error("--build-only and --fleet exclude each other: nothing is measured");
  if (build_only() && !devices.empty())
    return Error("--devices has no effect with --build-only: `pruner measure` takes it");
  const BrokerAccess& access = fleet.access.broker;
  for (const auto& [flag, given] : {std::pair("--kind", !fleet.kind.empty()),
                                    {"--key", !access.seed_file.empty()},
                                    {"--ca", !access.ca_file.empty()},
                                    {"--insecure-server", access.insecure}})
    if (given && !fleet.given() && !(build_only() && flag == std::string_view("--key")))
      return Error(flag, " is for workers of a fleet; give --fleet URL");
  return Unit{};
}

MeasureOptions measure_options(const MeasurerOptions& options,
                               const std::atomic<bool>& interrupted) {
  return {.build_jobs = options.jobs,
          .seed = options.seed,
          .stop = [&interrupted] { return interrupted.load(); },
          .flush_l2 = options.flush_l2};
}

Result<std::shared_ptr<BundleBuild>> make_bundle_build(const MeasurerOptions& options,
                                                       const Source& source,
                                                       const Target& target,
                                                       const std::atomic<bool>& interrupted) {
  TRY(options.check(target));
  if (const Result<Unit> builds = check_buildable(target); !builds.ok())
    return Error("--target: ", builds.error().message());
  std::optional<NKey> key;
  if (!options.fleet.access.broker.seed_file.empty()) {
    TRY_ASSIGN(key, read_nkey(options.fleet.access.broker.seed_file));
  }
  if (row_of(target.backend).has_arch && target.gpu.arch.empty())
    return Error(
        "--target: the GPU of a bundle is not here to be looked at: name its --arch or --model");
  const MeasureOptions measure = measure_options(options, interrupted);
  const BundleHead head{.version = kVersion,
                        .target = target,
                        .options = measure,
                        .network_bytes = network_bytes(source)};
  TRY_ASSIGN(BundleWriter bundle, BundleWriter::open(options.bundle, head, key ? &*key : nullptr));
  TRY_ASSIGN(const std::string program, own_program());
  TRY_ASSIGN(std::unique_ptr<LocalMeasurer> builder, LocalMeasurer::make(measure, program));
  return BundleBuild::make(std::move(builder), std::move(bundle));
}

WeightsFrom weights_from(const Target& target, const std::string& name, int64_t network_bytes) {
  WeightsFrom from = target.is_gpu() ? WeightsFrom::kLastLevel : WeightsFrom::kMemory;
  if (network_bytes == 0) return from;
  if (!target.is_gpu()) from = probe_weights(target, network_bytes);
  if (target.is_gpu() && network_bytes > target.gpu.l2_bytes) from = WeightsFrom::kMemory;
  log_detail("{} touches {} MB: kernels find their weights in {}",
             name,
             network_bytes / 1000000,
             from == WeightsFrom::kMemory ? "memory" : "the last-level cache");
  return from;
}

Result<std::unique_ptr<Measurer>> make_measurer(const MeasurerOptions& options,
                                                const Source& source,
                                                const Target& target,
                                                const std::atomic<bool>& interrupted,
                                                const TrialLabels& labels) {
  TRY(options.check(target));
  MeasureOptions measure = measure_options(options, interrupted);
  if (options.build_only()) {
    TRY_ASSIGN(const auto build, make_bundle_build(options, source, target, interrupted));
    return build->measurer(labels);
  }
  if (options.fleet.given()) {
    TRY_ASSIGN(auto fleet, make_fleet_measurer(options.fleet, target, measure, fresh_run_name()));
    return std::unique_ptr<Measurer>(std::move(fleet));
  }
  const Result<std::vector<int>> devices = parse_devices(options.devices, target);
  if (!devices.ok()) return Error("--devices: ", devices.error().message());
  if (const Result<Unit> runs = check_measurable(target, *devices); !runs.ok())
    return Error("--target: ", runs.error().message());
  for (const WeightedTask& weighted : source.tasks)
    TRY(check_memory(weighted.task.name, workload_bytes(weighted.task.dag)));
  measure.weights_from = weights_from(target, source.name, network_bytes(source));
  TRY_ASSIGN(const std::string program, own_program());
  return measure_here(target, *devices, measure, program);
}

Result<std::string> own_program() {
  std::error_code code;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", code);
  if (code) return Error("/proc/self/exe: cannot be read: ", code.message());
  return program.string();
}

int64_t measured_at_once(const MeasurerOptions& options) {
  if (options.build_only()) return kBuiltAtOnce;
  return options.fleet.given() ? SearchOptions().round_size : options.jobs;
}

std::string print_built(const MeasurerOptions& options, const Source& source, const Built& built) {
  std::string text = fmt::format("{}: {} programs of {} {}",
                                 options.bundle,
                                 built.programs,
                                 source.tasks.size(),
                                 source.tasks.size() == 1 ? "task" : "tasks");
  if (built.failed > 0) text += fmt::format(", {} of which could not be built", built.failed);
  return text;
}

Json built_json(const MeasurerOptions& options, const Source& source, const Built& built) {
  return {{"bundle", options.bundle},
          {"programs", built.programs},
          {"failed", built.failed},
          {"tasks", source.tasks.size()}};
}

std::string print_bundle(const MeasurerOptions& options,
                         const Source& source,
                         const Built& built,
                         const std::string& records) {
  const bool is_signed = !options.fleet.access.broker.seed_file.empty();
  return fmt::format("{}\nNext, where the device is: pruner measure {} --records {} {}\n",
                     print_built(options, source, built),
                     options.bundle,
                     records,
                     is_signed ? "--trust KEYS" : "--unsigned");
}

int exit_code_of(const Tuner& tuner, TuneEnd end, const std::string& records) {
  if (end == TuneEnd::kInterrupted) return kInterrupted;
  const std::optional<Error> failed = tuner.all_failed();
  if (!failed) return kDone;
  fmt::print(stderr, "pruner: {}; each one's reason is in {}\n", failed->message(), records);
  return kFailed;
}

}  // namespace pruner
