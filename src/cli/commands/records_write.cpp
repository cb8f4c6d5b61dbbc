// pruner records merge, split, convert: record files to others.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/record_files.h"
#include "cli/source.h"
#include "record/convert_records.h"
#include "record/merge_records.h"
#include "record/split_records.h"

namespace pruner {

Result<int> run_records_merge(const Options& options) {
  TRY_ASSIGN(const std::vector<RecordPath> files, read_record_paths(options, "records merge"));
  TRY_ASSIGN(const std::string path, read_out_file(options, "records merge", "all.json.gz"));
  const std::optional<RecordOrder> order =
      parse_record_order(options.order.empty() ? "time" : options.order);
  if (!order) return Error("--order: \"", options.order, "\" is not time, task or given");
  TRY_ASSIGN(const MergeSummary merged, merge_records(files, *order, path, job_count(options)));
  if (options.json) {
    fmt::print("{}\n",
               print_json({{"file", path},
                           {"written", merged.written},
                           {"duplicates", merged.duplicates},
                           {"read", to_json(merged.summary)}}));
    return done_reading(merged.summary, files);
  }
  fmt::print("{} records of {} files, without {} copies: {}\n",
             merged.written,
             merged.summary.files,
             merged.duplicates,
             path);
  return done_reading(merged.summary, files);
}

Result<int> run_records_split(const Options& options) {
  TRY_ASSIGN(const std::vector<RecordPath> files, read_record_paths(options, "records split"));
  TRY_ASSIGN(const std::string folder, read_out_file(options, "records split", "tasks/"));
  const std::optional<SplitBy> by = parse_split_by(options.by.empty() ? "task" : options.by);
  if (!by) return Error("--by: \"", options.by, "\" is not task, target or share");
  if (!(options.train_ratio >= 0 && options.train_ratio <= 1))
    return Error("--train-ratio: ", options.train_ratio, " is not between 0 and 1");
  const RecordSplitOptions split{*by, options.train_ratio, static_cast<uint64_t>(options.seed)};
  TRY_ASSIGN(const SplitSummary parts, split_records(files, split, folder, job_count(options)));
  if (options.json) {
    fmt::print(
        "{}\n",
        print_json({{"folder", folder}, {"files", parts.files}, {"read", to_json(parts.summary)}}));
    return done_reading(parts.summary, files);
  }
  for (const auto& [name, records] : parts.files) fmt::print("| {:>7} | {}\n", records, name);
  fmt::print("{} records in {} files: {}\n", parts.summary.records, parts.files.size(), folder);
  return done_reading(parts.summary, files);
}

Result<int> run_records_convert(const Options& options) {
  TRY_ASSIGN(const std::vector<RecordPath> files, read_record_paths(options, "records convert"));
  TRY_ASSIGN(const std::string path, read_out_file(options, "records convert", "v06.json"));
  TRY_ASSIGN(const ConvertSummary made,
             convert_records(files, {.strict = options.strict}, path, job_count(options)));
  if (options.json) {
    Json left_out = Json::array();
    for (const auto& [reason, entry] : made.left_out)
      left_out.push_back({{"reason", reason}, {"records", entry.records}, {"first", entry.first}});
    fmt::print("{}\n",
               print_json({{"file", path},
                           {"written", made.written},
                           {"versions", made.versions},
                           {"assumed_hardware", made.assumed_hardware},
                           {"left_out", left_out},
                           {"read", to_json(made.summary)}}));
    return done_reading(made.summary, files);
  }
  for (const auto& [version, records] : made.versions)
    fmt::print("| {:>7} | were {}\n", records, version);
  for (const auto& [reason, entry] : made.left_out)
    fmt::print("| {:>7} | left out: {} (first: {})\n", entry.records, reason, entry.first);
  if (made.assumed_hardware > 0)
    fmt::print("| {:>7} | name no hardware: the usual of their target\n", made.assumed_hardware);
  fmt::print("{} records of v0.6: {}\n", made.written, path);
  return done_reading(made.summary, files);
}

}  // namespace pruner
