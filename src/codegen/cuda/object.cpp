#include "codegen/backend.h"
#include "codegen/c/source.h"
#include "codegen/cuda/nvrtc.h"

#include "lower/rewrite.h"

namespace pruner {
namespace {

// The compute capabilities that a statement needs, and a name of the need for messages.
struct Need {
  int oldest = 0, newest = MmaInstruction::kNoCapability;
  std::string name;

  bool is_of_one() const { return oldest == newest; }
};

Need need_of(const MmaInstruction& row) {
  const char* kind = row.of_group() ? "wgmma." : "mma.";
  return {row.oldest, row.newest, kind + std::string(row.shape)};
}

Need need_of(const StmtNode& s) {
  if (const Mma* mma = std::get_if<Mma>(&s.op)) return need_of(*mma->instruction);
  if (const GroupMma* mma = std::get_if<GroupMma>(&s.op)) return need_of(*mma->instruction);
  if (std::holds_alternative<LoadMatrix>(s.op))
    return {.oldest = kFirstWithLoadMatrix, .name = "ldmatrix"};
  if (std::holds_alternative<GridWait>(s.op))
    return {.oldest = kFirstWithEarlyLaunch, .name = "griddepcontrol"};
  if (std::holds_alternative<AsyncCopy>(s.op))
    return {.oldest = kFirstWithAsyncCopy, .name = "cp.async"};
  return {};
}

// Whether a program has instructions of one architecture alone, for which NVRTC has a name of its
// own: "sm_90a".
Result<bool> is_of_one_arch(const Program& program, const std::string& arch) {
  const int capability = compute_capability(arch);
  Need missing;
  bool of_one = false;
  walk(program.body, [&](const StmtNode& s) {
    const Need need = need_of(s);
    of_one |= need.is_of_one();
    if (capability < need.oldest || capability > need.newest) missing = need;
  });
  if (missing.name.empty()) return of_one;
  return Error(arch,
               " has no ",
               missing.name,
               missing.is_of_one() ? ", which only sm_" : ", which is there from sm_",
               missing.oldest,
               missing.is_of_one() ? " has" : " on");
}

}  // namespace

Result<Target> target_of(const Program& program, const Target& target) {
  TRY_ASSIGN(const std::string arch, cuda_arch(target));
  TRY_ASSIGN(const bool of_one_arch, is_of_one_arch(program, arch));
  return of_one_arch ? with_instructions_of_its_own(target) : target;
}

Result<std::string> cuda_object(const Program& program,
                                const Target& target,
                                const std::string& symbol) {
  TRY_ASSIGN(const Target exact, target_of(program, target));
  return compile_to_cubin(print_source(program, kCudaC, symbol), exact);
}

}  // namespace pruner
