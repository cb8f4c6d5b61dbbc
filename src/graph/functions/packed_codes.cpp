#include "graph/functions/packed_codes.h"

namespace pruner {

DType type_of_bits(int64_t bits) {
  return bits == 8 ? DType::kUInt8 : bits == 4 ? DType::kUInt4 : DType::kUInt2;
}

int64_t packed_bytes(int64_t count, int64_t bits) { return (count * bits + 7) / 8; }

Tensor unpacked(const Tensor& bytes, int64_t bits, int64_t rows, int64_t count) {
  Tensor numbers(type_of_bits(bits), {rows, count});
  const int64_t bytes_a_row = rows == 0 ? 0 : bytes.num_elements() / rows;
  const auto* from = static_cast<const uint8_t*>(bytes.data());
  auto* to = static_cast<uint8_t*>(numbers.data());
  const int64_t mask = (1 << bits) - 1;
  for (int64_t row = 0; row < rows; ++row) {
    const uint8_t* packed = from + row * bytes_a_row;
    for (int64_t i = 0; i < count; ++i)
      *to++ = static_cast<uint8_t>(packed[i * bits / 8] >> (i * bits % 8) & mask);
  }
  return numbers;
}

Tensor filled(DType dtype, std::vector<int64_t> shape, int64_t element) {
  Tensor tensor(dtype, std::move(shape));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.set_int(i, element);
  return tensor;
}

}  // namespace pruner
