#include "tensor/tensor.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>

#include "tensor/float16.h"

namespace pruner {

static int64_t count(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

static std::shared_ptr<std::byte> allocate(int64_t bytes) {
  const size_t size = (static_cast<size_t>(bytes) + 63) / 64 * 64;
  void* memory = std::aligned_alloc(64, size ? size : 64);
  CHECK(memory) << "no memory for a tensor of " << bytes << " bytes";
  return {static_cast<std::byte*>(memory), [](std::byte* p) { std::free(p); }};
}

Tensor::Tensor(DType dtype, std::vector<int64_t> shape)
    : dtype_(dtype), shape_(std::move(shape)), data_(allocate(count(shape_) * dtype_bytes(dtype))) {
  std::memset(data(), 0, static_cast<size_t>(bytes()));
}

int64_t Tensor::num_elements() const { return data_ ? count(shape_) : 0; }

template <typename T>
static T clamp_to(double value) {  // float to int truncates; what does not fit, saturates
  if (std::isnan(value)) return 0;
  const auto low = static_cast<double>(std::numeric_limits<T>::min());
  if (value <= low) return std::numeric_limits<T>::min();
  if (value >= -low) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

double Tensor::get(int64_t i) const {
  const auto at = static_cast<size_t>(i);
  switch (dtype_) {
    case DType::kFloat32: return values<float>()[at];
    case DType::kFloat16: return half_to_double(values<uint16_t>()[at]);
    default: return static_cast<double>(get_int(i));
  }
}

int64_t Tensor::get_int(int64_t i) const {
  const auto at = static_cast<size_t>(i);
  switch (dtype_) {
    case DType::kFloat32:
    case DType::kFloat16: return clamp_to<int64_t>(get(i));
    case DType::kInt64: return values<int64_t>()[at];
    case DType::kInt32: return values<int32_t>()[at];
    case DType::kInt8: return values<int8_t>()[at];
    case DType::kBool: return values<uint8_t>()[at] != 0;
  }
  return 0;
}

void Tensor::set(int64_t i, double value) {
  const auto at = static_cast<size_t>(i);
  switch (dtype_) {
    case DType::kFloat32: values<float>()[at] = static_cast<float>(value); break;
    case DType::kFloat16: values<uint16_t>()[at] = double_to_half(value); break;
    case DType::kInt64: values<int64_t>()[at] = clamp_to<int64_t>(value); break;
    case DType::kInt32: values<int32_t>()[at] = clamp_to<int32_t>(value); break;
    case DType::kInt8: values<int8_t>()[at] = clamp_to<int8_t>(value); break;
    case DType::kBool: values<uint8_t>()[at] = value != 0; break;
  }
}

void Tensor::set_int(int64_t i, int64_t value) {
  const auto at = static_cast<size_t>(i);
  switch (dtype_) {
    case DType::kFloat32:
    case DType::kFloat16: set(i, static_cast<double>(value)); break;
    case DType::kInt64: values<int64_t>()[at] = value; break;
    case DType::kInt32: values<int32_t>()[at] = static_cast<int32_t>(value); break;
    case DType::kInt8: values<int8_t>()[at] = static_cast<int8_t>(value); break;
    case DType::kBool: values<uint8_t>()[at] = value != 0; break;
  }
}

Tensor Tensor::reshaped(std::vector<int64_t> shape) const {
  CHECK(count(shape) == num_elements()) << "a reshape keeps the number of elements";
  Tensor out = *this;
  out.shape_ = std::move(shape);
  return out;
}

Tensor Tensor::clone() const {
  Tensor out = *this;
  if (!data_) return out;
  out.data_ = allocate(bytes());
  std::memcpy(out.data(), data(), static_cast<size_t>(bytes()));
  return out;
}

}  // namespace pruner
