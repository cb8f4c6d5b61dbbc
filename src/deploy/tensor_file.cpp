#include "deploy/tensor_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "support/npz.h"

namespace pruner {
namespace {

// The byte order, which is little-endian, is left out: numpy reads "<V2" (void) and writes "|V2".
// If several types have one code, the first is meant, which match_tensors() takes for the others.
// ml_dtypes' types of one byte are "V1", void, too.
Result<Tensor> to_tensor(const NpyArray& array) {
  const std::string code = array.type == "|V1" || array.type == "<V1" ? "|u1" : array.type;
  const auto row = std::ranges::find(
      kDTypes, code.substr(1), [](const DTypeRow& of) { return of.numpy.substr(1); });
  if (row == std::end(kDTypes)) {
    std::string known;
    for (const DTypeRow& of : kDTypes) known.append(known.empty() ? "" : ", ").append(of.name);
    return Error("array \"", array.name, "\" has numpy's type ", array.type, "; known are ", known);
  }
  Tensor tensor(row->dtype, array.shape);
  std::memcpy(tensor.data(), array.bytes.data(), array.bytes.size());
  return tensor;
}

// Converts to the type that a spec wants: numpy's default float64 to float32, and bytes to any type
// whose arrays numpy has as bytes.
Tensor wanted(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == DType::kFloat64 && dtype == DType::kFloat32) {
    Tensor narrow(dtype, tensor.shape());
    for (int64_t i = 0; i < tensor.num_elements(); ++i) narrow.set(i, tensor.get(i));
    return narrow;
  }
  if (!is_only_moved(dtype) || dtype_bytes(tensor.dtype()) != 1) return tensor;
  if (tensor.dtype() == DType::kBool) return tensor;
  Tensor codes(dtype, tensor.shape());
  for (int64_t i = 0; i < tensor.num_elements(); ++i) codes.set_int(i, tensor.get_int(i));
  return codes;
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
    const Tensor tensor = wanted(found->tensor, spec.dtype);
    const TensorSpec is{name, tensor.dtype(), tensor.shape()};
    const bool fits =
        std::ranges::equal(is.shape, spec.shape, [](int64_t found_extent, int64_t extent) {
          return extent == kAnyExtent || found_extent == extent;
        });
    if (is.dtype != spec.dtype || !fits) {
      return Error("expected ", print(spec), ", found ", print(is));
    }
    matched.push_back(tensor);
  }
  return matched;
}

}  // namespace pruner
