#include "cli/record_files.h"

#include "support/log.h"

namespace pruner {

Result<std::vector<RecordPath>> read_record_paths(const Options& options, const char* command) {
  std::vector<std::string> named = options.files;
  named.insert(named.end(), options.records.begin(), options.records.end());
  if (named.empty())
    return Error(command, ": no file is named; e.g. pruner ", command, " out/records.json");
  return find_record_files(named);
}

Result<std::string> read_out_file(const Options& options,
                                  const char* command,
                                  const char* example) {
  if (!options.out_file.empty()) return options.out_file;
  return Error(command, ": -o is missing; e.g. -o ", example);
}

void warn_of_damage(const StreamSummary& summary) {
  const Damage& damage = summary.damage;
  for (const std::string& name : damage.named) log_warning("{}", name);
  const auto left = damage.lines + damage.files - static_cast<int64_t>(damage.named.size());
  if (left > 0) log_warning("and {} more that are no records", left);
}

Json to_json(const StreamSummary& summary) {
  return {{"files", summary.files},
          {"other_files", summary.other},
          {"records", summary.records},
          {"damaged_lines", summary.damage.lines},
          {"damaged_files", summary.damage.files},
          {"damage", summary.damage.named}};
}

}  // namespace pruner
