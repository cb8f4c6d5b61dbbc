// pruner records merge, split, convert: record files to others.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/record_files.h"
#include "record/convert_records.h"
#include "record/merge_records.h"
#include "record/split_records.h"

namespace pruner {

namespace {

struct Merge {
  RecordFileOptions records;
  std::string order_name = "time", out_file;

  void add_to(CLI::App& app) {
    records.add_to(app);
    add_option(app, "--order NAME", order_name)
        .help("time, task (its fastest first), or given: as the files are", "time");
    add_out_file(app,
                 out_file,
                 "the record file to write; packed where it ends in .gz",
                 {FileKind::kJson, FileKind::kPacked});
  }

  Result<int> run(const Invocation& call) const {
    TRY_ASSIGN(const std::vector<RecordPath> files, records.find("records merge"));
    TRY_ASSIGN(const std::string path, read_out_file(out_file, "records merge", "all.json.gz"));
    const std::optional<RecordOrder> order = parse_record_order(order_name);
    if (!order) return Error("--order: \"", order_name, "\" is not time, task or given");
    TRY_ASSIGN(const MergeSummary merged, merge_records(files, *order, path, records.jobs));
    call.show({{"file", path},
               {"written", merged.written},
               {"duplicates", merged.duplicates},
               {"read", to_json(merged.summary)}},
              fmt::format("{} records of {} files, without {} copies: {}\n",
                          merged.written,
                          merged.summary.files,
                          merged.duplicates,
                          path));
    return done_reading(merged.summary, files);
  }
};

struct Split {
  RecordFileOptions records;
  std::string by_name = "task", out_file;
  double train_ratio = 0.9;
  uint64_t seed = 0;

  void add_to(CLI::App& app) {
    records.add_to(app);
    add_option(app, "--by NAME", by_name)
        .help("task, target, or share: train.json and test.json", "task");
    add_option(app, "--train-ratio SHARE", train_ratio)
        .help("share of the programs in train.json", "0.9");
    add_seed(app, seed);
    begin_group(app, OptionGroup::kFiles);
    add_option(app, "-o,--out-file DIR", out_file).help("the folder to write the files into");
  }

  Result<int> run(const Invocation& call) const {
    TRY_ASSIGN(const std::vector<RecordPath> files, records.find("records split"));
    TRY_ASSIGN(const std::string folder, read_out_file(out_file, "records split", "tasks/"));
    const std::optional<SplitBy> by = parse_split_by(by_name);
    if (!by) return Error("--by: \"", by_name, "\" is not task, target or share");
    if (!(train_ratio >= 0 && train_ratio <= 1))
      return Error("--train-ratio: ", train_ratio, " is not between 0 and 1");
    const RecordSplitOptions split{*by, train_ratio, seed};
    TRY_ASSIGN(const SplitSummary parts, split_records(files, split, folder, records.jobs));
    if (call.json) {
      fmt::print(
          "{}\n",
          print_json(
              {{"folder", folder}, {"files", parts.files}, {"read", to_json(parts.summary)}}));
      return done_reading(parts.summary, files);
    }
    for (const auto& [name, records] : parts.files) fmt::print("| {:>7} | {}\n", records, name);
    fmt::print("{} records in {} files: {}\n", parts.summary.records, parts.files.size(), folder);
    return done_reading(parts.summary, files);
  }
};

struct Convert {
  RecordFileOptions records;
  bool strict = false;
  std::string out_file;

  void add_to(CLI::App& app) {
    records.add_to(app);
    add_option(app, "--strict", strict)
        .help("as TVM reads them, without what only this program knows");
    add_out_file(app,
                 out_file,
                 "the record file to write; packed where it ends in .gz",
                 {FileKind::kJson, FileKind::kPacked});
  }

  Result<int> run(const Invocation& call) const {
    TRY_ASSIGN(const std::vector<RecordPath> files, records.find("records convert"));
    TRY_ASSIGN(const std::string path, read_out_file(out_file, "records convert", "v06.json"));
    TRY_ASSIGN(const ConvertSummary made,
               convert_records(files, {.strict = strict}, path, records.jobs));
    if (call.json) {
      Json left_out = Json::array();
      for (const auto& [reason, entry] : made.left_out)
        left_out.push_back(
            {{"reason", reason}, {"records", entry.records}, {"first", entry.first}});
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
};

}  // namespace

RunCommand make_records_merge(CLI::App& app) { return make_command<Merge>(app); }
RunCommand make_records_split(CLI::App& app) { return make_command<Split>(app); }
RunCommand make_records_convert(CLI::App& app) { return make_command<Convert>(app); }

}  // namespace pruner
