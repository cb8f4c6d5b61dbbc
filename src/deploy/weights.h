// The constants of a module as one run of bytes in its file: each packed as the kernel that reads
// it says, and stored once for all kernels that want it in the same form.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "graph/partition.h"
#include "tensor/pack.h"

namespace pruner {

inline constexpr int64_t kWeightAlignment = 64;  // bytes: of a CPU

class Weights {
 public:
  /// Every constant begins at a multiple of `alignment`.
  explicit Weights(const Partition& partition, int64_t alignment = kWeightAlignment)
      : partition_(partition), alignment_(alignment) {}

  /// Byte offset of constant `id` packed by `pack`; entered when it is new.
  int64_t offset_of(ValueId id, const PackSpec& pack);
  int64_t bytes() const { return bytes_; }

  /// Packs everything that was entered and writes it from byte `start` of a file on, which has
  /// zeros there. On `jobs` threads.
  Result<Unit> write(const std::string& path, int64_t start, int jobs) const;

 private:
  /// A constant as it is to be written.
  struct Entry {
    Tensor tensor;
    PackSpec pack;
    int64_t offset;
  };
  /// Owner, shape, and the three members of PackSpec: what makes the bytes that are stored.
  using Key = std::tuple<ValueId,
                         std::vector<int64_t>,
                         std::vector<int>,
                         std::vector<std::pair<int, int64_t>>,
                         Transform>;

  const Partition& partition_;
  int64_t alignment_;
  std::map<Key, int64_t> offsets_;
  std::vector<Entry> entries_;
  int64_t bytes_ = 0;  // where the next one begins
};

}  // namespace pruner
