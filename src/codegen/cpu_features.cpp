#include "codegen/cpu_features.h"

namespace pruner {

#if !PRUNER_LLVM
std::string cpu_features(const Target&) { return ""; }
#endif

}  // namespace pruner
