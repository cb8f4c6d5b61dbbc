// Compiled cubins on disk, by a hash of all that they depend on: one file each, written whole or
// not at all.
#pragma once

#include <functional>
#include <string>

#include "support/result.h"

namespace pruner {

/// $XDG_CACHE_HOME/pruner, or ~/.cache/pruner; empty: there is neither, and nothing is cached.
std::string cache_folder();

/// The cubin that `compile` made of this key before, or makes now. A folder that cannot be written
/// is no error. The folder holds at most some 512 MB: the oldest files go first.
Result<std::string> cached_cubin(const std::string& key,
                                 const std::function<Result<std::string>()>& compile);

}  // namespace pruner
