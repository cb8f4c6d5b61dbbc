#include "dataset/extract.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/hash.h"

namespace pruner {

namespace {

constexpr double kLeastLatency = 1e-9, kMostLatency = 1e3;  // s

/// Appends the value in a form that does not depend on how the JSON was written.
void append(std::string& bytes, const Json& json) {
  if (json.is_array()) {
    bytes += '[';
    for (const Json& entry : json) append(bytes, entry);
    bytes += ']';
  } else if (json.is_number_integer()) {
    const auto number = json.get<int64_t>();
    bytes += '#';
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  } else {
    bytes += json.dump();
  }
}

void set_label(const Record& record, FilePart& part, Extracted& to) {
  if (part.labels.empty() || record.target != part.target || record.device != part.device) {
    part.labels.push_back(device_of_record(record, part.file->path));
    part.target = record.target;
    part.device = record.device;
  }
  to.label = static_cast<int>(part.labels.size()) - 1;
}

void set_key(const Record& record, FilePart& part, Extracted& to) {
  if (part.keys.empty() || part.keys.back().text != record.workload_key)
    part.keys.push_back({record.workload_key, ansor::canonical_key(record.workload_key)});
  to.key = static_cast<int>(part.keys.size()) - 1;
}

bool is_chosen(const DeviceLabel& label, const std::vector<DeviceLabel>& targets) {
  return targets.empty() || std::ranges::any_of(targets, [&](const DeviceLabel& target) {
           return is_device(label, target);
         });
}

/// Sets all of `to` but its reason; the reason is returned.
std::string extract(const Record& record,
                    const MakeOptions& options,
                    const MakeTools& tools,
                    FilePart& part,
                    Extracted& to) {
  const auto ends = [&](Fate fate, std::string reason = {}) {
    to.fate = fate;
    return reason;
  };
  set_label(record, part, to);
  if (!is_chosen(part.labels.back(), options.targets)) return ends(Fate::kOtherTarget);
  const Result<double> latency = label_of(record);
  if (!latency.ok()) return ends(Fate::kBadLabel, latency.error().message());
  to.labelled = true;
  to.latency_s = *latency;
  if (tools.held_out.holds(record)) return ends(Fate::kHeldOut);
  if (!tools.only.empty() && !tools.only.holds(record)) return ends(Fate::kHeldOut);
  if (!record.result.ok() && !options.keep_failed) return ends(Fate::kFailedDropped);
  std::string missing = tools.programs.missing_dag(record);
  if (!missing.empty()) return ends(Fate::kNoDag, std::move(missing));
  const Result<RecordedProgram> program = tools.programs.read(record);
  if (!program.ok()) return ends(Fate::kNotRebuilt, general_reason(program.error().message()));
  to.features = features(program->statements, program->flags);
  to.features.primitives = program->primitives;
  const auto finite = [](float x) { return std::isfinite(x); };
  if (to.features.rows.empty() || !std::ranges::all_of(to.features.rows, finite) ||
      !std::ranges::all_of(to.features.dataflow, finite))
    return ends(Fate::kNotRebuilt, "its features are no numbers");
  set_key(record, part, to);
  to.timestamp = record.result.timestamp;
  to.program = program_hash(record);
  return ends(Fate::kProgram);
}

/// Returns why a line is no record. Python writes numbers that JSON does not have.
std::string unreadable_reason(const RecordLine& line, const Error& error) {
  for (const char* word : {"NaN", "Infinity"}) {
    if (line.text.find(word) != std::string_view::npos)
      return std::string("not JSON: ") + word + " stands for a number";
  }
  return general_reason(error.message());
}

}  // namespace

uint64_t program_hash(const Record& record) {
  std::string bytes;
  if (record.sketch_name.empty()) {
    append(bytes, record.steps);
  } else {
    bytes = record.sketch_name + " " + record.sketch_hash;
    for (const auto& [name, value] : record.decisions)
      bytes += " " + name + "=" + std::to_string(value);
  }
  return hash64(bytes);
}

std::string task_identity(const DatasetTask& task) {
  return ansor::canonical_key(task.workload_key) + "\n" +
         device_identity(parse_device_label(task.target));
}

uint64_t program_id(const std::string& task_identity, uint64_t program_hash) {
  return hash64(task_identity + "\n" + std::to_string(program_hash));
}

void extract_part(const MakeOptions& options, const MakeTools& tools, FilePart& part) {
  part.records.resize(part.end - part.begin);
  for (size_t i = part.begin; i < part.end; ++i) {
    Extracted& to = part.records[i - part.begin];
    const RecordLine& line = part.file->lines[i];
    to.line = line.number;
    const Result<Record> record = parse_line(line.text);
    to.reason = record.ok() ? extract(*record, options, tools, part, to)
                            : unreadable_reason(line, record.error());
  }
}

Result<double> label_of(const Record& record) {
  if (!record.result.ok()) return kFailedCost;
  const std::vector<double>& costs = record.result.costs_s;
  for (const double cost : costs) {
    if (!std::isfinite(cost)) return Error("a latency that is no number");
    if (cost == 0) return Error("a latency of 0");
    if (cost < 0) return Error("a negative latency");
    if (cost < kLeastLatency) return Error("a latency below 1 ns");
    if (cost > kMostLatency) return Error("a latency above 1000 s without an error number");
  }
  if (!record.sketch_name.empty()) return record.result.cost_s();
  return std::accumulate(costs.begin(), costs.end(), 0.0) / static_cast<double>(costs.size());
}

}  // namespace pruner
