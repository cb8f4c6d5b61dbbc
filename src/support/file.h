// Whole files in and out, with errors that name the path.
#pragma once

#include <string>
#include <string_view>

#include "support/result.h"

namespace pruner {

/// Whether there is a file of this name; folders, pipes and devices are none.
Result<Unit> check_readable(const std::string& path);
Result<std::string> read_file(const std::string& path);
/// Writes to a sibling temporary file and renames it over `path`: a reader sees the old or the new
/// content, never half of it, and a failure leaves the old file as it was.
Result<Unit> write_file(const std::string& path, std::string_view content);
/// Adds to the end of a file; makes it where there is none.
Result<Unit> append_file(const std::string& path, std::string_view content);

}  // namespace pruner
