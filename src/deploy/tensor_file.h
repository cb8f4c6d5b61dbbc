// Named tensors in .npz files: what `pruner run` reads and writes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "support/result.h"
#include "tensor/tensor.h"

namespace pruner {

/// Describes an input or output of a module.
struct TensorSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
};

/// "x float32 1x3x224x224".
std::string print(const TensorSpec& spec);

/// Holds an array of an .npz file.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// Reads the arrays of an .npz file. The error names the array with a type that we lack.
Result<std::vector<NamedTensor>> read_tensors(const std::string& path);
/// Reads the array of an .npy file.
Result<Tensor> read_tensor(const std::string& path);
Result<Unit> write_tensors(const std::string& path, std::span<const NamedTensor> tensors);

/// `kAnyExtent` is a dim of a spec that may have any extent.
inline constexpr int64_t kAnyExtent = -1;

/// Returns the tensors of `specs`, in order: by name, or by position if all names are numpy's own
/// (arr_0, arr_1, ...). Type float64 (numpy's default) becomes float32 if a spec has that type. The
/// error names the missing tensor, or the expected and found shape or dtype.
Result<std::vector<Tensor>> match_tensors(std::span<const TensorSpec> specs,
                                          std::vector<NamedTensor> tensors);

}  // namespace pruner
