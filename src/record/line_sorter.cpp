#include "record/line_sorter.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <queue>

namespace pruner {

namespace {

/// A text after its size.
void put(std::ofstream& out, const std::string& text) {
  const uint64_t size = text.size();
  out.write(reinterpret_cast<const char*>(&size), sizeof size);
  out.write(text.data(), static_cast<std::streamsize>(size));
}

bool get(std::ifstream& in, std::string& text) {
  uint64_t size = 0;
  if (!in.read(reinterpret_cast<char*>(&size), sizeof size)) return false;
  text.resize(size);
  return static_cast<bool>(in.read(text.data(), static_cast<std::streamsize>(size)));
}

}  // namespace

LineSorter::~LineSorter() {
  std::error_code ignored;
  for (const std::string& run : runs_) std::filesystem::remove(run, ignored);
}

Result<Unit> LineSorter::add(std::string key, std::string_view line) {
  used_bytes_ += key.size() + line.size() + sizeof(Entry);
  entries_.push_back({std::move(key), std::string(line)});
  return used_bytes_ < memory_bytes_ ? Unit{} : spill();
}

Result<Unit> LineSorter::spill() {
  std::ranges::stable_sort(entries_, {}, &Entry::key);
  runs_.push_back(path_ + ".run" + std::to_string(runs_.size()));
  std::ofstream out(runs_.back(), std::ios::binary | std::ios::trunc);
  for (const Entry& entry : entries_) {
    put(out, entry.key);
    put(out, entry.line);
  }
  if (!out.flush()) return Error(runs_.back(), ": cannot be written: ", std::strerror(errno));
  entries_.clear();
  used_bytes_ = 0;
  return Unit{};
}

Result<Unit> LineSorter::finish(const std::function<Result<Unit>(std::string_view line)>& take) {
  if (runs_.empty()) {
    std::ranges::stable_sort(entries_, {}, &Entry::key);
    for (const Entry& entry : entries_) TRY(take(entry.line));
    return Unit{};
  }
  if (!entries_.empty()) TRY(spill());
  std::vector<std::ifstream> in;
  for (const std::string& run : runs_) in.emplace_back(run, std::ios::binary);
  std::vector<Entry> heads(in.size());
  // The least key first; of equal keys the earlier run.
  const auto later = [&](size_t a, size_t b) {
    return std::tie(heads[a].key, a) > std::tie(heads[b].key, b);
  };
  std::priority_queue<size_t, std::vector<size_t>, decltype(later)> queue(later);
  const auto advance = [&](size_t run) -> Result<Unit> {
    if (get(in[run], heads[run].key) && get(in[run], heads[run].line)) {
      queue.push(run);
      return Unit{};
    }
    if (in[run].eof() && in[run].gcount() == 0) return Unit{};
    return Error(runs_[run], ": cannot be read back");
  };
  for (size_t run = 0; run < in.size(); ++run) TRY(advance(run));
  while (!queue.empty()) {
    const size_t run = queue.top();
    queue.pop();
    TRY(take(heads[run].line));
    TRY(advance(run));
  }
  return Unit{};
}

}  // namespace pruner
