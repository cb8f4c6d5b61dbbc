// The GPU backends' C: as text, and as what an OpenCL driver compiles.
#include "codegen/backend.h"
#include "codegen/c/source.h"
#include "codegen/cuda/nvrtc.h"

namespace pruner {

Result<std::string> opencl_object(const Program& program,
                                  const Target&,
                                  const std::string& symbol) {
  return print_source(program, kOpenClC, symbol);
}

Result<std::string> gpu_text(const Program& program, const Target& target, CodeText form) {
  const std::string source =
      print_source(program, form == CodeText::kOpenCl ? kOpenClC : kCudaC, "kernel");
  return form == CodeText::kPtx ? compile_to_ptx(source, target) : source;
}

}  // namespace pruner
