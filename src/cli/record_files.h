// The record files that a command line names, and what is said of those that are damaged.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"
#include "record/record_stream.h"

namespace pruner {

/// What the positional arguments and --records name; an error when nothing is.
Result<std::vector<RecordPath>> read_record_paths(const Options& options, const char* command);

/// -o, which the command cannot do without.
Result<std::string> read_out_file(const Options& options, const char* command, const char* example);

/// Names on standard error what is no record.
void warn_of_damage(const StreamSummary& summary);

/// {"files","other_files","records","damaged_lines","damaged_files","damage":[...]}
Json to_json(const StreamSummary& summary);

}  // namespace pruner
