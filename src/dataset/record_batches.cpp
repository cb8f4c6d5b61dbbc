#include "dataset/record_batches.h"

#include <filesystem>

#include "support/gzip.h"
#include "support/parallel_for.h"

namespace pruner {

namespace {

constexpr size_t kBatchFiles = 256;
constexpr uint64_t kBatchBytes = 1 << 20;  // on disk; packed logs are some 50 times as long

void read(const RecordPath& file, ReadFile& to) {
  to.path = file.path;
  Result<UnpackedFile> unpacked = read_unpacked(file.path);
  if (!unpacked.ok()) {
    to.error = unpacked.error().message();
    return;
  }
  to.content = std::move(unpacked->content);
  to.damaged = unpacked->damaged;
  to.lines = record_lines(to.content);
  to.other = !file.named && !look_like_records(to.lines);
}

}  // namespace

std::vector<ReadFile> RecordBatches::next() {
  const size_t begin = next_;
  for (uint64_t bytes = 0; next_ < files_.size() && bytes < kBatchBytes; ++next_) {
    if (next_ - begin == kBatchFiles) break;
    std::error_code code;
    const uint64_t size = std::filesystem::file_size(files_[next_].path, code);
    bytes += code ? 0 : size;
  }
  std::vector<ReadFile> batch(next_ - begin);
  parallel_for(static_cast<int64_t>(batch.size()), jobs_, [&](int64_t i) {
    read(files_[begin + static_cast<size_t>(i)], batch[i]);
  });
  return batch;
}

}  // namespace pruner
