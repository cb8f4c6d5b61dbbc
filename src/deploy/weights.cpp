#include "deploy/weights.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "support/check.h"
#include "support/parallel_for.h"

namespace pruner {

int64_t Weights::offset_of(ValueId id, const PackSpec& pack) {
  const ValueId owner = partition_.storage_of(id).owner;
  const std::optional<Tensor>& constant = partition_[owner].constant;
  CHECK(constant) << partition_[id].name << " is no constant";
  // The shape matters only to a constant that is packed.
  const std::vector<int64_t> shape =
      pack.identity() ? std::vector<int64_t>() : partition_[id].shape;
  const Key key{owner, shape, pack.order, pack.blocks, pack.transform};
  const auto [at, is_new] = offsets_.emplace(key, bytes_);
  if (is_new) {
    entries_.push_back({constant->reshaped(partition_[id].shape), pack, bytes_});
    int64_t bytes = dtype_bytes(pack.packed_type(constant->dtype()));
    for (const int64_t extent : pack.packed_shape(partition_[id].shape)) bytes *= extent;
    bytes_ += (bytes + alignment_ - 1) / alignment_ * alignment_;
  }
  return at->second;
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
