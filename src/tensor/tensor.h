// A dense tensor in memory: row-major, 64-byte aligned where it owns its bytes. What the
// interpreter reads, weights are kept in and modules are run on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "support/check.h"
#include "tensor/dtype.h"

namespace pruner {

/// Copies share the data. A tensor made without a type holds nothing: it has 0 elements. A view's
/// data belong to others and are only read: what would write them makes the tensor a copy first.
class Tensor {
 public:
  Tensor() = default;
  /// Zero-filled.
  Tensor(DType dtype, std::vector<int64_t> shape);
  /// A tensor of the bytes at `data`, which `owner` keeps (a mapped file, a message's string).
  /// They are aligned to an element, not to 64 bytes; see is_aligned().
  static Tensor view(DType dtype,
                     std::vector<int64_t> shape,
                     std::shared_ptr<const void> owner,
                     const void* data);
  /// Whether elements of `dtype` may lie at `data`.
  static bool is_aligned(DType dtype, const void* data);

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t num_elements() const;
  int64_t bytes() const { return num_elements() * dtype_bytes(dtype_); }
  void* data() {
    if (read_only_) *this = clone();
    return data_.get();
  }
  const void* data() const { return data_.get(); }
  template <typename T>
  std::span<T> values() {
    return {static_cast<T*>(data()), static_cast<size_t>(num_elements())};
  }
  template <typename T>
  std::span<const T> values() const {
    return {static_cast<const T*>(data()), static_cast<size_t>(num_elements())};
  }

  /// Element i (row-major) as a double / an integer, whatever the dtype: the bits of a uint64.
  double get(int64_t i) const;
  int64_t get_int(int64_t i) const;
  /// set() of an integer type truncates and saturates, set_int() wraps around.
  void set(int64_t i, double value);
  void set_int(int64_t i, int64_t value);
  /// The same elements under another shape (shares the data).
  Tensor reshaped(std::vector<int64_t> shape) const;
  Tensor clone() const;

 private:
  DType dtype_ = DType::kFloat32;
  std::vector<int64_t> shape_;
  std::shared_ptr<std::byte> data_;  // shared: copying a Tensor shares; clone() copies
  bool read_only_ = false;           // a view
};

}  // namespace pruner
