#include "deploy/tensor_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "support/npz.h"

namespace pruner {
namespace {

Result<Tensor> to_tensor(const NpyArray& array) {
  // Without the order of bytes, which is little-endian: numpy reads void of "<V2" and writes "|V2".
  const auto row = std::ranges::find(
      kDTypes, array.type.substr(1), [](const DTypeRow& of) { return of.numpy.substr(1); });
  if (row != std::end(kDTypes)) {
    Tensor tensor(row->dtype, array.shape);
    std::memcpy(tensor.data(), array.bytes.data(), array.bytes.size());
    return tensor;
  }
  // No DType has 8 bytes of float: it is narrowed below.
  if (array.type != "<f8") {
    std::string known;
    for (const DTypeRow& of : kDTypes) known.append(of.name).append(", ");
    return Error("array \"",
                 array.name,
                 "\" has numpy's type ",
                 array.type,
                 "; known are ",
                 known,
                 "and float64, which is made float32");
  }
  Tensor tensor(DType::kFloat32, array.shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    double value;
    std::memcpy(&value, array.bytes.data() + i * 8, 8);
    tensor.values<float>()[i] = static_cast<float>(value);
  }
  return tensor;
}

}  // namespace

std::string print(const TensorSpec& spec) {
  return fmt::format("{} {} {}", spec.name, dtype_name(spec.dtype), fmt::join(spec.shape, "x"));
}

Result<std::vector<NamedTensor>> read_tensors(const std::string& path) {
  TRY_ASSIGN(std::vector<NpyArray> arrays, read_npz(path));
  std::vector<NamedTensor> tensors;
  for (const NpyArray& array : arrays) {
    Result<Tensor> tensor = to_tensor(array);
    if (!tensor.ok()) return Error(path, ": ", tensor.error().message());
    tensors.push_back({array.name, *std::move(tensor)});
  }
  return tensors;
}

Result<Tensor> read_tensor(const std::string& path) {
  TRY_ASSIGN(const NpyArray array, read_npy(path));
  Result<Tensor> tensor = to_tensor(array);
  if (!tensor.ok()) return Error(path, ": ", tensor.error().message());
  return tensor;
}

Result<Unit> write_tensors(const std::string& path, std::span<const NamedTensor> tensors) {
  std::vector<NpyArray> arrays;
  for (const NamedTensor& named : tensors) {
    const Tensor& tensor = named.tensor;
    const std::string_view type = row_of(tensor.dtype()).numpy;
    const auto* bytes = static_cast<const char*>(tensor.data());
    arrays.push_back({named.name,
                      std::string(type),
                      tensor.shape(),
                      std::string(bytes, static_cast<size_t>(tensor.bytes()))});
  }
  return write_npz(path, arrays);
}

Result<std::vector<Tensor>> match_tensors(std::span<const TensorSpec> specs,
                                          std::vector<NamedTensor> tensors) {
  const bool by_position = std::ranges::all_of(
      tensors, [](const NamedTensor& named) { return named.name.starts_with("arr_"); });
  std::vector<Tensor> matched;
  for (const TensorSpec& spec : specs) {
    const std::string name = by_position ? fmt::format("arr_{}", matched.size()) : spec.name;
    const auto found = std::ranges::find(tensors, name, &NamedTensor::name);
    if (found == tensors.end()) {
      std::vector<std::string> names;
      for (const NamedTensor& named : tensors) names.push_back(named.name);
      return Error("input ",
                   print(spec),
                   " is missing; there are: ",
                   fmt::format("{}", fmt::join(names, ", ")));
    }
    const TensorSpec is{name, found->tensor.dtype(), found->tensor.shape()};
    if (is.dtype != spec.dtype || is.shape != spec.shape) {
      return Error("expected ", print(spec), ", found ", print(is));
    }
    matched.push_back(found->tensor);
  }
  return matched;
}

}  // namespace pruner
