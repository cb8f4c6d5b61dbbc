// How code is made for a backend (target/backend.h): what compile() chooses from.
#pragma once

#include "codegen/codegen.h"

namespace pruner {

/// How a backend compiles a program that passes verify() and is of its kind (CPU or GPU).
struct CodeRow {
  Backend backend;
  /// Artifact::object, in which the entry, or the beginning of the kernels' names, is `symbol`.
  Result<std::string> (*object)(const Program&, const Target&, const std::string& symbol);
  /// The text of one of the backend's own forms.
  Result<std::string> (*text)(const Program&, const Target&, CodeText form);
  int64_t most_declared = 0;  // bytes of shared memory that a kernel may declare (plan_launches())
};

// llvm/object.cpp.
Result<std::string> llvm_object(const Program& program,
                                const Target& target,
                                const std::string& symbol);
Result<std::string> llvm_text(const Program& program, const Target& target, CodeText form);

// c/object.cpp and cuda/object.cpp.
Result<std::string> opencl_object(const Program& program,
                                  const Target& target,
                                  const std::string& symbol);
Result<std::string> cuda_object(const Program& program,
                                const Target& target,
                                const std::string& symbol);
Result<std::string> gpu_text(const Program& program, const Target& target, CodeText form);
/// Returns the target as CUDA C of a program has to be compiled for: "sm_90a" in place of "sm_90"
/// if the program has instructions that no other architecture has. Errors: an instruction that the
/// target lacks, and cuda_arch()'s.
Result<Target> target_of(const Program& program, const Target& target);

}  // namespace pruner
