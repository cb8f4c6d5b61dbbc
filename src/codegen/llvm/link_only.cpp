// What takes the place of most of LLVM in a build that links and assembles with it but makes no
// code (PRUNER_LLVM=OFF, PRUNER_LLD=ON): lld's link-time optimizer and the code generators that lld
// registers for it. Were these names not here, they would come out of LLVM's archives with 50 MB
// behind them. What lld registers does nothing; it is given no bitcode, so the rest is never
// called.
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

// The assembler's parts of this machine's instruction set are the real ones.
#if defined(__aarch64__)
#define LLVMInitializeAArch64TargetInfo pruner_no_target_info
#define LLVMInitializeAArch64TargetMC pruner_no_target_mc
#define LLVMInitializeAArch64AsmParser pruner_no_asm_parser
#else
#define LLVMInitializeX86TargetInfo pruner_no_target_info
#define LLVMInitializeX86TargetMC pruner_no_target_mc
#define LLVMInitializeX86AsmParser pruner_no_asm_parser
#endif

extern "C" {

#define LLVM_TARGET(name)                    \
  void LLVMInitialize##name##Target() {}     \
  void LLVMInitialize##name##TargetInfo() {} \
  void LLVMInitialize##name##TargetMC() {}
#include <llvm/Config/Targets.def>

#define LLVM_ASM_PRINTER(name) \
  void LLVMInitialize##name##AsmPrinter() {}
#include <llvm/Config/AsmPrinters.def>

#define LLVM_ASM_PARSER(name) \
  void LLVMInitialize##name##AsmParser() {}
#include <llvm/Config/AsmParsers.def>

// lld's headers of these classes are not installed, so the functions stand here as the linker names
// them; lld of another version than 19 would ask for others, and linking would say so.
#define NEVER_CALLED(symbol) \
  void symbol() { std::abort(); }
NEVER_CALLED(_ZN3lld3elf15BitcodeCompilerC1Ev)
NEVER_CALLED(_ZN3lld3elf15BitcodeCompilerD1Ev)
NEVER_CALLED(_ZN3lld3elf15BitcodeCompiler3addERNS0_11BitcodeFileE)
NEVER_CALLED(_ZN3lld3elf15BitcodeCompiler7compileEv)
NEVER_CALLED(_ZN4llvm3lto3LTO24getRuntimeLibcallSymbolsERKNS_6TripleE)
NEVER_CALLED(_ZN4llvm3lto9InputFile6createENS_15MemoryBufferRefE)
NEVER_CALLED(_ZN4llvm3lto9InputFileD1Ev)
NEVER_CALLED(_ZNK4llvm3lto9InputFile7getNameEv)

// What Debian's LLVM asks glibc 2.36 for; with it a program runs on 2.35 too (Ubuntu 22.04).
uint32_t arc4random() {
  uint32_t value = 0;
  return getrandom(&value, sizeof(value), 0) == sizeof(value) ? value : 0;
}

}  // extern "C"
