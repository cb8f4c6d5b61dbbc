#include "codegen/llvm/initialize.h"

#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>

#include <mutex>

namespace pruner {

// Another instruction set than this machine's waits until it is asked for.
std::string initialize_llvm(const Target& target) {
  static std::once_flag native, other;
  std::call_once(native, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  });
  if (target.isa == kHostIsa) return llvm::sys::getProcessTriple();
  std::call_once(other, [] {
#if defined(__x86_64__)
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeAArch64AsmParser();
#else
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
#endif
  });
  return triple_of(target.isa);
}

}  // namespace pruner
