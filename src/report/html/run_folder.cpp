#include "report/html/run_folder.h"

#include <algorithm>
#include <filesystem>

#include "analysis/draft.h"
#include "record/record_stat.h"
#include "record/record_stream.h"
#include "search/search.h"
#include "space/precision.h"
#include "support/file.h"
#include "support/hash.h"
#include "support/parallel_for.h"
#include "target/dot_rates.h"
#include "target/tensor_rates.h"
#include "tensor/operators.h"
#include "tune/recorded.h"
#include "tune/task_file.h"

namespace pruner {

namespace {

namespace fs = std::filesystem;

constexpr double kMuchOfOthers = 0.2;  // share of the cores' time from which on records note others

/// `Placed` is a record with the id of its program, and its place "FILE:LINE".
struct Placed {
  Record record;
  std::string program, place;
};

/// `Program` holds the measured times of one program of a task.
struct Program {
  std::optional<double> search_s = {};
  std::vector<double> again_s = {};

  std::optional<double> time_s() const {
    if (again_s.empty()) return search_s;
    return std::ranges::min(again_s);
  }
};

using Dags = std::map<std::string, std::pair<std::string, ComputeDag>>;  // name and DAG by key

/// Returns the value of `key`, or a default T.
template <typename T>
T get_or(const Json& object, const char* key) {
  Result<T> value = json_get<T>(object, key);
  return value.ok() ? *std::move(value) : T();
}

class FolderReader {
 public:
  FolderReader(std::string path, KnownTasks& known, int jobs)
      : path_(std::move(path)), known_(known), jobs_(jobs) {}

  Result<RunFolder> read() {
    TRY_ASSIGN(folder_.manifest, read_manifest(path_));
    TRY(read_records());
    TRY(find_tasks());
    find_programs();
    for (const Placed& placed : records_) add(placed);
    finish_tasks();
    find_ceiling();
    return std::move(folder_);
  }

 private:
  Result<Unit> read_records();
  Result<Unit> find_tasks();
  void find_programs();
  void add(const Placed& placed);
  void add_valid(const Placed& placed, size_t task, double time_s);
  void finish_tasks();
  void find_ceiling();
  std::string file(const char* name) const { return path_ + "/" + name; }

