// Program -> Artifact: the code of one program, for a CPU or a GPU. One row a backend in kBackends.
#pragma once

#include <string>
#include <vector>

#include "lower/program.h"

namespace pruner {

/// A compiled program, self-contained: the object refers to no outside symbol.
struct Artifact {
  Backend backend = {};
  std::string object;  // ELF relocatable, position independent; a cubin; the source in OpenCL C
  std::string symbol;  // a PrunerKernel (include/pruner/kernel.h); of a GPU the names' beginning
  int64_t workspace_bytes = 0;
  bool rewrites = false;  // see Program
  struct Argument {
    DType dtype;
    std::vector<int64_t> shape;  // the packed shape, which the kernel sees
    bool output;
    PackSpec pack;
  };
  std::vector<Argument> arguments;

  /// One kernel of a GPU: `blocks` x `threads` in one dimension.
  struct Launch {
    std::string kernel;
    int64_t blocks = 0;
    int64_t threads = 0;
    int64_t shared_bytes = 0;    // shared memory per block
    std::vector<int> arguments;  // numbers of the arguments that the kernel takes, in order
    bool workspace = false;      // whether the kernel takes the workspace after the arguments
    int64_t dynamic_bytes = 0;   // part of shared_bytes that the launch, not the kernel, allocates
    bool early = false;  // whether the kernel may begin before the launches before have ended
    friend bool operator==(const Launch&, const Launch&) = default;
  };
  std::vector<Launch> launches;  // run one after the other; none on a CPU
};

/// Compiles `program` for the target; `symbol` names the entry. Errors: backend not in this build,
/// CPU or GPU unknown to it, CUDA's compiler not on this machine.
Result<Artifact> compile(const Program& program, const Target& target, const std::string& symbol);

/// Forms of code to read: the first three are of a CPU, the others of a GPU.
enum class CodeText : uint8_t { kEmitted, kLlvm, kAssembly, kCuda, kOpenCl, kPtx };
/// Returns the code as text: LLVM IR before or after its passes, or assembly; for a GPU program the
/// C of either dialect, or PTX. The error says which targets have the form.
Result<std::string> compile_to_text(const Program& program, const Target& target, CodeText form);

Json to_json(const Artifact& artifact);  // without the object's bytes
/// `object`: the bytes. Errors: a key that is missing, a dtype that is unknown.
Result<Artifact> artifact_from_json(const Json& json, std::string object);

}  // namespace pruner
