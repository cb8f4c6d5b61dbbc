#include "codegen/cpu_features.h"

#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>

#include <memory>

namespace pruner {

std::string cpu_features(const Target& target) {
  llvm::InitializeNativeTarget();
  const std::string triple = llvm::sys::getDefaultTargetTriple();
  std::string error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (found == nullptr) return "";
  const std::unique_ptr<llvm::MCSubtargetInfo> subtarget(
      found->createMCSubtargetInfo(triple, target.mcpu, target.features));
  std::string features;
  for (const llvm::SubtargetFeatureKV& feature : subtarget->getEnabledProcessorFeatures()) {
    features += (features.empty() ? "" : " ") + std::string(feature.Key);
  }
  return features;
}

}  // namespace pruner
