// Assembly text -> object bytes, by LLVM's assembler alone: no code generator is needed.
#include <llvm/MC/MCAsmBackend.h>
#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCCodeEmitter.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCObjectFileInfo.h>
#include <llvm/MC/MCObjectWriter.h>
#include <llvm/MC/MCParser/MCAsmParser.h>
#include <llvm/MC/MCParser/MCTargetAsmParser.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCStreamer.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/TargetParser/Host.h>

#include <algorithm>

#include "codegen/llvm/initialize.h"
#include "codegen/loader.h"

namespace pruner {

Result<std::string> assemble(const std::string& text, const Target& target) {
  const std::string triple = initialize_llvm(target);
  std::string problems;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, problems);
  if (found == nullptr) return Error("LLVM: ", problems);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(text, "text"), llvm::SMLoc());
  sources.setDiagHandler(
      [](const llvm::SMDiagnostic& diagnostic, void* problems) {
        llvm::raw_string_ostream out(*static_cast<std::string*>(problems));
        diagnostic.print(nullptr, out, /*ShowColors=*/false);
        out << "; ";
      },
      &problems);
  const llvm::MCTargetOptions options;
  const std::unique_ptr<llvm::MCRegisterInfo> registers(found->createMCRegInfo(triple));
  const std::unique_ptr<llvm::MCAsmInfo> syntax(
      found->createMCAsmInfo(*registers, triple, options));
  const std::unique_ptr<llvm::MCInstrInfo> instructions(found->createMCInstrInfo());
  const std::string cpu = target.mcpu.empty() ? llvm::sys::getHostCPUName().str() : target.mcpu;
  const std::unique_ptr<llvm::MCSubtargetInfo> subtarget(
      found->createMCSubtargetInfo(triple, cpu, target.features));
  llvm::MCContext context(
      llvm::Triple(triple), syntax.get(), registers.get(), subtarget.get(), &sources, &options);
  const std::unique_ptr<llvm::MCObjectFileInfo> sections(
      found->createMCObjectFileInfo(context, /*PIC=*/true));
  context.setObjectFileInfo(sections.get());

  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream out(bytes);
  std::unique_ptr<llvm::MCAsmBackend> backend(
      found->createMCAsmBackend(*subtarget, *registers, options));
  std::unique_ptr<llvm::MCObjectWriter> writer = backend->createObjectWriter(out);
  std::unique_ptr<llvm::MCCodeEmitter> emitter(found->createMCCodeEmitter(*instructions, context));
  const std::unique_ptr<llvm::MCStreamer> streamer(
      found->createMCObjectStreamer(context.getTargetTriple(),
                                    context,
                                    std::move(backend),
                                    std::move(writer),
                                    std::move(emitter),
                                    *subtarget));
  const std::unique_ptr<llvm::MCAsmParser> parser(
      llvm::createMCAsmParser(sources, context, *streamer, *syntax));
  const std::unique_ptr<llvm::MCTargetAsmParser> target_parser(
      found->createMCAsmParser(*subtarget, *parser, *instructions, options));
  parser->setTargetParser(*target_parser);
  const bool failed = parser->Run(/*NoInitialTextSection=*/false);
  std::replace(problems.begin(), problems.end(), '\n', ' ');
  if (failed || !problems.empty()) return Error("assembler: ", problems);
  return std::string(bytes);
}

}  // namespace pruner
