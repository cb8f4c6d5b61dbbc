#include "cli/record_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "support/log.h"

namespace pruner {

void RecordFileOptions::add_to(CLI::App& app) {
  begin_group(app, OptionGroup::kFiles);
  add_option(app, "RECORDS", files).help("record files, packed or not; patterns, folders");
  add_option(app, "--records,--logs,--log-file FILES", records).help("the same, by name");
  add_jobs(app, jobs);
}

Result<std::vector<RecordPath>> RecordFileOptions::find(const char* command) const {
  std::vector<std::string> named = files;
  named.insert(named.end(), records.begin(), records.end());
  return read_record_paths(named, command);
}

Result<std::vector<RecordPath>> read_record_paths(const std::vector<std::string>& named,
                                                  const char* command) {
  if (named.empty())
    return Error(command, ": no file is named; e.g. pruner ", command, " out/records.json");
  return find_record_files(named);
}

Result<std::string> read_out_file(const std::string& out_file,
                                  const char* command,
                                  const char* example) {
  if (!out_file.empty()) return out_file;
  return Error(command, ": -o is missing; e.g. -o ", example);
}

Error ends_early(const std::string& path) {
  return Error(fmt::format(
      "{0}: {1}; `pruner records merge {0} -o NEW.json` writes what comes before to another file",
      path,
      kEndsEarly));
}

// The first few by name, the rest by their number.
static void warn_of_damage(const Damage& damage) {
  for (const std::string& name : damage.named) log_warning("{}", name);
  const auto left = damage.lines + damage.files - static_cast<int64_t>(damage.named.size());
  if (left > 0) log_warning("and {} more that are no records", left);
}

static Error no_records(std::span<const RecordPath> files, const StreamSummary& summary) {
  const std::string first = files.empty() ? "" : files.front().path;
  const std::string others =
      files.size() > 1 ? fmt::format(" and {} others", files.size() - 1) : "";
  const std::string why =
      summary.damage.named.empty() ? "" : " (" + summary.damage.named.front() + ")";
  return Error(first, others, ": no records", why);
}

Result<Unit> check_intact(const StreamSummary& summary, std::span<const RecordPath> files) {
  if (summary.damage.files > 0) return ends_early(summary.damage.first_file);
  if (summary.records == 0) return no_records(files, summary);
  warn_of_damage(summary.damage);
  return Unit{};
}

Result<int> done_reading(const StreamSummary& summary, std::span<const RecordPath> files) {
  if (summary.records == 0 && summary.damage.files == 0) return no_records(files, summary);
  // A file that ends early is the error below, so only lines are warned of.
  Damage lines = summary.damage;
  std::erase_if(lines.named, [](const std::string& name) { return name.ends_with(kEndsEarly); });
  lines.files = 0;
  warn_of_damage(lines);
  if (summary.damage.files == 0) return kDone;
  return Error(summary.damage.first_file, ": ", kEndsEarly, "; what comes before was taken");
}

Result<std::vector<FileRecords>> read_record_files(const std::vector<std::string>& named,
                                                   const char* flag,
                                                   int jobs) {
  const auto wrong = [&](const Error& error) { return Error(flag, ": ", error.message()); };
  const Result<std::vector<RecordPath>> files = find_record_files(named);
  if (!files.ok()) return wrong(files.error());
  TRY_ASSIGN(LoadedRecords loaded, load_records(*files, jobs));
  const Result<Unit> intact = check_intact(loaded.summary, *files);
  if (!intact.ok()) return wrong(intact.error());
  return std::move(loaded.files);
}

ShownPaths::ShownPaths(std::span<const RecordPath> files) {
  std::error_code code;
  here_ = std::filesystem::current_path(code).string() + "/";
  if (code) here_.clear();
  std::optional<std::string> common;
  for (const RecordPath& file : files) {
    if (!file.path.starts_with('/') || (!here_.empty() && file.path.starts_with(here_))) return;
    const std::string& path = file.path;
    if (!common) common = path;
    const auto end = std::ranges::mismatch(*common, path).in1;
    common->erase(end, common->end());
  }
  if (common) common_ = common->substr(0, common->rfind('/') + 1);
}

std::string ShownPaths::heading() const {
  return common_.empty() ? "" : fmt::format("Files are in {}\n", common_);
}

std::string ShownPaths::operator()(const std::string& path) const {
  for (const std::string& folder : {common_, here_})
    if (!folder.empty() && path.starts_with(folder)) return path.substr(folder.size());
  return path;
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
