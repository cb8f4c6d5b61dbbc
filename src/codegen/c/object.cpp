// The GPU backends' C: as text, and as what an OpenCL driver compiles.
#include "codegen/backend.h"
#include "codegen/c/source.h"
#include "codegen/cuda/nvrtc.h"

#include "lower/warp_rules.h"

namespace pruner {

static Result<std::string> opencl_source(const Program& program, const std::string& symbol) {
  if (!has_warp_statements(program)) return print_source(program, kOpenClC, symbol);
  return Error("program ", program.name, " has statements of warps, for which OpenCL has no words");
}

Result<std::string> opencl_object(const Program& program,
                                  const Target&,
                                  const std::string& symbol) {
  return opencl_source(program, symbol);
}

Result<std::string> gpu_text(const Program& program, const Target& target, CodeText form) {
  if (form == CodeText::kOpenCl) return opencl_source(program, "kernel");
  const std::string source = print_source(program, kCudaC, "kernel");
  if (form != CodeText::kPtx) return source;
  TRY_ASSIGN(const Target exact, target_of(program, target));
  return compile_to_ptx(source, exact);
}

}  // namespace pruner
