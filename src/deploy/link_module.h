// Plan, kernels and the executor -> one library with the interface of pruner/module.h, shared or
// static.
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
/// GPU. Between the steps the objects lie in `folder`. Returns the byte of the file where the
/// plan's weight_bytes, zeros until then, are to be written.
Result<int64_t> link_module(const ModulePlan& plan,
                            const std::vector<std::string_view>& kernels,
                            const TemporaryFolder& folder,
                            const std::string& path);

/// Writes a module as a static library at `path`. Its functions are called NAME_run instead of
/// pruner_module_run (pruner/module.h), so that a program can have several modules. The rest is
/// like link_module().
Result<int64_t> archive_module(const ModulePlan& plan,
                               const std::vector<std::string_view>& kernels,
                               const std::string& name,
                               const std::string& path);
/// Returns the C and C++ header of a static library's functions.
std::string static_header(const std::string& name);

/// Returns the prefix of a static library's functions: its file's name, "mobilenet" for
/// libmobilenet.a, as an identifier. Empty if `path` names no static library.
std::string static_name(const std::string& path);

/// Puts the checksum of pruner/module_file.h behind a module whose bytes are all there.
Result<Unit> add_checksum(const std::string& path);

}  // namespace pruner
