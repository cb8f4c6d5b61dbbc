// pruner fleet: the server's streams, who works there, and the end of a worker; pruner worker: to
// work.
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <sstream>

#include "cli/commands.h"
#include "cli/fleet_options.h"
#include "cli/interrupt.h"
#include "cli/measurer.h"
#include "cli/source.h"
#include "fleet/kind.h"
#include "fleet/names.h"
#include "fleet/server_files.h"
#include "fleet/worker.h"
#include "support/cpu_budget.h"
#include "support/file.h"
#include "support/log.h"

namespace pruner {

namespace {

constexpr const char* kServer = "the server: nats://HOST:4222 or tls://HOST:4222";

Result<std::unique_ptr<Broker>> connect(const FleetAccess& access) {
  if (!access.given()) return Error("give --server nats://HOST:4222");
  return connect_nats(access.broker);
}

struct FleetInit {
  FleetAccess access;
  std::string folder;

  void add_to(CLI::App& app) {
    access.add_to(app, "--server URL", kServer);
    begin_group(app, OptionGroup::kFiles);
    add_option(app, "--files DIR", folder)
        .help(
            "write the server's configuration, keys and a worker's unit into this folder instead");
  }

  Result<int> run(const Invocation& call) const {
    if (!folder.empty()) {
      TRY(write_server_files(folder));
      return call.show(
          {{"folder", folder}},
          fmt::format("start the server: nats-server -c {0}/server.conf, and then: pruner "
                      "fleet init --server URL --key {0}/admin.key\n",
                      folder));
    }
    TRY_ASSIGN(const std::unique_ptr<Broker> broker, connect(access));
    TRY(broker->make_streams());
    return call.show(
        {{"server", access.broker.url}},
        fmt::format("{0} is ready for a fleet; on each machine that measures: pruner worker "
                    "--server {0}\n",
                    access.broker.url));
  }
};

struct FleetStatus {
  FleetAccess access;

  void add_to(CLI::App& app) { access.add_to(app, "--server URL", kServer); }

  Result<int> run(const Invocation& call) const {
    TRY_ASSIGN(const std::unique_ptr<Broker> broker, connect(access));
    TRY_ASSIGN(const std::vector<WorkerState> workers, list_workers(*broker));
    Json json = {{"workers", Json::array()}, {"kinds", Json::object()}};
    std::string text = workers.empty() ? "no worker is here\n" : "";
    for (const WorkerState& worker : workers) {
      json["workers"].push_back(to_json(worker));
      text += fmt::format("{:<24} {:<8} {:<9} {:>8} trials  {}  {}\n",
                          worker.name,
                          role_name(worker.role),
                          worker.state,
                          worker.trials,
                          worker.kind,
                          worker.target);
      if (json["kinds"].contains(worker.kind)) continue;
      TRY_ASSIGN(Broker::Backlog backlog,
                 broker->backlog(fleet::kTrials, fleet::kind_queue(worker.kind)));
      TRY_ASSIGN(const Broker::Backlog objects,
                 broker->backlog(fleet::kObjects, fleet::kind_queue(worker.kind)));
      backlog.waiting += objects.waiting;
      backlog.taken += objects.taken;
      json["kinds"][worker.kind] = {{"waiting", backlog.waiting}, {"taken", backlog.taken}};
    }
    for (const auto& [kind, backlog] : json["kinds"].items())
      text += fmt::format("{}: {} messages wait, {} are measured\n",
                          kind,
                          backlog["waiting"].get<int64_t>(),
                          backlog["taken"].get<int64_t>());
    return call.show(json, text);
  }
};

struct FleetDrain {
  FleetAccess access;
  std::string worker;

  void add_to(CLI::App& app) {
    access.add_to(app, "--server URL", kServer);
    add_option(app, "WORKER", worker).help("its name", "all of them");
  }

  Result<int> run(const Invocation& call) const {
    TRY_ASSIGN(const std::unique_ptr<Broker> broker, connect(access));
    TRY_ASSIGN(const std::vector<WorkerState> workers, list_workers(*broker));
    Json told = Json::array();
    for (const WorkerState& each : workers) {
      if (!worker.empty() && each.name != worker) continue;
      TRY(broker->put(fleet::kControl, "drain." + each.name, "1"));
      told.push_back(each.name);
    }
    if (told.empty() && !worker.empty()) return Error("no worker \"", worker, "\" is here");
    const std::string text =
        fmt::format("{} workers end when they have measured what they have\n", told.size());
    return call.show({{"told", std::move(told)}}, text);
  }
};

Error bad_device(const std::string& text) {
  return Error(
      "--device: \"", text, "\" is no device of this machine, expected cpu:0-7,... or cuda:0");
}

/// "cpu:0-3,6" -> the cores.
Result<std::vector<int>> parse_cores(const std::string& text) {
  const Error error = bad_device(text);
  if (!text.starts_with("cpu:")) return error;
  std::vector<int> cores;
  const char* at = text.data() + 4;
  const char* const end = text.data() + text.size();
  while (true) {
    int first = 0;
    const auto begun = std::from_chars(at, end, first);
    if (begun.ec != std::errc() || first < 0 || first >= CPU_SETSIZE) return error;
    int last = first;
    at = begun.ptr;
    if (at != end && *at == '-') {
      const auto ended = std::from_chars(at + 1, end, last);
      if (ended.ec != std::errc() || last < first || last >= CPU_SETSIZE) return error;
      at = ended.ptr;
    }
    for (int core = first; core <= last; ++core) cores.push_back(core);
    if (at == end) return cores;
    if (*at++ != ',') return error;
  }
}

/// Leaves this process the cores of "cpu:0-7"; the target is then this CPU on so many threads.
Result<Target> take_cores(const std::string& device) {
  if (!device.empty()) {
    TRY_ASSIGN(const std::vector<int> cores, parse_cores(device));
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int core : cores) CPU_SET(static_cast<size_t>(core), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) return bad_device(device);
  }
  return parse_target("llvm", cpu_budget().threads);
}

/// Returns the target that a worker measures on: cores, or "cuda:1", whose number is `gpu`.
Result<Target> take_device(const std::string& device, int& gpu) {
  const size_t colon = device.find(':');
  const std::string backend = device.substr(0, colon);
  if (backend.empty() || backend == "cpu") return take_cores(device);
  const char* const end = device.data() + device.size();
  const char* const begin = colon == std::string::npos ? end : device.data() + colon + 1;
  const auto [at, code] = std::from_chars(begin, end, gpu);
  const Result<Target> target = read_target({.name = backend, .threads = 0, .device = {}});
  if (code != std::errc() || at != end || gpu < 0 || !target.ok() || !target->is_gpu())
    return bad_device(device);
  if (const Result<Unit> runs = check_measurable(*target, std::vector{gpu}); !runs.ok())
    return Error("--device: ", runs.error().message());
  return target;
}

struct Worker {
  FleetAccess access;
  std::string device;  // empty: all cores
  std::string name;
  double most_drift_percent = 3;
  std::string role = "measure", kind, trust;

