#include "record/record_paths.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>

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

Result<Unit> add_folder(const std::string& folder, std::vector<RecordPath>& files) {
  std::error_code code;
  std::vector<std::string> below;
  fs::recursive_directory_iterator entry(folder, code);
  for (; !code && entry != fs::recursive_directory_iterator(); entry.increment(code)) {
    if (entry->is_regular_file(code)) below.push_back(entry->path().string());
  }
  if (code) return Error(folder, ": cannot be read: ", code.message());
  std::ranges::sort(below);
  for (std::string& path : below) files.push_back({std::move(path), false});
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
