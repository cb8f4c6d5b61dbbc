// A kernel's module, its passes and its code.
#include "codegen/llvm/object.h"

#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include "codegen/backend.h"
#include "codegen/llvm/emitter.h"
#include "codegen/llvm/expand_calls.h"
#include "codegen/llvm/initialize.h"
#include "support/check.h"

namespace pruner {
namespace {

// The module of one kernel.
struct Compilation {
  llvm::LLVMContext context;
  llvm::Module module{"kernel", context};
  std::unique_ptr<llvm::TargetMachine> machine;
};

Result<std::unique_ptr<Compilation>> emit_module(const Program& program,
                                                 const Target& target,
                                                 const std::string& symbol) {
  auto c = std::make_unique<Compilation>();
  TRY_ASSIGN(c->machine, make_machine(target));
  c->module.setDataLayout(c->machine->createDataLayout());
  c->module.setTargetTriple(c->machine->getTargetTriple().str());
  const auto has = [&](const char* features) {
    return c->machine->getMCSubtargetInfo()->checkFeatures(features);
  };
  const bool arm = target.isa == Isa::kArm;
  const CpuInstructions instructions = {.bfloat16 = has(arm ? "+bf16" : "+avx512bf16,+avx512vl"),
                                        .avx512 = !arm && has("+avx512f"),
                                        .fma = arm || has("+fma")};
  emit_kernel(program, c->module, symbol, instructions);
  if (!arm) expand_calls(c->module, {.roundings = has("+sse4.1"), .halves = has("+f16c")});
#ifndef NDEBUG
  std::string problem;
  llvm::raw_string_ostream out(problem);
  CHECK(!llvm::verifyModule(c->module, &out)) << problem;
#endif
  return c;
}

}  // namespace

Result<std::unique_ptr<llvm::TargetMachine>> make_machine(const Target& target) {
  const std::string triple = initialize_llvm(target);
  std::string error;
  const llvm::Target* llvm_target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!llvm_target) return Error("LLVM: ", error);
  const std::unique_ptr<llvm::MCSubtargetInfo> known(
      llvm_target->createMCSubtargetInfo(triple, "", ""));
  if (!target.mcpu.empty() && !known->isCPUStringValid(target.mcpu)) {
    return Error("LLVM knows no CPU \"", target.mcpu, "\" of ", triple);
  }
  // Without a CPU's name: this host's, with the features that it has, not those of its family.
  std::string cpu = target.mcpu, features = target.features;
  if (cpu.empty()) {
    cpu = llvm::sys::getHostCPUName();
    for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
      if (feature.second) features += (features.empty() ? "+" : ",+") + feature.first().str();
    }
  }
  std::unique_ptr<llvm::TargetMachine> machine(
      // Position independent and small: a kernel's code and constants lie within 2 GB.
      llvm_target->createTargetMachine(triple,
                                       cpu,
                                       features,
                                       llvm::TargetOptions(),
                                       llvm::Reloc::PIC_,
                                       llvm::CodeModel::Small,
                                       llvm::CodeGenOptLevel::Default));
  if (!machine) return Error("LLVM makes no code for ", triple);
  return machine;
}

void optimize(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);

  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()),
                                                       /*UseMemorySSA=*/true));
  passes.addPass(llvm::SimplifyCFGPass());
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) passes.run(function, functions);
  }
}

Result<std::string> emit(llvm::Module& module,
                         llvm::TargetMachine& machine,
                         llvm::CodeGenFileType form) {
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, out, nullptr, form)) {
    return Error("LLVM emits no object files for this target");
  }
  passes.run(module);
  return std::string(bytes);
}

Result<std::string> llvm_object(const Program& program,
                                const Target& target,
                                const std::string& symbol) {
  TRY_ASSIGN(const auto c, emit_module(program, target, symbol));
  optimize(c->module, *c->machine);
  return emit(c->module, *c->machine, llvm::CodeGenFileType::ObjectFile);
}

Result<std::string> llvm_text(const Program& program, const Target& target, CodeText form) {
  TRY_ASSIGN(const auto c, emit_module(program, target, "kernel"));
  if (form != CodeText::kEmitted) optimize(c->module, *c->machine);
  if (form == CodeText::kAssembly)
    return emit(c->module, *c->machine, llvm::CodeGenFileType::AssemblyFile);
  std::string text;
  llvm::raw_string_ostream out(text);
  c->module.print(out, nullptr);
  return text;
}

}  // namespace pruner