  void add_to(CLI::App& app) {
    access.add_to(app, "--server URL", kServer);
    begin_group(app, OptionGroup::kMeasuring);
    add_option(app, "--device NAME", device)
        .help("to measure on: cpu:0-7, cuda:0, opencl:0", "all cores");
    add_option(app, "--name NAME", name).help("among all workers", "HOST-PID");
    add_option(app, "--most-drift PERCENT", most_drift_percent)
        .help("what a CPU may lose of its speed before it leaves; 100: any", "3");
    add_option(app, "--role NAME", role)
        .help("measure, or one half of it: build makes and signs the code, run takes it",
              "measure");
    add_option(app, "--kind KIND", kind)
        .help("with --role build: of the workers that run the code");
    add_option(app, "--trust FILE", trust)
        .help("with --role run: file of the public keys of those whose code is run");
  }

  /// Returns the options of the worker's role. Errors: an option that the role needs is not given.
  Result<FleetWorkerOptions> role_options(const Target& target) const {
    FleetWorkerOptions options;
    TRY_ASSIGN(options.role, parse_role(role));
    options.target = target;
    options.kind = kind_of(target);
    options.name = worker_name();
    options.program = program_hash();
    if (options.role == WorkerRole::kRun) {
      if (trust.empty())
        return Error(
            "--role run: give --trust FILE, the public keys of those whose code is run here");
      TRY_ASSIGN(options.trusted, read_public_keys(trust));
    } else {
      TRY(check_measurable(target));
    }
    if (options.role != WorkerRole::kBuild) return options;
    if (kind.empty() || access.broker.seed_file.empty())
      return Error(
          "--role build: give --kind, whose workers run the code, and --key, which signs it");
    options.kind = kind;
    TRY_ASSIGN(options.key, read_nkey(access.broker.seed_file));
    return options;
  }

  Result<int> run(const Invocation& call) const {
    TRY_ASSIGN(const std::unique_ptr<Broker> broker, connect(access));
    int gpu = 0;
    TRY_ASSIGN(const Target target, take_device(device, gpu));
    TRY_ASSIGN(FleetWorkerOptions options, role_options(target));
    TRY_ASSIGN(const std::string program, own_program());
    const std::atomic<bool>& interrupted = catch_interrupts();
    const bool drifts =
        !target.is_gpu() && most_drift_percent < 100 && options.role != WorkerRole::kBuild;
    options.most_drift = drifts ? most_drift_percent / 100 : 0;
    options.stop = [&interrupted] { return interrupted.load(); };
    options.make_measurer = [&](MeasureOptions measure) {
      measure.build_jobs = usable_cpus();
      if (!target.is_gpu()) measure.build_jobs = target.threads;
      measure.device = gpu;
      measure.stop = [&interrupted] { return interrupted.load(); };
      return LocalMeasurer::make(measure, program);
    };
    log_detail("worker {} of kind {} serves {}", options.name, options.kind, access.broker.url);
    TRY_ASSIGN(const std::unique_ptr<FleetWorker> worker, FleetWorker::join(*broker, options));
    TRY_ASSIGN(const int64_t trials, worker->serve());
    release_interrupts();
    call.show({{"name", options.name}, {"trials", trials}},
              fmt::format("measured {} trials\n", trials));
    return interrupted ? kInterrupted : kDone;
  }

 private:
  // Returns the worker's name, which is a key of a table and a part of subjects.
  std::string worker_name() const {
    char host[128] = {};
    gethostname(host, sizeof host - 1);
    std::string made = name.empty() ? fmt::format("{}-{}", host, getpid()) : name;
    const auto strange = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_';
    };
    std::ranges::replace_if(made, strange, '-');
    return made;
  }
};

}  // namespace

RunCommand make_fleet_init(CLI::App& app) { return make_command<FleetInit>(app); }
RunCommand make_fleet_status(CLI::App& app) { return make_command<FleetStatus>(app); }
RunCommand make_fleet_drain(CLI::App& app) { return make_command<FleetDrain>(app); }
RunCommand make_worker(CLI::App& app) { return make_command<Worker>(app); }

}  // namespace pruner
