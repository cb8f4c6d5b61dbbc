// Constants that graph passes make of weights, kept from one import of a network to the next: at
// another shape the passes transpose, join and scale the same weights again. A constant is found by
// the operation that makes it and the memory of the operation's inputs.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace pruner {

/// The most bytes of tensors that one store of an ImportCache keeps; further ones are made anew by
/// each import.
inline constexpr int64_t kMostKeptBytes = int64_t{4} << 30;

/// Returns a view of the tensor: who writes to the view gets a copy.
Tensor read_only(const Tensor& tensor);

/// Several threads may use one store at once.
class FoldedConstants {
 public:
  /// Keeps a tensor that every import reads at the same place, as an initializer of a file.
  void keep(const Tensor& tensor);

  /// Returns what `make` returns, which `operation` (its name and its attributes) and `inputs` have
  /// to determine. `make` is not called if it was called for this operation and this memory before.
  /// Only what is made of kept tensors and of a few bytes is kept, as views.
  std::vector<Tensor> make(const std::string& operation,
                           std::span<const Tensor> inputs,
                           const std::function<std::vector<Tensor>()>& make);

 private:
  std::string key_of(const std::string& operation, std::span<const Tensor> inputs) const;
  bool is_kept(const Tensor& tensor) const;

  std::mutex mutex_;
  std::map<const void*, Tensor> kept_;               // tensors by data address
  std::map<std::string, std::vector<Tensor>> made_;  // results by key_of()
  int64_t bytes_ = 0;                                // size of the tensors in made_
};

}  // namespace pruner
