// The constants of a module as one file of bytes: each packed as the kernel that reads it says, and
// stored once for all kernels that want it in the same form.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "graph/partition.h"
#include "tensor/pack.h"

namespace pruner {

class Weights {
 public:
  explicit Weights(const Partition& partition) : partition_(partition) {}

  /// Byte offset, a multiple of 64, of constant `id` packed by `pack`; entered when it is new.
  int64_t offset_of(ValueId id, const PackSpec& pack);
  int64_t bytes() const { return bytes_; }

  /// Packs everything that was entered and writes it, on `jobs` threads.
  Result<Unit> write(const std::string& path, int jobs) const;

 private:
  struct Entry {
    Tensor tensor;
    PackSpec pack;
    int64_t offset;
  };
  using Key = std::tuple<ValueId,
                         std::vector<int64_t>,
                         std::vector<int>,
                         std::vector<std::pair<int, int64_t>>,
                         int>;

  const Partition& partition_;
  std::map<Key, int64_t> offsets_;
  std::vector<Entry> entries_;
  int64_t bytes_ = 0;
};

}  // namespace pruner
