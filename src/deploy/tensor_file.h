// Named tensors in .npz files: what `pruner run` reads and writes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "support/result.h"
#include "tensor/tensor.h"

namespace pruner {

/// What a module says of an input or output.
struct TensorSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
};

/// "x float32 1x3x224x224".
std::string print(const TensorSpec& spec);

/// An array of an .npz file.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// The arrays of an .npz file; float64 (numpy's default) becomes float32. The error names the array
/// of a type that we lack.
Result<std::vector<NamedTensor>> read_tensors(const std::string& path);
/// The array of an .npy file.
Result<Tensor> read_tensor(const std::string& path);
Result<Unit> write_tensors(const std::string& path, std::span<const NamedTensor> tensors);

/// Of a spec whose dim may be any.
inline constexpr int64_t kAnyExtent = -1;

/// The tensors that `specs` ask for, in their order: by name, or by position when all names are
/// numpy's own (arr_0, arr_1, ...). The error names what is missing, or the shape or dtype that was
/// expected and found.
Result<std::vector<Tensor>> match_tensors(std::span<const TensorSpec> specs,
                                          std::vector<NamedTensor> tensors);

}  // namespace pruner
