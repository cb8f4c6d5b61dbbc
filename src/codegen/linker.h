// The linkers that link_shared_library() tries.
#pragma once

#include <string>
#include <vector>

#include "support/result.h"

namespace pruner {

/// Runs lld in this process on a command line (llvm/lld.cpp); its complaints are the error.
Result<Unit> run_lld(const std::vector<std::string>& command);

}  // namespace pruner
