// pruner fleet: the server's streams, who works there, and the end of a worker; pruner worker: to
// work.
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <filesystem>

#include "cli/commands.h"
#include "cli/fleet_options.h"
#include "cli/interrupt.h"
#include "fleet/kind.h"
#include "fleet/names.h"
#include "fleet/server_files.h"
#include "fleet/worker.h"
#include "support/log.h"

namespace pruner {

namespace {

constexpr const char* kServer = "the server: nats://HOST:4222 or tls://HOST:4222";

Result<std::unique_ptr<Broker>> connect(const FleetAccess& access) {
  if (!access.given()) return Error("give --server nats://HOST:4222");
  return Broker::connect(access.broker);
}

struct FleetInit {
  FleetAccess access;
  std::string folder;

  void add_to(CLI::App& app) {
    access.add_to(app, "--server", kServer);
    add_option(app, "--files", folder)
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

  void add_to(CLI::App& app) { access.add_to(app, "--server", kServer); }

  Result<int> run(const Invocation& call) const {
    TRY_ASSIGN(const std::unique_ptr<Broker> broker, connect(access));
    TRY_ASSIGN(const std::vector<WorkerState> workers, list_workers(*broker));
    Json json = {{"workers", Json::array()}, {"kinds", Json::object()}};
    std::string text = workers.empty() ? "no worker is here\n" : "";
    for (const WorkerState& worker : workers) {
      json["workers"].push_back({{"name", worker.name},
                                 {"kind", worker.kind},
                                 {"host", worker.host},
                                 {"target", worker.target},
                                 {"threads", worker.threads},
                                 {"trials", worker.trials},
                                 {"started", worker.started},
                                 {"state", worker.state}});
      text += fmt::format("{:<24} {:<9} {:>8} trials  {}  {}\n",
                          worker.name,
                          worker.state,
                          worker.trials,
                          worker.kind,
                          worker.target);
      if (json["kinds"].contains(worker.kind)) continue;
      TRY_ASSIGN(const Broker::Backlog backlog,
                 broker->backlog(fleet::kTrials, fleet::kind_queue(worker.kind)));
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
    access.add_to(app, "--server", kServer);
    add_option(app, "worker", worker).help("its name; all of them without one");
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

/// "cpu:0-3,6" -> the cores.
Result<std::vector<int>> parse_cores(const std::string& text) {
  const Error error("--device: \"", text, "\" is no cpu:FIRST-LAST,... of this machine");
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

struct Worker {
  FleetAccess access;
  std::string device;  // empty: all cores
  std::string name;
  double most_drift_percent = 3;

  void add_to(CLI::App& app) {
    access.add_to(app, "--server", kServer);
    add_option(app, "--device", device).help("cores to measure on: cpu:0-7 (all)");
    add_option(app, "--name", name).help("among all workers (HOST-PID)");
    add_option(app, "--most-drift", most_drift_percent)
        .help("percent of its speed that it may lose before it leaves; 100: any (3)");
  }

  Result<int> run(const Invocation& call) const {
    TRY_ASSIGN(const std::unique_ptr<Broker> broker, connect(access));
    if (!device.empty()) {
      TRY_ASSIGN(const std::vector<int> cores, parse_cores(device));
      cpu_set_t set;
      CPU_ZERO(&set);
      for (const int core : cores) CPU_SET(static_cast<size_t>(core), &set);
      if (sched_setaffinity(0, sizeof set, &set) != 0)
        return Error("--device: \"", device, "\" is no cpu:FIRST-LAST,... of this machine");
    }
    cpu_set_t mine;
    sched_getaffinity(0, sizeof mine, &mine);
    const int threads = CPU_COUNT(&mine);
    TRY_ASSIGN(const Target target, parse_target("llvm", threads));
    std::error_code code;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", code);
    if (code) return Error("/proc/self/exe: cannot be read: ", code.message());
    char host[128] = {};
    gethostname(host, sizeof host - 1);
    const std::atomic<bool>& interrupted = catch_interrupts();
    FleetWorkerOptions options{
        .target = target,
        .name = name.empty() ? fmt::format("{}-{}", host, getpid()) : name,
        .most_drift = most_drift_percent >= 100 ? 0 : most_drift_percent / 100,
        .stop = [&interrupted] { return interrupted.load(); },
        .make_measurer =
            [&](MeasureOptions measure) {
              measure.build_jobs = threads;
              measure.stop = [&interrupted] { return interrupted.load(); };
              return make_local_measurer(measure, program.string());
            }};
    std::ranges::replace_if(
        options.name,
        [](char c) {
          return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_';
        },
        '-');
    log_detail("worker {} of kind {} serves {}", options.name, kind_of(target), access.broker.url);
    TRY_ASSIGN(const int64_t trials, serve_fleet(*broker, options));
    release_interrupts();
    call.show({{"name", options.name}, {"trials", trials}},
              fmt::format("measured {} trials\n", trials));
    return interrupted ? kInterrupted : kDone;
  }
};

}  // namespace

RunCommand make_fleet_init(CLI::App& app) { return make_command<FleetInit>(app); }
RunCommand make_fleet_status(CLI::App& app) { return make_command<FleetStatus>(app); }
RunCommand make_fleet_drain(CLI::App& app) { return make_command<FleetDrain>(app); }
RunCommand make_worker(CLI::App& app) { return make_command<Worker>(app); }

}  // namespace pruner
