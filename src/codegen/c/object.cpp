// The rows of the GPU backends that need no compiler: C as text, and as what a driver compiles.
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
  switch (form) {
    case CodeText::kCuda: return print_source(program, kCudaC, "kernel");
    case CodeText::kOpenCl: return print_source(program, kOpenClC, "kernel");
    case CodeText::kPtx: return compile_to_ptx(print_source(program, kCudaC, "kernel"), target);
    case CodeText::kLlvm:
    case CodeText::kAssembly: break;
  }
  return Error(
      "LLVM IR and assembly are texts of target llvm; of a GPU there is cuda, opencl, ptx");
}

}  // namespace pruner
