// LLVM modules -> object bytes: the CPU's description and the list of passes.
#pragma once

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>

#include "support/result.h"
#include "target/target.h"

namespace pruner {

/// The machine of `target` (no mcpu: this host); the error names an unknown CPU.
Result<std::unique_ptr<llvm::TargetMachine>> make_machine(const Target& target);

/// Cleans the functions of `module` by a short list of passes.
void optimize(llvm::Module& module, llvm::TargetMachine& machine);

/// Machine code: an ELF object, or assembly.
Result<std::string> emit(llvm::Module& module,
                         llvm::TargetMachine& machine,
                         llvm::CodeGenFileType form);

}  // namespace pruner
