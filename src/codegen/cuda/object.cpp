#include "codegen/backend.h"
#include "codegen/c/source.h"
#include "codegen/cuda/nvrtc.h"

#include "lower/rewrite.h"

namespace pruner {

// Returns the compute capability that a statement needs, and a name of the need for messages.
static std::pair<int, std::string> needs(const StmtNode& s) {
  if (const Mma* mma = std::get_if<Mma>(&s.op))
    return {mma->instruction->oldest, "mma." + std::string(mma->instruction->shape)};
  if (std::holds_alternative<LoadMatrix>(s.op)) return {kFirstWithLoadMatrix, "ldmatrix"};
  const bool copies = std::holds_alternative<AsyncCopy>(s.op);
  return {copies ? kFirstWithAsyncCopy : 0, "cp.async"};
}

static Result<Unit> has_instructions(const Program& program, const std::string& arch) {
  const int capability = compute_capability(arch);
  std::pair<int, std::string> missing;
  walk(program.body, [&](const StmtNode& s) {
    const std::pair<int, std::string> needed = needs(s);
    if (needed.first > capability) missing = needed;
  });
  if (missing.second.empty()) return Unit{};
  return Error(arch, " has no ", missing.second, ", which is there from sm_", missing.first, " on");
}

Result<std::string> cuda_object(const Program& program,
                                const Target& target,
                                const std::string& symbol) {
  TRY_ASSIGN(const std::string arch, cuda_arch(target));
  TRY(has_instructions(program, arch));
  return compile_to_cubin(print_source(program, kCudaC, symbol), target);
}

}  // namespace pruner
