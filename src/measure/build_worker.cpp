#include "measure/build_worker.h"

#include <chrono>
#include <optional>
#include <utility>

#include "codegen/loader.h"
#include "lower/lower.h"
#include "measure/process_limits.h"
#include "measure/wire.h"
#include "measure/worker_loop.h"

namespace pruner {

namespace {

constexpr int64_t kMemoryBytes = int64_t{4} << 30;

Build failed(MeasureError error, std::string text) { return {error, std::move(text), 0, {}}; }

Result<Space> space_from_json(const Json& json) {
  TRY_ASSIGN(const Task task, task_from_json(json));
  Space space = make_space(task);
  space.any_tiles = true;  // the measurer says which tiles are worth a trial
  return space;
}

}  // namespace

Frame to_frame(Build build) {
  Json header = {{"error", static_cast<int>(build.error)},
                 {"error_text", build.error_text},
                 {"build_s", build.build_s},
                 {"artifact", to_json(build.artifact)}};
  return {std::move(header), std::move(build.artifact.object)};
}

Build build(const Space& space, const Candidate& candidate) {
  const auto start = std::chrono::steady_clock::now();
  const Result<Program> program = lower(space, candidate, "kernel");
  if (!program.ok()) return failed(MeasureError::kInstantiation, program.error().message());
  Result<Artifact> artifact = compile(*program, space.target, "kernel");
  if (!artifact.ok()) return failed(MeasureError::kCompileHost, artifact.error().message());
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return {MeasureError::kNone, "", elapsed.count(), *std::move(artifact)};
}

Result<Unit> make_portable(Build& build) {
  Artifact& artifact = build.artifact;
  if (build.error != MeasureError::kNone || row_of(artifact.backend).is_gpu) return Unit{};
  TRY_ASSIGN(artifact.object, link_kernel(artifact.object, artifact.symbol));
  return Unit{};
}

int serve_builds(const BuildFunction& build, int64_t memory_bytes) {
  limit_this_process(memory_bytes, 0);
  std::optional<Space> space;
  const auto answer = [&](const Json& request) -> Result<Build> {
    if (request.contains("task")) {
      space.reset();
      TRY_ASSIGN(space, space_from_json(request["task"]));
    }
    TRY_ASSIGN(const Json candidate_json, json_get<Json>(request, "candidate"));
    TRY_ASSIGN(const Candidate candidate, candidate_from_json(candidate_json));
    if (!space.has_value()) return Error("a candidate came before its task");
    return build(*space, candidate);
  };
  return serve([&](const Frame& request) {
    Result<Build> result = answer(request.header);
    if (!result.ok()) result = failed(MeasureError::kUnknown, result.error().message());
    return to_frame(*std::move(result));
  });
}

int run_build_worker() { return serve_builds(build, kMemoryBytes); }

Result<Build> build_from_frame(Frame frame) {
  Build build;
  TRY_ASSIGN(const int error, json_get<int>(frame.header, "error"));
  build.error = static_cast<MeasureError>(error);
  TRY_ASSIGN(build.error_text, json_get<std::string>(frame.header, "error_text"));
  TRY_ASSIGN(build.build_s, json_get<double>(frame.header, "build_s"));
  if (build.error != MeasureError::kNone) return build;
  TRY_ASSIGN(const Json artifact, json_get<Json>(frame.header, "artifact"));
  TRY_ASSIGN(build.artifact, artifact_from_json(artifact, std::move(frame.body)));
  return build;
}

}  // namespace pruner
