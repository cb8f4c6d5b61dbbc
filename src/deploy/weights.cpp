#include "deploy/weights.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "support/check.h"
#include "support/hash.h"
#include "support/parallel_for.h"

namespace pruner {

static const Tensor& constant_of(const Partition& partition, ValueId id) {
  const std::optional<Tensor>& constant = partition[partition.storage_of(id).owner].constant;
  CHECK(constant) << partition[id].name << " is no constant";
  return *constant;
}

// Equal bytes are one content, whatever tensors have them.
size_t Weights::content_of(const Tensor& tensor) {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = known_.try_emplace({tensor.data(), tensor.bytes()}, contents_.size());
  if (!is_new) return at->second;
  const auto text = [](const Tensor& t) {
    return std::string_view(static_cast<const char*>(t.data()), static_cast<size_t>(t.bytes()));
  };
  const uint64_t hash = hash64(text(tensor));
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto like = first; like != last; ++like) {
    const Tensor& content = contents_[like->second];
    if (content.dtype() == tensor.dtype() && text(content) == text(tensor))
      return at->second = like->second;
  }
  by_hash_.emplace(hash, contents_.size());
  contents_.push_back(tensor);
  return at->second;
}

int64_t Weights::offset_of(const Partition& partition, ValueId id, const PackSpec& pack) {
  const Tensor& constant = constant_of(partition, id);
  // The shape matters only to a constant that is packed.
  const std::vector<int64_t>& dims = partition[id].shape;
  const std::vector<int64_t> shape = pack.identity() ? std::vector<int64_t>() : dims;
  const Key key{content_of(constant), shape, pack.order, pack.blocks, pack.transform};
  const auto [at, is_new] = offsets_.emplace(key, bytes_);
  if (is_new) {
    entries_.push_back({constant.reshaped(dims), pack, bytes_});
    int64_t bytes = dtype_bytes(pack.packed_type(constant.dtype()));
    for (const int64_t extent : pack.packed_shape(dims)) bytes *= extent;
    bytes_ += (bytes + alignment_ - 1) / alignment_ * alignment_;
  }
  return at->second;
}

std::vector<PackSpec> Weights::packs_of(const Partition& partition, ValueId id) {
  const size_t content = content_of(constant_of(partition, id));
  std::vector<PackSpec> packs;
  for (auto at = offsets_.lower_bound(Key{content, {}, {}, {}, {}});
       at != offsets_.end() && std::get<0>(at->first) == content;
       ++at) {
    const auto& [number, shape, order, blocks, transform] = at->first;
    if (shape.empty() || shape == partition[id].shape) packs.push_back({order, blocks, transform});
  }
  return packs;
}

// False: errno says why. pwrite() has no common position, so threads may write at once.
static bool write_at(int file, const Tensor& tensor, int64_t offset) {
  const auto* from = static_cast<const char*>(tensor.data());
  for (int64_t done = 0; done < tensor.bytes();) {
    const ssize_t n =
        pwrite(file, from + done, static_cast<size_t>(tensor.bytes() - done), offset + done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += n;
  }
  return true;
}

Result<Unit> Weights::write(const std::string& path, int64_t start, int jobs) const {
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return Error(path, ": cannot be written: ", std::strerror(errno));
  std::vector<int> errors(entries_.size(), 0);
  parallel_for(static_cast<int64_t>(entries_.size()), jobs, [&](int64_t i) {
    const Entry& entry = entries_[i];
    if (!write_at(file, pack(entry.tensor, entry.pack), start + entry.offset)) errors[i] = errno;
  });
  close(file);
  for (const int error : errors) {
    if (error != 0) return Error(path, ": cannot be written: ", std::strerror(error));
  }
  return Unit{};
}

}  // namespace pruner
