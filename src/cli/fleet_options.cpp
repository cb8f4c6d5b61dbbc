#include "cli/fleet_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <set>

#include "fleet/kind.h"
#include "support/file.h"
#include "support/hash.h"
#include "support/log.h"

namespace pruner {

void FleetAccess::add_to(CLI::App& app, const char* flag, const char* help) {
  begin_group(app, OptionGroup::kFleet);
  add_option(app, flag, broker.url).help(help);
  add_option(app, "--key FILE", broker.seed_file)
      .help("file of the nkey seed that says who this is");
  add_option(app, "--ca FILE", broker.ca_file)
      .help("file of the authority that the server's certificate is of");
  add_option(app, "--insecure-server", broker.insecure)
      .help("take a server older than 2.11.16, which has known holes, off this machine");
}

void FleetRunOptions::add_to(CLI::App& app) {
  access.add_to(
      app, "--fleet URL", "measure on a fleet's workers: nats://HOST:4222 or tls://HOST:4222");
  add_option(app, "--kind KIND", kind)
      .help("of workers, as `pruner fleet status` has it", "this machine's");
}

std::string fresh_run_name() {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  static constexpr size_t kLength = 16;
  return hash_hex(fmt::format("{} {} {}", host, getpid(), now)).substr(0, kLength);
}

Result<std::string> run_name(const WorkDir& dir) {
  const std::string path = dir.file("fleet_run");
  if (std::filesystem::exists(path)) {
    TRY_ASSIGN(const std::string name, read_file(path));
    const bool is_name = name.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!name.empty() && is_name) return name;
  }
  const std::string name = fresh_run_name();
  TRY(write_file(path, name));
  return name;
}

// Returns a text that tells one trial's record from another's.
static std::string identity(const Record& record) {
  std::string text = record.workload_key + "|" + record.sketch_hash + "|" +
                     std::to_string(record.result.timestamp);
  for (const auto& [name, value] : record.decisions) text += fmt::format("|{}={}", name, value);
  for (const double cost : record.result.costs_s) text += fmt::format("|{}", cost);
  return text;
}

namespace {

// Adds results to a folder's records that it has not.
class LateResults {
 public:
  LateResults(std::span<const WeightedTask> tasks, const TuneOptions& tune, RecordWriter writer)
      : tune_(tune), writer_(std::move(writer)) {
    for (const WeightedTask& weighted : tasks)
      tasks_[task_hash(print_task(weighted.task))] = &weighted.task;
  }

  void know(std::span<const Record> records) {
    for (const Record& record : records) known_.insert(identity(record));
  }

  Result<Unit> take(const ResultMessage& message) {
    const auto it = tasks_.find(message.trial.task);
    if (it == tasks_.end()) return Unit{};
    const Space space = make_space(*it->second, tune_.search.forms);
    for (size_t i = 0; i < message.results.size(); ++i) {
      Record record =
          make_record(*it->second, space, message.trial.candidates[i], message.results[i]);
      record.origin = tune_.origin;
      record.mode = tune_.mode;
      if (!known_.insert(identity(record)).second) continue;
      TRY(writer_.append(record));
      ++added_;
    }
    return Unit{};
  }

  int64_t added() const { return added_; }

 private:
  const TuneOptions& tune_;
  RecordWriter writer_;
  std::map<std::string, const Task*> tasks_;
  std::set<std::string> known_;
  int64_t added_ = 0;
};

}  // namespace

Result<std::unique_ptr<FleetMeasurer>> make_fleet_measurer(const FleetRunOptions& options,
                                                           const Target& target,
                                                           const MeasureOptions& measure,
                                                           const std::string& run) {
  TRY_ASSIGN(std::unique_ptr<Broker> broker, connect_nats(options.access.broker));
  const std::string kind = options.kind.empty() ? kind_of(target) : options.kind;
  return FleetMeasurer::make(
      std::move(broker),
      {.kind = kind, .target = target, .run = run, .program = program_hash(), .measure = measure});
}

Result<Unit> record_late_results(FleetMeasurer& measurer,
                                 std::span<const WeightedTask> tasks,
                                 const TuneOptions& tune,
                                 const WorkDir& dir) {
  TRY_ASSIGN(const std::vector<Record> records, dir.read_records());
  TRY_ASSIGN(RecordWriter writer, RecordWriter::open(dir.records()));
  LateResults late(tasks, tune, std::move(writer));
  late.know(records);
  TRY_ASSIGN(const int64_t found,
             measurer.recover([&](const ResultMessage& message) { return late.take(message); }));
  if (late.added() > 0)
    log_detail("{} results came in while nobody was there, {} of them new", found, late.added());
  return Unit{};
}

}  // namespace pruner
