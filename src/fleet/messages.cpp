#include "fleet/messages.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "measure/wire.h"
#include "support/clock.h"
#include "support/hash.h"

namespace pruner {

static constexpr int kVersion = 1;  // version of the messages

static Result<Json> parse(std::string_view bytes) {
  TRY_ASSIGN(Json json, parse_json(bytes));
  TRY_ASSIGN(const int version, json_get<int>(json, "v"));
  if (version != kVersion) return Error("a message of version ", version, ", expected ", kVersion);
  return json;
}

static Json trial_json(const TrialMessage& message) {
  Json candidates = Json::array();
  for (const Candidate& candidate : message.candidates) candidates.push_back(to_json(candidate));
  return {{"v", kVersion},
          {"id", message.id},
          {"task", message.task},
          {"candidates", std::move(candidates)},
          {"best_s", message.best_s},
          {"options", to_json(message.options)}};
}

static Result<TrialMessage> trial_from_json(const Json& json) {
  TrialMessage message;
  TRY_ASSIGN(message.id, json_get<std::string>(json, "id"));
  TRY_ASSIGN(message.task, json_get<std::string>(json, "task"));
  TRY_ASSIGN(message.best_s, json_get<double>(json, "best_s"));
  TRY_ASSIGN(const Json candidates, json_get<Json>(json, "candidates"));
  if (!candidates.is_array()) return Error("\"candidates\" is no list");
  for (const Json& each : candidates) {
    TRY_ASSIGN(Candidate candidate, candidate_from_json(each));
    message.candidates.push_back(std::move(candidate));
  }
  TRY_ASSIGN(const Json options, json_get<Json>(json, "options"));
  TRY_ASSIGN(message.options, options_from_json(options));
  if (message.candidates.empty()) return Error("has no candidates");
  return message;
}

std::string print(const TrialMessage& message) { return trial_json(message).dump(); }

Result<TrialMessage> parse_trial(std::string_view bytes) {
  TRY_ASSIGN(const Json json, parse(bytes));
  return trial_from_json(json);
}

// "SIGNATURE\nJSON\nOBJECT": the signature is of all that follows it.
Result<std::string> print(const ObjectMessage& message, const NKey& builder) {
  Frame frame = to_frame(message.build);
  Json json = trial_json(message.trial);
  json["build"] = std::move(frame.header);
  const std::string signed_part = json.dump() + "\n" + frame.body;
  TRY_ASSIGN(const std::string signature, sign(builder, signed_part));
  return signature + "\n" + signed_part;
}

// A line, which is taken off the text.
static std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

Result<ObjectMessage> parse_object(std::string_view bytes, std::span<const std::string> trusted) {
  const std::string_view signature = take_line(bytes);
  const auto signed_by = [&](const std::string& key) {
    return is_signed_by(key, bytes, signature);
  };
  if (std::ranges::none_of(trusted, signed_by)) return Error("code that nobody trusted has signed");
  TRY_ASSIGN(const Json json, parse(take_line(bytes)));
  ObjectMessage message;
  TRY_ASSIGN(message.trial, trial_from_json(json));
  if (message.trial.candidates.size() != 1) return Error("code of other than one candidate");
  TRY_ASSIGN(Json header, json_get<Json>(json, "build"));
  TRY_ASSIGN(message.build, build_from_frame({std::move(header), std::string(bytes)}));
  return message;
}

std::string trial_id(std::string_view bytes) {
  if (!bytes.starts_with('{')) take_line(bytes);
  const Result<Json> json = parse(take_line(bytes));
  const Result<std::string> id =
      json.ok() ? json_get<std::string>(*json, "id") : Result<std::string>(json.error());
  return id.ok() ? *id : "";
}

// Clocks of two machines have nothing in common but how fast they go.
static Json span_json(const WorkSpan& span, double now_s) {
  return {now_s - span.time.from_s, now_s - span.time.to_s, span.worker};
}

static Result<WorkSpan> span_from_json(const Json& json, const char* key, double now_s) {
  TRY_ASSIGN(const auto ago, (json_get<std::tuple<double, double, int>>(json, key)));
  const auto& [from_s, to_s, worker] = ago;
  return WorkSpan{{now_s - from_s, now_s - to_s}, worker};
}

std::string print(const ResultMessage& message) {
  const double now_s = steady_s();
  Json json = trial_json(message.trial);
  json["worker"] = message.worker;
  json["build_s"] = message.build_s;
  json["run_s"] = message.run_s;
  json["results"] = Json::array();
  for (const MeasureResult& result : message.results) {
    Json each = to_json(result);
    each["timestamp"] = result.timestamp;
    each["building"] = span_json(result.building, now_s);
    each["running"] = span_json(result.running, now_s);
    json["results"].push_back(std::move(each));
  }
  return json.dump();
}

Result<ResultMessage> parse_result(std::string_view bytes) {
  const double now_s = steady_s();
  TRY_ASSIGN(const Json json, parse(bytes));
  ResultMessage message;
  TRY_ASSIGN(message.trial, trial_from_json(json));
  TRY_ASSIGN(message.worker, json_get<std::string>(json, "worker"));
  TRY_ASSIGN(message.build_s, json_get<double>(json, "build_s"));
  TRY_ASSIGN(message.run_s, json_get<double>(json, "run_s"));
  TRY_ASSIGN(const Json results, json_get<Json>(json, "results"));
  const size_t most = message.trial.candidates.size();
  if (!results.is_array() || results.empty() || results.size() > most)
    return Error("has ", results.size(), " results of ", most, " candidates");
  for (const Json& each : results) {
    TRY_ASSIGN(MeasureResult result, result_from_json(each));
    TRY_ASSIGN(result.timestamp, json_get<int64_t>(each, "timestamp"));
    TRY_ASSIGN(result.building, span_from_json(each, "building", now_s));
    TRY_ASSIGN(result.running, span_from_json(each, "running", now_s));
    message.results.push_back(std::move(result));
  }
  return message;
}

std::string print_task(const Task& task) { return to_json(task).dump(); }

std::string task_hash(std::string_view printed) { return hash_hex(printed); }

Result<Task> parse_task(std::string_view printed) {
  TRY_ASSIGN(const Json json, parse_json(printed));
  return task_from_json(json);
}

static constexpr std::array<std::string_view, 3> kRoles = {"measure", "build", "run"};

std::string_view role_name(WorkerRole role) { return kRoles[static_cast<size_t>(role)]; }

Result<WorkerRole> parse_role(std::string_view name) {
  const auto it = std::ranges::find(kRoles, name);
  if (it == kRoles.end()) return Error("\"", name, "\" is no role: measure, build or run");
  return static_cast<WorkerRole>(it - kRoles.begin());
}

Json to_json(const WorkerState& state) {
  return {{"name", state.name},
          {"kind", state.kind},
          {"host", state.host},
          {"role", role_name(state.role)},
          {"program", state.program},
          {"target", state.target},
          {"threads", state.threads},
          {"trials", state.trials},
          {"started", state.started},
          {"state", state.state}};
}

std::string print(const WorkerState& state) {
  Json json = to_json(state);
  json["v"] = kVersion;
  return json.dump();
}

Result<WorkerState> parse_worker(std::string_view bytes) {
  TRY_ASSIGN(const Json json, parse(bytes));
  WorkerState state;
  TRY_ASSIGN(state.name, json_get<std::string>(json, "name"));
  TRY_ASSIGN(state.kind, json_get<std::string>(json, "kind"));
  TRY_ASSIGN(state.host, json_get<std::string>(json, "host"));
  TRY_ASSIGN(const std::string role, json_get<std::string>(json, "role"));
  TRY_ASSIGN(state.role, parse_role(role));
  TRY_ASSIGN(state.program, json_get<std::string>(json, "program"));
  TRY_ASSIGN(state.target, json_get<std::string>(json, "target"));
  TRY_ASSIGN(state.threads, json_get<int>(json, "threads"));
  TRY_ASSIGN(state.trials, json_get<int64_t>(json, "trials"));
  TRY_ASSIGN(state.started, json_get<int64_t>(json, "started"));
  TRY_ASSIGN(state.state, json_get<std::string>(json, "state"));
  return state;
}

}  // namespace pruner
