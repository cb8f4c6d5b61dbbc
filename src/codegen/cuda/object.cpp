#include "codegen/backend.h"
#include "codegen/c/source.h"
#include "codegen/cuda/nvrtc.h"

namespace pruner {

Result<std::string> cuda_object(const Program& program,
                                const Target& target,
                                const std::string& symbol) {
  return compile_to_cubin(print_source(program, kCudaC, symbol), target);
}

}  // namespace pruner
