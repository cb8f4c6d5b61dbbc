// The inside of a compiler worker: candidates come in, objects go out. A candidate on which the
// compiler crashes, hangs or eats all memory takes only its worker with it.
#pragma once

#include <functional>

#include "codegen/codegen.h"
#include "measure/frame.h"
#include "measure/measure.h"
#include "space/space.h"

namespace pruner {

/// An object, or why there is none.
struct Build {
  MeasureError error = MeasureError::kNone;
  std::string error_text;
  double build_s = 0;  // lowering and compiling
  Artifact artifact;
};

using BuildFunction = std::function<Build(const Space& space, const Candidate& candidate)>;

/// Lowers and compiles.
Build build(const Space& space, const Candidate& candidate);

/// Makes of a CPU's object the shared library that a runner without a linker loads; a failed build,
/// and a GPU's, stays as it is.
Result<Unit> make_portable(Build& build);

/// Serves frames on standard input and output: {"task"?, "candidate"} is answered by {"error",
/// "error_text", "build_s", "artifact"} with the object as body. `memory_bytes`: what it may use.
int serve_builds(const BuildFunction& build, int64_t memory_bytes);

/// {"error", "error_text", "build_s", "artifact"} with the object as body.
Frame to_frame(Build build);
/// The Build in a worker's answer.
Result<Build> build_from_frame(Frame frame);

}  // namespace pruner
