#include "codegen/cuda/cubin_cache.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "support/file.h"
#include "support/hash.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kMostBytes = uintmax_t{512} << 20;
constexpr unsigned kLookEvery = 64;  // new files, about, until their sizes are added up

struct Entry {
  fs::file_time_type time;
  uintmax_t bytes;
  fs::path path;
};

// Files that cannot be read or removed are passed over: a cache may lose, never fail.
void remove_oldest(const fs::path& folder) {
  std::error_code error;
  std::vector<Entry> entries;
  uintmax_t bytes = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(folder, error)) {
    std::error_code gone;  // another process may remove files, too
    Entry entry{file.last_write_time(gone), file.file_size(gone), file.path()};
    if (gone) continue;
    bytes += entry.bytes;
    entries.push_back(std::move(entry));
  }
  if (bytes <= kMostBytes) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.time < b.time;
  });
  // Down to half, so that this is rare.
  for (const Entry& entry : entries) {
    if (bytes <= kMostBytes / 2) break;
    fs::remove(entry.path, error);
    bytes -= entry.bytes;
  }
}

}  // namespace

std::string cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return std::string(cache) + "/pruner";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? std::string(home) + "/.cache/pruner" : "";
}

Result<std::string> cached_cubin(const std::string& key,
                                 const std::function<Result<std::string>()>& compile) {
  const std::string folder = cache_folder();
  if (folder.empty()) return compile();
  const fs::path cubins = fs::path(folder) / "cubin";
  const fs::path path = cubins / (hash_hex(key) + ".cubin");
  std::error_code error;
  // The key is hashed, not kept: the name alone says whose the file is.
  if (fs::exists(path, error)) {
    if (Result<std::string> known = read_file(path); known.ok()) return known;
  }
  TRY_ASSIGN(std::string cubin, compile());
  fs::create_directories(cubins, error);
  const bool written = !error && write_file(path, cubin).ok();
  if (written && hash64(key) % kLookEvery == 0) remove_oldest(cubins);
  return cubin;
}

}  // namespace pruner
