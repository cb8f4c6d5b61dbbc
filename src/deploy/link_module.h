// Plan, kernels and the executor -> one shared library with the interface of pruner/module.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "deploy/plan_text.h"
#include "support/temporary_folder.h"

namespace pruner {

/// Whether this build can link modules for `isa`; the error says what it lacks.
Result<Unit> check_linkable(Isa isa);

/// Links a module at `path`; `kernels` are the objects that define the plan's symbols, none for a
/// GPU. Between the steps the objects lie in `folder`. Gives the byte of the file where the plan's
/// weight_bytes, zeros until then, are to be written.
Result<int64_t> link_module(const ModulePlan& plan,
                            const std::vector<std::string_view>& kernels,
                            const TemporaryFolder& folder,
                            const std::string& path);

/// Puts the checksum of pruner/module_file.h behind a module whose bytes are all there.
Result<Unit> add_checksum(const std::string& path);

}  // namespace pruner
