#include "record/record.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "measure/wire.h"

namespace pruner {

namespace {

constexpr size_t kMaxErrorText = 512;
constexpr const char* kVersion = "v0.6";

// Ansor's hardware parameters (its HardwareParams); of a CPU only the first three say something.
std::vector<int64_t> hardware_of(const Target& target) {
  if (target.is_gpu()) {
    return {-1,
            target.gpu.vector_bytes,
            target.cache_line_bytes,
            target.gpu.shared_bytes_per_block,
            std::numeric_limits<int32_t>::max(),  // local memory: no limit
            target.gpu.max_threads_per_block,
            target.gpu.max_vthreads,
            target.gpu.warp_size};
  }
  return {target.threads, target.vector_bytes, target.cache_line_bytes, 0, 0, 0, 0, 0};
}

// Head and tail of a long text, as Ansor cuts it.
std::string shortened(const std::string& text) {
  if (text.size() <= kMaxErrorText) return text;
  const size_t half = kMaxErrorText / 2;
  return text.substr(0, half) + "\n...\n" + text.substr(text.size() - half);
}

Json print_p(const Record& record) {
  Json decisions = Json::object();
  for (const auto& [name, value] : record.decisions) decisions[name] = value;
  Json p = {{"task", record.task_name},
            {"sketch", record.sketch_name},
            {"hash", record.sketch_hash},
            {"decisions", std::move(decisions)},
            {"device", record.device},
            {"threads", record.threads},
            {"origin", record.origin},
            {"build_s", record.result.build_s}};
  if (!record.mode.empty()) p["mode"] = record.mode;
  if (record.result.cut_off) p["cut_off"] = true;
  // The share comes from counters of 10 ms; a smaller share is no more than their error.
  constexpr double kMarked = 0.2;
  if (record.result.busy.share() >= kMarked)
    p["others_share"] = std::round(100 * record.result.busy.share()) / 100;
  if (record.result.clocks) p["clocks"] = to_json(*record.result.clocks);
  if (!record.result.ok()) p["error"] = shortened(record.result.error_text);
  return p;
}

/// A whole number that an int32 holds; others are an error, and none wraps around.
Result<int32_t> whole_number(const Json& json, const std::string& what) {
  if (json.is_number_integer() && holds_numbers<int32_t>(json)) return json.get<int32_t>();
  return Error(what, " is ", json.dump().substr(0, 40), ", expected a whole number of 32 bits");
}

/// A time that was measured is some time.
Result<Unit> check_costs(const MeasureResult& result) {
  for (const double cost_s : result.costs_s) {
    if (!(cost_s > 0) || cost_s >= kFailedCost)
      return Error("a cost of ", cost_s, " s, expected more than 0 and less than ", kFailedCost);
  }
  return Unit{};
}

Result<Unit> parse_p(const Json& p, Record& record) {
  TRY_ASSIGN(record.task_name, json_get<std::string>(p, "task"));
  TRY_ASSIGN(record.sketch_name, json_get<std::string>(p, "sketch"));
  TRY_ASSIGN(record.sketch_hash, json_get<std::string>(p, "hash"));
  TRY_ASSIGN(const Json decisions, json_get<Json>(p, "decisions"));
  for (const auto& [name, value] : decisions.items()) {
    TRY_ASSIGN(const int32_t choice, whole_number(value, "decision \"" + name + "\""));
    record.decisions.emplace_back(name, choice);
  }
  TRY_ASSIGN(record.device, json_get<std::string>(p, "device"));
  TRY_ASSIGN(const Json threads, json_get<Json>(p, "threads"));
  TRY_ASSIGN(record.threads, whole_number(threads, "\"threads\""));
  TRY_ASSIGN(record.origin, json_get<std::string>(p, "origin"));
  record.mode = p.value("mode", std::string());
  TRY_ASSIGN(record.result.build_s, json_get<double>(p, "build_s"));
  record.result.run_s -= record.result.build_s;
  record.result.cut_off = p.value("cut_off", false);
  record.result.busy = {1, p.value("others_share", 0.0)};
  record.result.error_text = p.value("error", std::string());
  if (p.contains("clocks")) {
    TRY_ASSIGN(record.result.clocks, clocks_from_json(p["clocks"]));
  }
  return check_costs(record.result);
}

// [workload_key, target, [8 ints], target_host, layout_rewrite_option, [task_input_names]], of
// which old versions have the first two, three or five.
Result<Unit> parse_task(const Json& task, Record& record) {
  if (!task.is_array() || task.size() < 2) return Error("\"i\" has no task");
  record.workload_key = task[0].get<std::string>();
  record.target = task[1].get<std::string>();
  if (task.size() > 2) {
    TRY_ASSIGN(record.hardware, json_value<std::vector<int64_t>>(task[2], "the hardware"));
  }
  if (task.size() > 3) record.target_host = task[3].get<std::string>();
  if (task.size() > 4) {
    TRY_ASSIGN(record.layout_rewrite, whole_number(task[4], "the layout's rewrite"));
  }
  if (task.size() > 5) record.task_inputs = task[5];
  return Unit{};
}

// [[costs], error, all_cost, timestamp]
Result<MeasureResult> parse_result(const Json& r) {
  if (!r.is_array() || r.size() != 4) return Error("\"r\" has not four entries");
  TRY_ASSIGN(const int error, whole_number(r[1], "the error's number"));
  if (error < 0 || error > static_cast<int>(MeasureError::kUnknown)) {
    return Error("error number ", error, " is not one of 0 to 8");
  }
  MeasureResult result;
  result.error = static_cast<MeasureError>(error);
  if (result.ok()) result.costs_s = r[0].get<std::vector<double>>();
  if (result.ok() && result.costs_s.empty()) return Error("\"r\" has no costs");
  result.run_s = r[2].get<double>();
  TRY_ASSIGN(result.timestamp, json_value<int64_t>(r[3], "the time"));
  return result;
}

Result<Record> record_from_json(Json json) {
  if (!json.is_object()) return Error("not a record: a JSON object was expected");
  for (const char* key : {"i", "r", "v"}) {
    if (!json.contains(key)) return Error("not a record: no \"", key, "\"");
  }
  Json& i = json["i"];
  if (!i.is_array() || i.size() != 2) return Error("\"i\" has not two entries");
  Record record;
  TRY(parse_task(i[0], record));
  record.steps = std::move(i[1]);
  record.version = json["v"].get<std::string>();
  TRY_ASSIGN(record.result, parse_result(json["r"]));
  record.origin = "foreign";
  if (json.contains("p")) TRY(parse_p(json["p"], record));
  return record;
}

}  // namespace

Record make_record(const Task& task,
                   const Space& space,
                   const Candidate& candidate,
                   const MeasureResult& result) {
  const Sketch& sketch = space[candidate.sketch];
  Record record;
  record.workload_key = task.key;
  record.target = print(task.target);
  record.task_name = task.name;
  record.sketch_name = sketch.name;
  record.sketch_hash = sketch.hash;
  for (size_t i = 0; i < sketch.decisions.size(); ++i) {
    record.decisions.emplace_back(sketch.decisions[i].name, candidate.decisions[i]);
  }
  record.device = device_fingerprint(task.target);
  record.threads = task.target.threads;
  record.result = result;
  record.origin = "search";
  record.hardware = hardware_of(task.target);
  for (const Stage& stage : task.dag.stages) {
    if (!stage.layout_free.empty()) record.layout_rewrite = 2;
  }
  return record;
}

std::string print_line(const Record& record) {
  const MeasureResult& result = record.result;
  const Json task = {record.workload_key,
                     record.target,
                     record.hardware,
                     record.target_host,
                     record.layout_rewrite,
                     record.task_inputs};
  const std::vector<double> failed = {kFailedCost};
  Json line = {{"i", {task, record.steps}},
               {"r",
                {result.ok() ? result.costs_s : failed,
                 static_cast<int>(result.error),
                 result.build_s + result.run_s,
                 result.timestamp}},
               {"v", kVersion}};
  if (record.origin != "foreign") line["p"] = print_p(record);
  return print_json(line);
}

Result<Record> parse_line(std::string_view line) {
  TRY_ASSIGN(Json json, parse_json(line));
  try {
    return record_from_json(std::move(json));
  } catch (const nlohmann::json::exception&) {
    return Error("not a record: an entry of \"i\" or \"r\" has the wrong type");
  }
}

Result<Candidate> find_candidate(const Space& space, const Record& record) {
  for (size_t s = 0; s < space.sketches.size(); ++s) {
    const Sketch& sketch = space.sketches[s];
    if (sketch.name != record.sketch_name || sketch.hash != record.sketch_hash) continue;
    if (sketch.decisions.size() != record.decisions.size())
      return Error(record.decisions.size(), " decisions, expected ", sketch.decisions.size());
    Candidate candidate{SketchId{static_cast<int32_t>(s)}, {}};
    if (std::ranges::find(space.drawn, candidate.sketch) == space.drawn.end())
      return Error("sketch ", sketch.name, " is of a form that is not drawn");
    for (const Decision& decision : sketch.decisions) {
      const auto found = std::find_if(record.decisions.begin(),
                                      record.decisions.end(),
                                      [&](const auto& d) { return d.first == decision.name; });
      if (found == record.decisions.end()) return Error("no decision \"", decision.name, "\"");
      if (!allows(space, decision, found->second))
        return Error(
            "decision \"", decision.name, "\" is ", found->second, ", none of its choices");
      candidate.decisions.push_back(found->second);
    }
    return candidate;
  }
  return Error("sketch ", record.sketch_name, " is not known in this version");
}

std::optional<Candidate> resolve(const Space& space, const Record& record) {
  Result<Candidate> found = find_candidate(space, record);
  return found.ok() ? std::optional(*std::move(found)) : std::nullopt;
}

std::map<std::string, Record> best_records(const std::vector<Record>& records,
                                           const std::string& device) {
  std::map<std::string, Record> best;
  for (const Record& record : records) {
    if (!record.result.ok() || record.device != device) continue;
    const auto [entry, is_new] = best.try_emplace(record.workload_key, record);
    if (is_new) continue;
    const bool replaces = record.origin == "final" && entry->second.origin != "final";
    const bool faster = record.result.cost_s() < entry->second.result.cost_s();
    if (replaces || faster) entry->second = record;
  }
  return best;
}

}  // namespace pruner
