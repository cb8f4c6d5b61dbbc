#include "dataset/program_pool.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "dataset/extract.h"
#include "support/parallel_for.h"

namespace pruner {

namespace {

constexpr size_t kReadAtOnce = 512;

/// `Pending` is a record whose program is still to be made.
struct Pending {
  Record record;
  std::string where;
  std::string program;  // id of the program
  std::string target, device;
  std::optional<Gpu> gpu = {};
  ProgramFeatures features = {};
  LoopNest nest = {};
  double draft_score = 0;
  std::string failed = {};  // why there is no program
};

/// `RecordedDevice` is the device of a record.
struct RecordedDevice {
  std::string path, target, device;  // the record's file, target and device
  DeviceLabel label;
  std::optional<Gpu> gpu;
};

/// Returns a reason without the numbers of the one record.
std::string general(const std::string& message) {
  const size_t comma = message.find(", ");
  if (message.starts_with("step ") && comma != std::string::npos) return message.substr(comma + 2);
  const size_t colon = message.find(": ");
  const bool limit = message.find("the device allows") != std::string::npos;
  return limit && colon != std::string::npos ? message.substr(0, colon) + " beyond the device's"
                                             : message;
}

class Reader {
 public:
  Reader(RecordedPrograms& programs, const PoolOptions& options)
      : programs_(programs), options_(options) {}

  void add(StreamedRecord&& streamed) {
    const RecordedDevice& device = device_of(streamed.record, streamed.path);
    std::string program = streamed.ids.program + device.label.text;
    const auto known = places_.find(program);
    if (known != places_.end()) {
      ++pool_.repeats;
      if (known->second.made) measured_again(known->second, streamed.record);
      return;
    }
    const bool fresh = waiting_.insert(program).second;
    if (!fresh) {  // the program's first record is still to be made
      flush();
      add(std::move(streamed));
      return;
    }
    pending_.push_back({.record = std::move(streamed.record),
                        .where = streamed.path + ":" + std::to_string(streamed.number),
                        .program = std::move(program),
                        .target = device.label.text,
                        .device = model_of(device.label),
                        .gpu = options_.gpu ? options_.gpu : device.gpu});
    if (pending_.size() >= kReadAtOnce) flush();
  }

  ProgramPool take() {
    flush();
    std::erase_if(pool_.tasks, [&](const PooledTask& task) {
      const bool hopeless = task.best_s() >= kFailedCost;
      pool_.hopeless += hopeless && task.size() > 0;
      return hopeless;
    });
    return std::move(pool_);
  }

 private:
  struct Place {
    bool made = false;  // false: the record gave no program
    size_t task = 0, program = 0;
    bool final = false;
  };

  void flush() {
    parallel_for(static_cast<int64_t>(pending_.size()), options_.jobs, [&](int64_t i) {
      Pending& pending = pending_[i];
      Result<RecordedProgram> program = programs_.read(pending.record);
      if (!program.ok()) {
        pending.failed = program.error().message();
        return;
      }
      pending.features = features(program->statements, program->flags);
      pending.features.primitives = program->primitives;
      if (pending.features.rows.empty()) pending.failed = "no buffer is stored to";
      if (options_.form) draft(*program, pending);
      if (options_.nests) pending.nest = std::move(program->nest);
    });
    for (Pending& pending : pending_) keep(std::move(pending));
    pending_.clear();
    waiting_.clear();
  }

  void draft(const RecordedProgram& program, Pending& pending) const {
    if (is_cpu(pending.target)) {
      pending.draft_score = program.cpu_draft_s > 0 ? 1e-3 / program.cpu_draft_s : 0;
    } else if (pending.gpu) {
      pending.draft_score =
          draft_score(program.statements, *pending.gpu, *options_.form, options_.penalties);
    } else {
      pending.failed = "the draft does not know its device; name one with --psa";
    }
  }

  const RecordedDevice& device_of(const Record& record, const std::string& path) {
    if (device_.path == path && device_.target == record.target && device_.device == record.device)
      return device_;
    device_ = {path, record.target, record.device, device_of_record(record, path), {}};
    device_.gpu = gpu_of(device_.label);
    return device_;
  }

  void keep(Pending&& pending) {
    Place& place = places_[pending.program];
    if (!pending.failed.empty()) {
      LeftOutRecords& reason = pool_.left_out[general(pending.failed)];
      if (reason.records++ == 0) reason.first = pending.where;
      return;
    }
    const Record& record = pending.record;
    RecordedTask task = task_of(record);
    if (task.device.empty()) task.device = pending.device;
    const auto [found, fresh] = tasks_.try_emplace(task, pool_.tasks.size());
    if (fresh)
      pool_.tasks.push_back({.task = task, .name = name_of(record), .target = pending.target});
    PooledTask& pooled = pool_.tasks[found->second];
    place = {true, found->second, pooled.size(), record.origin == "final"};
    pooled.features.push_back(std::move(pending.features));
    pooled.draft_scores.push_back(pending.draft_score);
    if (options_.nests) pooled.nests.push_back(std::move(pending.nest));
    pooled.programs.push_back(program_hash(record));
    pooled.trials.push_back(
        {measured_s(record).value_or(kFailedCost), record.result.build_s + record.result.run_s});
  }

  void measured_again(Place& place, const Record& record) {
    const double cost_s = measured_s(record).value_or(kFailedCost);
    double& known_s = pool_.tasks[place.task].trials[place.program].cost_s;
    const bool final = record.origin == "final";
    if (final == place.final) known_s = std::min(known_s, cost_s);
    if (final && !place.final) known_s = cost_s;
    place.final = place.final || final;
  }

  RecordedPrograms& programs_;
  const PoolOptions& options_;
  RecordedDevice device_;  // device of the last record
  ProgramPool pool_;
  std::map<RecordedTask, size_t> tasks_;
  std::unordered_map<std::string, Place> places_;  // places by program id
  std::vector<Pending> pending_;
  std::set<std::string> waiting_;  // programs of `pending_`
};

}  // namespace

double PooledTask::best_s() const {
  double best_s = kFailedCost;
  for (const PooledTrial& trial : trials) best_s = std::min(best_s, trial.cost_s);
  return best_s;
}

int64_t ProgramPool::size() const {
  int64_t sum = 0;
  for (const PooledTask& task : tasks) sum += static_cast<int64_t>(task.size());
  return sum;
}

Result<ProgramPool> read_program_pool(std::span<const RecordPath> files,
                                      RecordedPrograms& programs,
                                      const PoolOptions& options) {
  Reader reader(programs, options);
  const auto take = [&](StreamedRecord&& streamed) -> Result<Unit> {
    reader.add(std::move(streamed));
    return Unit{};
  };
  TRY_ASSIGN(StreamSummary summary, stream_records(files, options.jobs, take));
  ProgramPool pool = reader.take();
  pool.summary = std::move(summary);
  if (!pool.tasks.empty()) return pool;
  std::string why = pool.summary.records == 0 ? "" : "; none of them ran";
  if (!pool.left_out.empty()) {
    const auto& [reason, entry] = *std::ranges::max_element(
        pool.left_out, {}, [](const auto& row) { return row.second.records; });
    why = "; " + std::to_string(entry.records) + " of them: " + reason + " (first: " + entry.first +
          ")";
  }
  return Error("no program to choose from in ", pool.summary.records, " records", why);
}

}  // namespace pruner
