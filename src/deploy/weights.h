// The constants of a module as one run of bytes in its file. Each constant is packed as its kernel
// needs it, and stored once for all kernels, of any phase, that need the same form.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "graph/partition.h"
#include "runtime/guarded_buffer.h"
#include "tensor/pack.h"

namespace pruner {

inline constexpr int64_t kWeightAlignment = 64;  // bytes: of a CPU

class Weights {
 public:
  /// Every constant begins at a multiple of `alignment`.
  explicit Weights(int64_t alignment = kWeightAlignment) : alignment_(alignment) {}

  /// Returns the byte offset of constant `id` packed by `pack`; enters the constant if it is new.
  int64_t offset_of(const Partition& partition, ValueId id, const PackSpec& pack);
  int64_t bytes() const { return bytes_; }

  /// Returns how the constant's bytes were packed so far, under its shape. Any thread may call it.
  std::vector<PackSpec> packs_of(const Partition& partition, ValueId id);

  /// The bytes of constant `id` packed by `pack`, as write() writes them, read-only between guard
  /// pages. They are made once and kept, so that a check of kernels and write() have the same ones;
  /// beyond 2 GB of them they are made at each call. From any thread. The error: no memory.
  Result<std::shared_ptr<const GuardedBuffer>> packed(const Partition& partition,
                                                      ValueId id,
                                                      const PackSpec& pack);

  /// Packs everything that was entered and writes it from byte `start` of a file on, which has
  /// zeros there. On `jobs` threads.
  Result<Unit> write(const std::string& path, int64_t start, int jobs) const;

 private:
  /// A constant as it is to be written.
  struct Entry {
    Tensor tensor;
    PackSpec pack;
    int64_t offset;
    std::shared_ptr<const GuardedBuffer> packed;  // null: write() packs it
  };
  /// Number of the content, shape, and the three members of PackSpec: what makes the bytes that are
  /// stored.
  using Key = std::tuple<size_t,
                         std::vector<int64_t>,
                         std::vector<int>,
                         std::vector<std::pair<int, int64_t>>,
                         Transform>;

  size_t content_of(const Tensor& tensor);
  Key key_of(const Partition& partition, ValueId id, const PackSpec& pack);

  int64_t alignment_;
  std::mutex mutex_;  // guards the contents and the packed buffers
  std::vector<Tensor> contents_;
  std::map<std::pair<const void*, int64_t>, size_t> known_;  // contents by address and bytes
  std::unordered_multimap<uint64_t, size_t> by_hash_;
  std::map<Key, std::shared_ptr<const GuardedBuffer>> packed_;
  int64_t packed_bytes_ = 0;  // the sum over all packed buffers
  std::map<Key, int64_t> offsets_;
  std::vector<Entry> entries_;
  int64_t bytes_ = 0;  // size so far, where the next constant begins
};

}  // namespace pruner
