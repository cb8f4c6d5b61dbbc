#include "record/split_records.h"

#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "record/record_id.h"
#include "support/file.h"
#include "support/hash.h"
#include "support/temporary_folder.h"

namespace pruner {

namespace {

namespace fs = std::filesystem;

constexpr size_t kHeldBytes = size_t{32} << 20;  // before files are appended to
constexpr size_t kMostName = 80;
constexpr size_t kHashDigits = 8;

/// Returns a file name from what the name may hold of a text; the hash tells apart what looks the
/// same.
std::string file_name(const std::string& text, const std::string& identity) {
  std::string name;
  for (const char c : text.substr(0, kMostName)) {
    const bool kept = std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-';
    if (kept || (!name.empty() && name.back() != '_')) name += kept ? c : '_';
  }
  while (!name.empty() && (name.back() == '_' || name.back() == '.')) name.pop_back();
  while (name.starts_with('.') || name.starts_with('-')) name.erase(0, 1);
  return name + '-' + hash_hex(identity).substr(0, kHashDigits) + ".json";
}

std::string part_of(const StreamedRecord& streamed, const RecordSplitOptions& options) {
  const Record& record = streamed.record;
  const std::string where = record.target + '\n' + record.device;
  if (options.by == SplitBy::kTask)
    return file_name(name_of(record), record.workload_key + '\n' + where);
  if (options.by == SplitBy::kTarget) return file_name(record.target, where);
  const std::string drawn = streamed.ids.program + std::to_string(options.seed);
  const double share = std::ldexp(static_cast<double>(hash64(drawn) >> 11), -53);
  return share < options.train_share ? "train.json" : "test.json";
}

/// A folder that gets its name when it is whole.
class NewFolder {
 public:
  static Result<std::unique_ptr<NewFolder>> make(std::string path) {
    while (path.ends_with('/')) path.pop_back();
    std::error_code code;
    if (fs::exists(path, code)) return Error(path, ": is there already; choose another folder");
    const std::string parent = fs::path(path).parent_path();
    std::optional<TemporaryFolder> around = TemporaryFolder::make_in(parent.empty() ? "." : parent);
    if (!around) return Error(path, ": cannot be made: ", std::strerror(errno));
    auto folder = std::make_unique<NewFolder>(path, *std::move(around));
    fs::create_directory(folder->temporary_, code);
    if (code) return Error(path, ": cannot be made: ", code.message());
    return folder;
  }
  NewFolder(std::string path, TemporaryFolder around)
      : path_(std::move(path)), around_(std::move(around)), temporary_(around_.path("new")) {}

  Result<Unit> add(const std::string& name, std::string_view line) {
    std::string& text = held_[name];
    (text += line) += '\n';
    held_bytes_ += line.size() + 1;
    return held_bytes_ < kHeldBytes ? Unit{} : append();
  }
  Result<Unit> commit() {
    TRY(append());
    std::error_code code;
    fs::rename(temporary_, path_, code);
    if (code) return Error(path_, ": cannot be made: ", code.message());
    return Unit{};
  }

 private:
  Result<Unit> append() {
    for (const auto& [name, text] : held_) {
      TRY(append_file(temporary_ + '/' + name, text));
    }
    held_.clear();
    held_bytes_ = 0;
    return Unit{};
  }

  std::string path_;
  TemporaryFolder around_;
  std::string temporary_;
  std::map<std::string, std::string> held_;
  size_t held_bytes_ = 0;
};

}  // namespace

std::optional<SplitBy> parse_split_by(std::string_view name) {
  if (name == "task") return SplitBy::kTask;
  if (name == "target") return SplitBy::kTarget;
  if (name == "share") return SplitBy::kShare;
  return std::nullopt;
}

Result<SplitSummary> split_records(std::span<const RecordPath> files,
                                   const RecordSplitOptions& options,
                                   const std::string& path,
                                   int jobs) {
  TRY_ASSIGN(const std::unique_ptr<NewFolder> folder, NewFolder::make(path));
  SplitSummary split;
  const auto take = [&](StreamedRecord&& streamed) -> Result<Unit> {
    const std::string name = part_of(streamed, options);
    ++split.files[name];
    return folder->add(name, streamed.line);
  };
  TRY_ASSIGN(split.summary, stream_records(files, jobs, take));
  if (split.summary.records == 0) return Error("no record in ", files.size(), " files");
  TRY(folder->commit());
  return split;
}

}  // namespace pruner
