#include "codegen/cpu_features.h"

#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>

#include <memory>

#include "codegen/llvm/initialize.h"

namespace pruner {

std::string cpu_features(const Target& target) {
  const std::string triple = initialize_llvm(target);
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
