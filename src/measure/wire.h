// Defines as JSON what the measurer and its workers tell each other. Both are the same program, so
// a candidate goes by the number of its sketch; workers make the task's space themselves.
#pragma once

#include "codegen/codegen.h"
#include "measure/frame.h"
#include "measure/measure.h"
#include "support/json.h"

namespace pruner {

Json to_json(const Task& task);
/// The task, if its DAG still has the key that it was sent with.
Result<Task> task_from_json(const Json& json);

Json to_json(const Candidate& candidate);
Result<Candidate> candidate_from_json(const Json& json);

/// Returns the options that the runner needs.
Json to_json(const MeasureOptions& options);
Result<MeasureOptions> options_from_json(const Json& json);

Json to_json(const GpuClocks& clocks);
Result<GpuClocks> clocks_from_json(const Json& json);

Json to_json(const MeasureResult& result);
Result<MeasureResult> result_from_json(const Json& json);
/// The result of a trial that failed so.
MeasureResult failed_result(MeasureError error, std::string text);

/// RunRequest is what a runner is to run: {"artifact", "best_s"} with the object as body.
struct RunRequest {
  Artifact artifact;
  double best_s;
};
Result<RunRequest> run_request_from_frame(const Frame& frame);

}  // namespace pruner
