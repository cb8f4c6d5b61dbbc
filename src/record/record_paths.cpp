#include "record/record_paths.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>

#include "record/manifest.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> matches(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  globfree(&found);
  return paths;
}

/// A folder of a tuning run: it has modules and curves, too.
bool is_work_dir(const fs::path& folder) {
  std::error_code code;
  return fs::exists(manifest_path(folder.string()), code) &&
         fs::exists(folder / kWorkDirRecords, code);
}

Result<Unit> add_folder(const fs::path& folder, std::vector<RecordPath>& files) {
  if (is_work_dir(folder)) {
    files.push_back({(folder / kWorkDirRecords).string(), true});
    return Unit{};
  }
  std::error_code code;
  std::vector<fs::path> entries;
  fs::directory_iterator entry(folder, code);
  for (; !code && entry != fs::directory_iterator(); entry.increment(code))
    entries.push_back(entry->path());
  if (code) return Error(folder.string(), ": cannot be read: ", code.message());
  std::ranges::sort(entries);
  for (const fs::path& path : entries) {
    if (fs::is_directory(path, code) && !fs::is_symlink(path, code)) {
      TRY(add_folder(path, files));
    } else if (fs::is_regular_file(path, code)) {
      files.push_back({path.string(), false});
    }
  }
  return Unit{};
}

}  // namespace

Result<std::vector<RecordPath>> find_record_files(const std::vector<std::string>& patterns) {
  std::vector<RecordPath> files;
  for (const std::string& pattern : patterns) {
    std::error_code code;
    const bool exists = fs::exists(pattern, code);
    const auto paths = exists ? std::vector{pattern} : matches(pattern);
    if (paths.empty()) return Error(pattern, ": no such file or folder, and no pattern of any");
    for (const std::string& path : paths) {
      if (fs::is_directory(path, code)) {
        TRY(add_folder(path, files));
      } else {
        files.push_back({path, true});
      }
    }
  }
  return files;
}

Result<Unit> check_no_input(const std::string& path, std::span<const RecordPath> files) {
  for (const RecordPath& file : files) {
    std::error_code code;
    if (fs::equivalent(path, file.path, code))
      return Error(path, ": is one of the inputs; choose another name with -o");
  }
  return Unit{};
}

}  // namespace pruner