  std::string path_;
  KnownTasks& known_;
  int jobs_;
  RunFolder folder_;
  std::vector<Placed> records_;           // records of the run's device
  std::map<std::string, size_t> places_;  // indices of tasks by key
  Dags dags_;
  std::optional<Target> target_;  // target of the records; nullopt: not here
  std::vector<std::map<std::string, Program>> programs_;     // one map per task
  std::vector<std::pair<double, std::string>> best_sketch_;  // best time and precision per task
};

Result<Unit> FolderReader::read_records() {
  const std::string records = file(kWorkDirRecords);
  TRY_ASSIGN(const std::string bytes, read_file(records));
  folder_.records_hash = hash_hex(bytes);
  const RecordPath named[] = {{records, true}};
  const auto take = [&](StreamedRecord&& streamed) -> Result<Unit> {
    if (streamed.record.device != folder_.manifest.device) return Unit{};
    records_.push_back({std::move(streamed.record),
                        std::move(streamed.ids.program),
                        std::string(kWorkDirRecords) + ":" + std::to_string(streamed.number)});
    return Unit{};
  };
  TRY_ASSIGN(const StreamSummary summary, stream_records(named, jobs_, take));
  folder_.damaged = summary.damage.lines;
  return Unit{};
}

/// Reads the tasks of the task file in its order, or those of the records if there is no task file.
Result<Unit> FolderReader::find_tasks() {
  std::error_code code;
  if (fs::exists(file(kWorkDirTasks), code)) {
    TRY_ASSIGN(std::vector<FiledTask> tasks, read_task_file(file(kWorkDirTasks)));
    for (FiledTask& task : tasks) {
      places_.emplace(task.key, folder_.tasks.size());
      folder_.tasks.push_back({.name = task.name,
                               .key = task.key,
                               .weight = task.weight,
                               .flops = flop_count(task.dag),
                               .bytes = traffic_bytes(task.dag)});
      dags_.emplace(task.key, std::pair(task.name, std::move(task.dag)));
    }
    return Unit{};
  }
  for (const Placed& placed : records_) {
    const Record& record = placed.record;
    if (!places_.emplace(record.workload_key, folder_.tasks.size()).second) continue;
    TaskFacts& task = folder_.tasks.emplace_back();
    task.name = name_of(record);
    task.key = record.workload_key;
    // The name of an operator says its DAG.
    Result<ComputeDag> dag = parse_operator(record.task_name);
    if (!dag.ok() || workload_key(*dag) != task.key) continue;
    task.flops = flop_count(*dag);
    task.bytes = traffic_bytes(*dag);
    dags_.emplace(task.key, std::pair(task.name, *std::move(dag)));
  }
  return Unit{};
}

/// Makes spaces and untuned schedules if this program can make them as the run had them.
void FolderReader::find_programs() {
  programs_.resize(folder_.tasks.size());
  best_sketch_.resize(folder_.tasks.size(), {kWorstCost, ""});
  if (records_.empty()) {
    folder_.no_draft = "nothing is measured yet.";
    return;
  }
  const Record& first = records_.front().record;
  const Result<Target> target = parse_target(first.target, first.threads);
  if (!target.ok() || device_fingerprint(*target) != folder_.manifest.device) {
    folder_.no_draft = "the run was on another machine (" + folder_.manifest.device + ").";
    return;
  }
  target_ = *target;
  if (dags_.empty()) {
    folder_.no_draft = std::string("the folder has no ") + kWorkDirTasks + ".";
    return;
  }
  known_.add(dags_, *target, jobs_);
}

void FolderReader::add(const Placed& placed) {
  const Record& record = placed.record;
  const auto found = places_.find(record.workload_key);
  if (found == places_.end() || record.origin == kShapesOrigin) return;
  TaskFacts& task = folder_.tasks[found->second];
  const bool again = record.origin == "final";
  const std::optional<double> time_s = measured_s(record);
  ++folder_.measured;
  folder_.beside_others += record.result.busy.share() >= kMuchOfOthers;
  if (!again) {
    ++task.trials;
    task.failed += !time_s;
  }
  if (time_s) return add_valid(placed, found->second, *time_s);
  const std::string& text = record.result.error_text;
  const std::string line = general_reason(text.substr(0, text.find('\n')));
  note(folder_.failures,
       error_name(record.result.error) + (line.empty() ? "" : ": " + line),
       placed.place);
}

void FolderReader::add_valid(const Placed& placed, size_t index, double time_s) {
  const Record& record = placed.record;
  TaskFacts& task = folder_.tasks[index];
  Program& program = programs_[index][placed.program];
  if (record.origin == "final") {
    program.again_s.push_back(time_s);
    return;
  }
  program.search_s = time_s;
  TrialFacts& trial = folder_.trials.emplace_back(
      TrialFacts{index, record.sketch_name, record.decisions, time_s, 0, {}});
  if (!record.result.cut_off) trial.repeats_s = record.result.costs_s;
  const KnownTask* known = known_.find(record.workload_key);
  if (!target_ || known == nullptr) return;
  const std::optional<Candidate> candidate = resolve(known->space, record);
  if (!candidate) return;
  trial.drafted_s = draft_latency_s(make_loop_nest(known->space, *candidate), *target_);
  if (*candidate == known->untuned && !task.untuned_s) task.untuned_s = time_s;
  if (time_s < best_sketch_[index].first)
    best_sketch_[index] = {time_s, std::string(precision_of(known->space[candidate->sketch]))};
}

void FolderReader::finish_tasks() {
  for (const size_t t : by_time(folder_.tasks)) {
    TaskFacts& task = folder_.tasks[t];
    for (auto& [id, program] : programs_[t]) {
      const std::optional<double> time_s = program.time_s();
      if (time_s && (!task.best_s || *time_s < *task.best_s)) task.best_s = time_s;
      if (!program.again_s.empty() && program.search_s)
        folder_.remeasured.push_back({t, *program.search_s, std::move(program.again_s)});
    }
    task.precision = best_sketch_[t].second;
  }
}

/// Takes the ceilings from the run.json if the run measured them, else from the target.
void FolderReader::find_ceiling() {
  Ceiling& ceiling = folder_.ceiling;
  const Result<Json> peaks = json_get<Json>(folder_.manifest.more, "peaks");
  if (peaks.ok()) {
    ceiling.gflops = get_or<double>(*peaks, "peak_gflops");
    ceiling.bandwidth_gbs = get_or<double>(*peaks, "bandwidth_gbs");
    ceiling.unit_gflops = get_or<std::map<std::string, double>>(*peaks, "unit_gflops");
    ceiling.source = "The ceilings were measured at the end of the run.";
    return;
  }
  ceiling.source = "No ceiling is known here.";
  if (!target_) return;
  const Target& target = *target_;
  ceiling.source = target.source.empty()
                       ? "The ceilings are typical of such a device; the run did not measure them."
                       : "The ceilings are the device file's: " + target.source + ".";
  if (target.is_gpu()) {
    ceiling.gflops = target.gpu.peak_flops / 1e9;
    ceiling.bandwidth_gbs = target.gpu.dram_bandwidth / 1e9;
    for (const TensorRateRow& row : kTensorRates)
      ceiling.unit_gflops[std::string(row.name)] =
          target.gpu.tensor_rates.*row.rate * target.gpu.sms * target.gpu.clock_hz / 1e9;
  } else {
    ceiling.gflops = target.threads * target.peak_flops / 1e9;
    ceiling.bandwidth_gbs = target.dram_bandwidth / 1e9;
    for (const DotRateRow& row : kDotRates)
      ceiling.unit_gflops[std::string(row.name)] = ceiling.gflops * target.dots.*row.rate;
  }
  std::erase_if(ceiling.unit_gflops, [](const auto& unit) { return unit.second <= 0; });
}

}  // namespace

void KnownTasks::add(const std::map<std::string, std::pair<std::string, ComputeDag>>& dags,
                     const Target& target,
                     int jobs) {
  std::vector<std::string> keys;
  for (const auto& [key, named] : dags)
    if (tasks_.try_emplace(key).second) keys.push_back(key);
  parallel_for(static_cast<int64_t>(keys.size()), jobs, [&](int64_t i) {
    const auto& [name, dag] = dags.at(keys[i]);
    Task task = make_task(dag, target, name);
    Space space = make_space(task);
    Candidate untuned = default_schedule(task, space);
    tasks_.at(keys[i]) = std::make_unique<KnownTask>(
        KnownTask{std::move(task), std::move(space), std::move(untuned)});
  });
}

const KnownTask* KnownTasks::find(const std::string& workload_key) const {
  const auto found = tasks_.find(workload_key);
  return found == tasks_.end() ? nullptr : found->second.get();
}

std::optional<double> RunFolder::sum_s(std::optional<double> TaskFacts::*time) const {
  double sum_s = 0;
  for (const TaskFacts& task : tasks) {
    if (!(task.*time)) return std::nullopt;
    sum_s += task.weight * *(task.*time);
  }
  return tasks.empty() ? std::nullopt : std::optional(sum_s);
}

Result<RunFolder> read_run_folder(const std::string& path, KnownTasks& known, int jobs) {
  std::error_code code;
  if (!fs::is_directory(path, code)) return Error(path, ": no such work dir");
  for (const char* name : {"run.json", kWorkDirRecords}) {
    if (!fs::exists(path + "/" + name, code))
      return Error(path, ": no ", name, " is in it; give the work dir of a `pruner tune`");
  }
  return FolderReader(path, known, jobs).read();
}

}  // namespace pruner
