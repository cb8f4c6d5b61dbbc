#include "lower/passes.h"

namespace pruner {

Result<Program> run_lower_passes(Program program, bool gpu, const AfterLowerPass& after) {
  const auto made = [&](std::string_view name) -> Result<Unit> {
    if (after) after(name, program);
#ifndef NDEBUG
    const Result<Unit> sound = verify(program);
    if (!sound.ok()) return Error("after ", name, ": ", sound.error().message());
#endif
    return Unit{};
  };
  TRY(made("loops"));
  for (const LowerPass& pass : kLowerPasses) {
    if (!(gpu ? pass.gpu : pass.cpu)) continue;
    program = pass.run(std::move(program));
    TRY(made(pass.name));
  }
  return program;
}

}  // namespace pruner
