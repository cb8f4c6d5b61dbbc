#include "codegen/llvm/initialize.h"

#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>

#include <mutex>

namespace pruner {

// Other instruction sets than this machine's wait until one of them is asked for.
std::string initialize_llvm(const Target& target) {
  static std::once_flag native, all;
  std::call_once(native, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  });
  if (target.isa == kHostIsa) return llvm::sys::getProcessTriple();
  std::call_once(all, [] {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmPrinters();
    llvm::InitializeAllAsmParsers();
  });
  return triple_of(target.isa);
}

}  // namespace pruner
