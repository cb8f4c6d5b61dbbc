#include "tensor/tensor.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>

#include "support/memory.h"

namespace pruner {

static int64_t count(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

// Weights of hundreds of megabytes lie on huge pages where the system gives them: they are there
// after a few faults, and a fork() copies a short table of them.
static std::shared_ptr<std::byte> allocate(int64_t bytes) {
  const size_t size = (static_cast<size_t>(bytes) + 63) / 64 * 64;
  const bool is_huge = bytes >= 2 * kHugePage;
  const std::align_val_t alignment{is_huge ? size_t{kHugePage} : 64};
  // Without memory it throws or calls the new handler, as what the library allocates does.
  void* memory = ::operator new(size, alignment);
  if (is_huge) madvise(memory, size, MADV_HUGEPAGE);
  return {static_cast<std::byte*>(memory),
          [alignment](std::byte* p) { ::operator delete(p, alignment); }};
}

Tensor::Tensor(DType dtype, std::vector<int64_t> shape)
    : dtype_(dtype), shape_(std::move(shape)), data_(allocate(count(shape_) * dtype_bytes(dtype))) {
  std::memset(data(), 0, static_cast<size_t>(bytes()));
}

Tensor Tensor::view(DType dtype,
                    std::vector<int64_t> shape,
                    std::shared_ptr<const void> owner,
                    const void* data) {
  CHECK(is_aligned(dtype, data)) << "a view of " << dtype_name(dtype) << " that is not aligned";
  Tensor out;
  out.dtype_ = dtype;
  out.shape_ = std::move(shape);
  // Nobody writes through it: data() of what is not const makes a copy first.
  auto* bytes = static_cast<std::byte*>(const_cast<void*>(data));
  out.data_ = {std::const_pointer_cast<void>(std::move(owner)), bytes};
  out.read_only_ = true;
  return out;
}

bool Tensor::is_aligned(DType dtype, const void* data) {
  return reinterpret_cast<uintptr_t>(data) % static_cast<size_t>(dtype_bytes(dtype)) == 0;
}

int64_t Tensor::num_elements() const { return data_ ? count(shape_) : 0; }

double Tensor::get(int64_t i) const {
  const auto at = static_cast<size_t>(i);
  if (dtype_ == DType::kFloat32) return values<float>()[at];
  if (dtype_ == DType::kFloat64) return values<double>()[at];
  if (is_float(dtype_)) return decode_float(dtype_, values<uint16_t>()[at]);
  return int_to_double(dtype_, get_int(i));
}

int64_t Tensor::get_int(int64_t i) const {
  const auto at = static_cast<size_t>(i);
  if (is_float(dtype_)) return double_to_int(DType::kInt64, get(i));
  switch (dtype_bytes(dtype_)) {
    case 8: return values<int64_t>()[at];
    case 4: return wrap_to(dtype_, values<int32_t>()[at]);
    case 2: return wrap_to(dtype_, values<int16_t>()[at]);
    default: return wrap_to(dtype_, values<int8_t>()[at]);
  }
}

// Converts a value to an integer type; a value that does not fit saturates.
static int64_t saturated(DType dtype, double value) {
  if (is_wide_unsigned(dtype) || dtype == DType::kBool) return double_to_int(dtype, value);
  return std::clamp(double_to_int(DType::kInt64, value), least_int(dtype), greatest_int(dtype));
}

void Tensor::set(int64_t i, double value) {
  const auto at = static_cast<size_t>(i);
  if (dtype_ == DType::kFloat32) {
    values<float>()[at] = static_cast<float>(value);
  } else if (dtype_ == DType::kFloat64) {
    values<double>()[at] = value;
  } else if (is_float(dtype_)) {
    values<uint16_t>()[at] = static_cast<uint16_t>(encode_float(dtype_, value));
  } else {
    set_int(i, saturated(dtype_, value));
  }
}

void Tensor::set_int(int64_t i, int64_t value) {
  const auto at = static_cast<size_t>(i);
  if (is_float(dtype_)) return set(i, static_cast<double>(value));
  value = wrap_to(dtype_, value);
  switch (dtype_bytes(dtype_)) {
    case 8: values<int64_t>()[at] = value; break;
    case 4: values<int32_t>()[at] = static_cast<int32_t>(value); break;
    case 2: values<int16_t>()[at] = static_cast<int16_t>(value); break;
    default: values<int8_t>()[at] = static_cast<int8_t>(value);
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
  out.read_only_ = false;
  std::memcpy(out.data(), data(), static_cast<size_t>(bytes()));
  return out;
}

}  // namespace pruner
