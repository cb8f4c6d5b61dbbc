#include "measure/wire.h"

#include <utility>

#include "tensor/compute_dag.h"

namespace pruner {

Json to_json(const Task& task) {
  return {{"dag", dag_to_json(task.dag)},
          {"target", print(task.target)},
          {"threads", task.target.threads},
          {"key", task.key},
          {"name", task.name}};
}

Result<Task> task_from_json(const Json& json) {
  TRY_ASSIGN(const Json dag_json, json_get<Json>(json, "dag"));
  TRY_ASSIGN(const std::string target_text, json_get<std::string>(json, "target"));
  TRY_ASSIGN(const int threads, json_get<int>(json, "threads"));
  TRY_ASSIGN(const std::string key, json_get<std::string>(json, "key"));
  TRY_ASSIGN(std::string name, json_get<std::string>(json, "name"));
  TRY_ASSIGN(ComputeDag dag, dag_from_json(dag_json));
  TRY_ASSIGN(Target target, parse_target(target_text, threads));
  Task task = make_task(std::move(dag), std::move(target), std::move(name));
  if (task.key != key) return Error("task ", key, " arrived as ", task.key);
  return task;
}

Json to_json(const Candidate& candidate) {
  return {{"sketch", candidate.sketch.value}, {"decisions", candidate.decisions}};
}

Result<Candidate> candidate_from_json(const Json& json) {
  Candidate candidate;
  TRY_ASSIGN(candidate.sketch.value, json_get<int32_t>(json, "sketch"));
  TRY_ASSIGN(candidate.decisions, json_get<std::vector<int32_t>>(json, "decisions"));
  return candidate;
}

Json to_json(const MeasureOptions& o) {
  return {{"run_timeout_s", o.run_timeout_s},
          {"min_repeat_s", o.min_repeat_s},
          {"max_repeats", o.max_repeats},
          {"time_budget_s", o.time_budget_s},
          {"weights_from", static_cast<int>(o.weights_from)},
          {"cut_off_ratio", o.cut_off_ratio},
          {"check_elements", o.check_elements},
          {"seed", o.seed},
          {"device", o.device},
          {"flush_l2", o.flush_l2}};
}

Result<MeasureOptions> options_from_json(const Json& json) {
  MeasureOptions o;
  TRY_ASSIGN(o.run_timeout_s, json_get<double>(json, "run_timeout_s"));
  TRY_ASSIGN(o.min_repeat_s, json_get<double>(json, "min_repeat_s"));
  TRY_ASSIGN(o.max_repeats, json_get<int>(json, "max_repeats"));
  TRY_ASSIGN(o.time_budget_s, json_get<double>(json, "time_budget_s"));
  TRY_ASSIGN(const int weights_from, json_get<int>(json, "weights_from"));
  o.weights_from = static_cast<WeightsFrom>(weights_from);
  TRY_ASSIGN(o.cut_off_ratio, json_get<double>(json, "cut_off_ratio"));
  TRY_ASSIGN(o.check_elements, json_get<int>(json, "check_elements"));
  TRY_ASSIGN(o.seed, json_get<uint64_t>(json, "seed"));
  TRY_ASSIGN(o.device, json_get<int>(json, "device"));
  TRY_ASSIGN(o.flush_l2, json_get<bool>(json, "flush_l2"));
  return o;
}

Json to_json(const GpuClocks& clocks) {
  return {{"sm_mhz", clocks.sm_mhz},
          {"memory_mhz", clocks.memory_mhz},
          {"throttled", clocks.throttled}};
}

Result<GpuClocks> clocks_from_json(const Json& json) {
  GpuClocks clocks;
  TRY_ASSIGN(clocks.sm_mhz, json_get<int>(json, "sm_mhz"));
  TRY_ASSIGN(clocks.memory_mhz, json_get<int>(json, "memory_mhz"));
  TRY_ASSIGN(clocks.throttled, json_get<bool>(json, "throttled"));
  return clocks;
}

Json to_json(const MeasureResult& result) {
  Json json = {{"costs_s", result.costs_s},
               {"error", static_cast<int>(result.error)},
               {"error_text", result.error_text},
               {"build_s", result.build_s},
               {"run_s", result.run_s},
               {"cut_off", result.cut_off},
               {"refuted", result.refuted},
               {"cores_s", result.busy.cores_s},
               {"others_s", result.busy.others_s}};
  if (result.clocks) json["clocks"] = to_json(*result.clocks);
  return json;
}

Result<MeasureResult> result_from_json(const Json& json) {
  MeasureResult result;
  TRY_ASSIGN(result.costs_s, json_get<std::vector<double>>(json, "costs_s"));
  TRY_ASSIGN(const int error, json_get<int>(json, "error"));
  result.error = static_cast<MeasureError>(error);
  TRY_ASSIGN(result.error_text, json_get<std::string>(json, "error_text"));
  TRY_ASSIGN(result.build_s, json_get<double>(json, "build_s"));
  TRY_ASSIGN(result.run_s, json_get<double>(json, "run_s"));
  TRY_ASSIGN(result.cut_off, json_get<bool>(json, "cut_off"));
  TRY_ASSIGN(result.refuted, json_get<bool>(json, "refuted"));
  TRY_ASSIGN(result.busy.cores_s, json_get<double>(json, "cores_s"));
  TRY_ASSIGN(result.busy.others_s, json_get<double>(json, "others_s"));
  if (json.contains("clocks")) {
    TRY_ASSIGN(result.clocks, clocks_from_json(json["clocks"]));
  }
  return result;
}

MeasureResult failed_result(MeasureError error, std::string text) {
  MeasureResult result;
  result.error = error;
  result.error_text = std::move(text);
  return result;
}

Result<RunRequest> run_request_from_frame(const Frame& frame) {
  TRY_ASSIGN(const Json artifact_json, json_get<Json>(frame.header, "artifact"));
  TRY_ASSIGN(Artifact artifact, artifact_from_json(artifact_json, frame.body));
  TRY_ASSIGN(const double best_s, json_get<double>(frame.header, "best_s"));
  return RunRequest{std::move(artifact), best_s};
}

}  // namespace pruner
