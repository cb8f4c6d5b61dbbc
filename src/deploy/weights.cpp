#include "deploy/weights.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "measure/kernel_arguments.h"
#include "support/ceil_div.h"
#include "support/check.h"
#include "support/hash.h"
#include "support/parallel_for.h"

namespace pruner {

constexpr int64_t kMostPacked = int64_t{2} << 30;  // bytes that are kept

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

Weights::Key Weights::key_of(const Partition& partition, ValueId id, const PackSpec& pack) {
  // The shape matters only to a constant that is packed.
  const std::vector<int64_t> shape = pack.identity() ? std::vector<int64_t>() : partition[id].shape;
  return {content_of(constant_of(partition, id)), shape, pack.order, pack.blocks, pack.transform};
}

int64_t Weights::offset_of(const Partition& partition, ValueId id, const PackSpec& pack) {
  const Key key = key_of(partition, id, pack);
  const auto [at, is_new] = offsets_.emplace(key, bytes_);
  if (is_new) {
    const Tensor constant = constant_of(partition, id).reshaped(partition[id].shape);
    const auto made = packed_.find(key);
    entries_.push_back({constant, pack, bytes_, made == packed_.end() ? nullptr : made->second});
    const int64_t bytes = pack.packed_bytes(constant.dtype(), constant.shape());
    bytes_ += ceil_div(bytes, alignment_) * alignment_;
  }
  return at->second;
}

Result<std::shared_ptr<const GuardedBuffer>> Weights::packed(const Partition& partition,
                                                             ValueId id,
                                                             const PackSpec& pack) {
  const Key key = key_of(partition, id, pack);
  {
    const std::lock_guard lock(mutex_);
    if (const auto made = packed_.find(key); made != packed_.end()) return made->second;
  }
  TRY_ASSIGN(GuardedBuffer buffer,
             make_packed(constant_of(partition, id).reshaped(partition[id].shape), pack));
  auto made = std::make_shared<const GuardedBuffer>(std::move(buffer));
  const std::lock_guard lock(mutex_);
  if (packed_bytes_ + made->bytes() > kMostPacked) return made;
  const auto [at, is_new] = packed_.emplace(key, made);
  if (is_new) packed_bytes_ += made->bytes();
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
static bool write_at(int file, const void* bytes, int64_t size, int64_t offset) {
  const auto* from = static_cast<const char*>(bytes);
  for (int64_t done = 0; done < size;) {
    const ssize_t n = pwrite(file, from + done, static_cast<size_t>(size - done), offset + done);
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
    const auto& [tensor, spec, offset, packed] = entries_[i];
    const Tensor made = packed == nullptr ? pack(tensor, spec) : Tensor();
    const void* const bytes = packed == nullptr ? made.data() : packed->data();
    const int64_t size = packed == nullptr ? made.bytes() : packed->bytes();
    if (!write_at(file, bytes, size, start + offset)) errors[i] = errno;
  });
  close(file);
  for (const int error : errors) {
    if (error != 0) return Error(path, ": cannot be written: ", std::strerror(error));
  }
  return Unit{};
}

}  // namespace pruner
