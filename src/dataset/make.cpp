#include "dataset/make.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>

#include "dataset/dataset_writer.h"
#include "dataset/extract.h"
#include "dataset/record_batches.h"
#include "record/record_stream.h"
#include "support/check.h"
#include "support/hash.h"
#include "support/parallel_for.h"
#include "support/rng.h"
#include "tune/stopwatch.h"

namespace pruner {

namespace {

constexpr size_t kLinesAPart = 64;
constexpr size_t kPartsAtOnce = 64;  // parts whose features are in memory together

/// `Program` is a program whose features the writer has.
struct Program {
  int64_t number = 0;  // number that the writer gave
  int task = 0, label = 0;
  double latency_s = 0;
  int64_t timestamp = 0;
  uint64_t hash = 0;
};

class Making {
 public:
  Making(const MakeOptions& options, const MakeTools& tools, DatasetWriter writer)
      : options_(options), tools_(tools), writer_(std::move(writer)) {}

  Result<Unit> read(const std::vector<ReadFile>& batch);
  Result<MakeSummary> finish();
  MakeSummary& summary() { return summary_; }

 private:
  bool one_device() const { return !options_.mixed_targets && options_.targets.size() < 2; }
  Result<Unit> add(const FilePart& part);
  Result<Unit> add(const FilePart& part, const Extracted& record, int label, int task);
  Result<int> label_number(const DeviceLabel& label, const std::string& path);
  int task_number(const TaskKey& key, int label);
  void count_lines(const ReadFile& file);
  void join_devices();
  std::vector<size_t> drop_duplicates();
  std::vector<size_t> drop_tasks(const std::vector<size_t>& programs);
  Result<Unit> write(const std::vector<size_t>& programs);

