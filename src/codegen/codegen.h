// Program -> Artifact: machine code for one kernel. One row a backend in kBackends.
#pragma once

#include <string>
#include <vector>

#include "lower/program.h"

namespace pruner {

/// A compiled kernel, self-contained: the object refers to no outside symbol.
struct Artifact {
  std::string object;  // ELF relocatable, position independent
  std::string symbol;  // a PrunerKernel (include/pruner/kernel.h)
  int64_t workspace_bytes = 0;
  bool rewrites = false;  // see Program
  struct Argument {
    DType dtype;
    std::vector<int64_t> shape;  // as the kernel sees it: packed
    bool output;
    PackSpec pack;
  };
  std::vector<Argument> arguments;
};

/// Compiles `program` for target's CPU; `symbol` names the entry. Errors: backend not in this
/// build, CPU unknown to it.
Result<Artifact> compile(const Program& program, const Target& target, const std::string& symbol);

enum class CodeText : uint8_t { kLlvm, kAssembly };
/// The code as text: LLVM IR after the passes, or assembly.
Result<std::string> compile_to_text(const Program& program, const Target& target, CodeText form);

Json to_json(const Artifact& artifact);  // without the object's bytes
Result<Artifact> artifact_from_json(const Json& json, std::string object);

}  // namespace pruner
