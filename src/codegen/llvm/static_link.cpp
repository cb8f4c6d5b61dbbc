// Stand-ins for parts of LLVM in a static build (PRUNER_STATIC): lld's link-time optimizer, and the
// instruction sets that lld registers and nobody asks for. Without these stand-ins, the names would
// come out of LLVM's archives, with 50 MB behind them if the build makes no code (PRUNER_LLVM=OFF).
// A stand-in for an instruction set does nothing, and a file of bitcode is an error.
#include <llvm/LTO/LTO.h>
#include <sys/random.h>

#include <cstdint>
#include <memory>
#include <vector>

// LLVM's own functions stay: those of both instruction sets if there is a code generator, else the
// assembler's parts of this machine's instruction set.
#if PRUNER_LLVM || defined(__aarch64__)
#define LLVMInitializeAArch64TargetInfo pruner_no_arm_target_info
#define LLVMInitializeAArch64TargetMC pruner_no_arm_target_mc
#define LLVMInitializeAArch64AsmParser pruner_no_arm_asm_parser
#endif
#if PRUNER_LLVM || defined(__x86_64__)
#define LLVMInitializeX86TargetInfo pruner_no_x86_target_info
#define LLVMInitializeX86TargetMC pruner_no_x86_target_mc
#define LLVMInitializeX86AsmParser pruner_no_x86_asm_parser
#endif
#if PRUNER_LLVM
#define LLVMInitializeAArch64Target pruner_no_arm_target
#define LLVMInitializeAArch64AsmPrinter pruner_no_arm_asm_printer
#define LLVMInitializeX86Target pruner_no_x86_target
#define LLVMInitializeX86AsmPrinter pruner_no_x86_asm_printer
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

// Debian's LLVM asks glibc 2.36 for arc4random(); with this definition a program runs on 2.35 too
// (Ubuntu 22.04).
uint32_t arc4random() {
  uint32_t value = 0;
  return getrandom(&value, sizeof(value), 0) == sizeof(value) ? value : 0;
}

}  // extern "C"

namespace llvm::lto {

Expected<std::unique_ptr<InputFile>> InputFile::create(MemoryBufferRef) {
  return createStringError(inconvertibleErrorCode(), "this build links no bitcode");
}
InputFile::~InputFile() = default;
StringRef InputFile::getName() const { return ""; }
SmallVector<const char*> LTO::getRuntimeLibcallSymbols(const Triple&) { return {}; }

}  // namespace llvm::lto

// lld 19 makes a BitcodeCompiler and asks it for objects; the class is declared as in
// lld/ELF/LTO.h, which is not installed.
namespace lld::elf {

class InputFile;
class BitcodeFile;
class BitcodeCompiler {
 public:
  BitcodeCompiler();
  ~BitcodeCompiler();
  void add(BitcodeFile& file);
  std::vector<InputFile*> compile();
};

BitcodeCompiler::BitcodeCompiler() = default;
BitcodeCompiler::~BitcodeCompiler() = default;
void BitcodeCompiler::add(BitcodeFile&) {}
std::vector<InputFile*> BitcodeCompiler::compile() { return {}; }

}  // namespace lld::elf
