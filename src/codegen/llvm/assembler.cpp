// Assembly text -> object bytes, as the inline assembly of an otherwise empty module.
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/MC/TargetRegistry.h>

#include <algorithm>

#include "codegen/llvm/object.h"
#include "codegen/loader.h"

namespace pruner {

Result<std::string> assemble(const std::string& text, const Target& target) {
  TRY_ASSIGN(const auto machine, make_machine(target));
  llvm::LLVMContext context;
  std::string problems;
  context.setDiagnosticHandlerCallBack(
      [](const llvm::DiagnosticInfo* info, void* problems) {
        llvm::raw_string_ostream out(*static_cast<std::string*>(problems));
        llvm::DiagnosticPrinterRawOStream printer(out);
        info->print(printer);
        out << "; ";
      },
      &problems);
  llvm::Module module("assembly", context);
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(machine->getTargetTriple().str());
  module.setModuleInlineAsm(text);
  Result<std::string> object = emit(module, *machine, llvm::CodeGenFileType::ObjectFile);
  std::replace(problems.begin(), problems.end(), '\n', ' ');
  if (!problems.empty()) return Error("assembler: ", problems);
  return object;
}

}  // namespace pruner