  const MakeOptions& options_;
  const MakeTools& tools_;
  DatasetWriter writer_;
  MakeSummary summary_;
  int64_t most_programs_ = 0;  // most programs of a task with a valid one
  std::map<DeviceLabel, int> label_numbers_;
  std::vector<DeviceLabel> labels_;
  std::vector<std::string> first_of_;  // per label: file with its first record
  std::map<std::pair<std::string, int>, int> task_numbers_;  // keyed by canonical key and label
  std::vector<DatasetTask> tasks_;
  std::vector<std::string> canonical_;  // canonical keys, one per task
  std::vector<DeviceCount> counts_;     // one per label, later one per device
  std::vector<Program> programs_;
};

Result<int> Making::label_number(const DeviceLabel& label, const std::string& path) {
  const auto [entry, added] = label_numbers_.emplace(label, static_cast<int>(labels_.size()));
  if (!added) return entry->second;
  if (one_device()) {
    for (size_t i = 0; i < labels_.size(); ++i) {
      if (may_be_one_device(labels_[i], label)) continue;
      return Error("records of several devices: \"",
                   labels_[i].text,
                   "\" (",
                   first_of_[i],
                   ") and \"",
                   label.text,
                   "\" (",
                   path,
                   "); choose one with --target, or take all with --mixed-targets");
    }
  }
  labels_.push_back(label);
  first_of_.push_back(path);
  counts_.emplace_back().target = label.text;
  return entry->second;
}

int Making::task_number(const TaskKey& key, int label) {
  const auto [entry, added] =
      task_numbers_.emplace(std::pair(key.canonical, label), static_cast<int>(tasks_.size()));
  if (added) {
    tasks_.push_back({key.text, labels_[label].text});
    canonical_.push_back(key.canonical);
  }
  return entry->second;
}

Result<Unit> Making::add(const FilePart& part, const Extracted& record, int label, int task) {
  const std::string where = part.file->path + ":" + std::to_string(record.line);
  DeviceCount& count = counts_[label];
  ++count.records;
  if (record.labelled) ++(record.latency_s < kFailedCost ? count.valid : count.failed);
  switch (record.fate) {
    case Fate::kBadLabel:
      ++count.bad_label;
      note(summary_.bad_label, record.reason, where);
      break;
    case Fate::kHeldOut: ++count.held_out; break;
    case Fate::kFailedDropped: ++count.failed_dropped; break;
    case Fate::kNoDag:
      ++count.no_dag;
      note(summary_.no_dag, record.reason, where);
      break;
    case Fate::kNotRebuilt:
      ++count.not_rebuilt;
      note(summary_.not_rebuilt, record.reason, where);
      break;
    case Fate::kProgram: {
      TRY_ASSIGN(const int64_t number, writer_.add(record.features));
      programs_.push_back(
          {number, task, label, record.latency_s, record.timestamp, record.program});
      break;
    }
    case Fate::kUnreadable:
    case Fate::kOtherTarget: CHECK(false);
  }
  return Unit{};
}

Result<Unit> Making::add(const FilePart& part) {
  for (const Extracted& record : part.records) {
    if (record.fate == Fate::kUnreadable) {
      note(summary_.unreadable, record.reason, part.file->path + ":" + std::to_string(record.line));
    } else if (record.fate == Fate::kOtherTarget) {
      ++summary_.other_targets;
    } else {
      const DeviceLabel& device = part.labels[record.label];
      TRY_ASSIGN(const int label, label_number(device, part.file->path));
      const bool program = record.fate == Fate::kProgram;
      const int task = program ? task_number(part.keys[record.key], label) : -1;
      TRY(add(part, record, label, task));
    }
  }
  return Unit{};
}

void Making::count_lines(const ReadFile& file) {
  summary_.lines += static_cast<int64_t>(file.lines.size());
  ++summary_.files;
  if (!file.error.empty()) note(summary_.unreadable_files, "cannot be read", file.error);
  if (file.damaged) note(summary_.unreadable_files, kEndsEarly, file.path);
  if (file.error.empty() && !file.damaged && file.lines.empty())
    note(summary_.unreadable_files, "without a line", file.path);
}

Result<Unit> Making::read(const std::vector<ReadFile>& batch) {
  std::vector<FilePart> parts;
  for (const ReadFile& file : batch) {
    if (file.other) {
      ++summary_.other_files;
      continue;
    }
    count_lines(file);
    for (size_t begin = 0; begin < file.lines.size(); begin += kLinesAPart) {
      FilePart& part = parts.emplace_back();
      part.file = &file;
      part.begin = begin;
      part.end = std::min(begin + kLinesAPart, file.lines.size());
    }
  }
  for (size_t begin = 0; begin < parts.size(); begin += kPartsAtOnce) {
    const size_t end = std::min(begin + kPartsAtOnce, parts.size());
    parallel_for(static_cast<int64_t>(end - begin), options_.jobs, [&](int64_t i) {
      extract_part(options_, tools_, parts[begin + static_cast<size_t>(i)]);
    });
    for (size_t i = begin; i < end; ++i) {
      TRY(add(parts[i]));
      parts[i] = FilePart();
    }
  }
  return Unit{};
}

/// Joins labels that may be one device, and the tasks of joined labels.
void Making::join_devices() {
  const std::vector<std::string> names = group_devices(labels_, one_device());
  std::map<std::string, int> numbers;
  std::vector<int> device_of;
  std::vector<DeviceCount> counts;
  for (size_t i = 0; i < labels_.size(); ++i) {
    const auto [entry, added] = numbers.emplace(names[i], static_cast<int>(counts.size()));
    if (added) counts.emplace_back().target = names[i];
    counts[entry->second].add(counts_[i]);
    device_of.push_back(entry->second);
  }
  counts_ = std::move(counts);
  std::map<std::pair<std::string, int>, int> joined;
  std::vector<DatasetTask> tasks;
  for (Program& program : programs_) {  // in the order in which tasks come up
    const auto old = static_cast<size_t>(program.task);
    program.label = device_of[program.label];
    const auto [entry, added] =
        joined.emplace(std::pair(canonical_[old], program.label), static_cast<int>(tasks.size()));
    if (added) tasks.push_back({tasks_[old].workload_key, counts_[program.label].target});
    program.task = entry->second;
  }
  tasks_ = std::move(tasks);
}

/// Returns the numbers of the programs that stay, ascending.
std::vector<size_t> Making::drop_duplicates() {
  const auto replaces = [&](const Program& a, const Program& b) {  // a came after b
    if (options_.duplicates == DuplicateRule::kBest) return a.latency_s < b.latency_s;
    return a.timestamp >= b.timestamp;
  };
  std::unordered_map<uint64_t, size_t> chosen;
  for (size_t i = 0; i < programs_.size(); ++i) {
    const Program& program = programs_[i];
    const uint64_t parts[] = {static_cast<uint64_t>(program.task), program.hash};
    const uint64_t key = hash64({reinterpret_cast<const char*>(parts), sizeof parts});
    const auto [entry, added] = chosen.emplace(key, i);
    if (added) continue;
    ++counts_[program.label].duplicates;
    if (replaces(program, programs_[entry->second])) entry->second = i;
  }
  std::vector<size_t> kept;
  for (const auto& [key, i] : chosen) kept.push_back(i);
  std::ranges::sort(kept);
  return kept;
}

/// Drops tasks with too few programs, and tasks beyond the first max_tasks.
std::vector<size_t> Making::drop_tasks(const std::vector<size_t>& programs) {
  std::vector<int64_t> sizes(tasks_.size(), 0), valid(tasks_.size(), 0);
  for (const size_t i : programs) {
    const auto task = static_cast<size_t>(programs_[i].task);
    ++sizes[task];
    valid[task] += programs_[i].latency_s < kFailedCost;
  }
  std::vector<int> new_task(tasks_.size(), -1);  // -1: too few, -2: beyond
  std::vector<DatasetTask> tasks;
  for (size_t task = 0; task < tasks_.size(); ++task) {
    if (valid[task] > 0) most_programs_ = std::max(most_programs_, sizes[task]);
    if (sizes[task] < std::max<int64_t>(options_.min_sample_size, 1) || valid[task] == 0) continue;
    const auto number = static_cast<int64_t>(tasks.size());
    const bool beyond = options_.max_tasks > 0 && number == options_.max_tasks;
    new_task[task] = beyond ? -2 : static_cast<int>(number);
    if (!beyond) tasks.push_back(tasks_[task]);
  }
  std::vector<size_t> kept;
  std::vector<bool> counted(tasks.size(), false);
  for (const size_t i : programs) {
    DeviceCount& count = counts_[programs_[i].label];
    programs_[i].task = new_task[programs_[i].task];
    if (programs_[i].task < 0) {
      ++(programs_[i].task == -1 ? count.too_few : count.beyond);
      continue;
    }
    const auto task = static_cast<size_t>(programs_[i].task);
    count.tasks += !counted[task];
    counted[task] = true;
    ++count.kept;
    kept.push_back(i);
  }
  tasks_ = std::move(tasks);
  return kept;
}

Result<MakeSummary> Making::finish() {
  join_devices();
  const std::vector<size_t> kept = drop_tasks(drop_duplicates());
  summary_.devices = counts_;
  if (kept.empty()) return Error(summary_.nothing_kept(options_.min_sample_size, most_programs_));
  TRY(write(kept));
  return summary_;
}

Result<Unit> Making::write(const std::vector<size_t>& programs) {
  std::vector<std::string> identity;
  for (const DatasetTask& task : tasks_) identity.push_back(task_identity(task));
  std::vector<DatasetRow> rows;
  for (const size_t i : programs) {
    const Program& program = programs_[i];
    const uint64_t id = program_id(identity[program.task], program.hash);
    rows.push_back({program.number, program.task, program.latency_s, id});
    summary_.rows += writer_.row_count(program.number);
  }
  return writer_.finish(rows, tasks_, print_json(to_json(summary_)));
}

}  // namespace

/// Returns a random sample of `count` files, in their order.
static std::vector<RecordPath> sample_files(std::vector<RecordPath> files,
                                            int64_t count,
                                            uint64_t seed) {
  Rng rng(seed);
  while (count > 0 && static_cast<int64_t>(files.size()) > count)
    files.erase(files.begin() + rng.below(static_cast<int64_t>(files.size())));
  return files;
}

Result<MakeSummary> make_dataset(const MakeOptions& options, const MakeTools& tools) {
  TRY_ASSIGN(std::vector<RecordPath> files, find_record_files(options.records));
  files = sample_files(std::move(files), options.sample_in_files, options.seed);
  const auto all_files = static_cast<int64_t>(files.size());
  TRY_ASSIGN(DatasetWriter writer, DatasetWriter::open(options.out_file));
  Making making(options, tools, std::move(writer));
  RecordBatches batches(std::move(files), options.jobs);
  const auto start = std::chrono::steady_clock::now();
  int64_t done = 0;
  while (true) {
    const std::vector<ReadFile> batch = batches.next();
    if (batch.empty()) break;
    TRY(making.read(batch));
    done += static_cast<int64_t>(batch.size());
    if (tools.on_progress) tools.on_progress(done, all_files, making.summary().lines);
  }
  making.summary().features_s = seconds_since(start);
  return making.finish();
}

}  // namespace pruner
