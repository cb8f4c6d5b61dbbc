// MatMulNBits: a product with a matrix of few bits an element. It is written as numbers in blocks
// and a MatMul; the keep_codes pass says where the numbers stay as they are.
#include "graph/functions/body.h"

namespace pruner {

namespace {

// Numbers of 2, 4 or 8 bits, packed from a byte's lowest bits on; each row begins with a byte.
struct Packed {
  const Tensor& tensor;
  int64_t bits, bytes_a_row;
};

struct Blocks {
  int64_t rows, columns, bits, size, count;  // K, N, bits, elements of a block, blocks of a column
};

}  // namespace

static Result<Blocks> blocks_of(const OpCall& call) {
  Blocks k{call.integer("K", 0),
           call.integer("N", 0),
           call.integer("bits", 4),
           call.integer("block_size", 0),
           0};
  if (k.bits != 2 && k.bits != 4 && k.bits != 8)
    return Error("bits is ", k.bits, ", expected 2, 4 or 8");
  if (k.rows < 1 || k.columns < 1 || k.size < 8 || k.size % 8 != 0) {
    return Error("K ", k.rows, ", N ", k.columns, " and block_size ", k.size, " say no matrix");
  }
  if (call.integer("weight_prepacked", 0) != 0)
    return Error("weight_prepacked ",
                 call.integer("weight_prepacked", 0),
                 " is not supported; export the model with the packing of its specification");
  if (call.has(4)) return Error("g_idx is not supported");
  k.count = (k.rows + k.size - 1) / k.size;
  const auto check = [&](size_t i, const char* what, int64_t elements) -> Result<Unit> {
    if (!call.has(i)) return Unit{};
    const std::optional<Tensor>& tensor = call.input(i).constant;
    if (!tensor) return computed_at_run_time(call.graph, call.node.inputs[i], what);
    if (tensor->num_elements() == elements) return Unit{};
    return Error(what, " is ", print_shape(tensor->shape()), ", expected ", elements, " elements");
  };
  if (call.input(1).dtype != DType::kUInt8)
    return Error("B is ", dtype_name(call.input(1).dtype), ", expected uint8");
  TRY(check(1, "B", k.columns * k.count * k.size * k.bits / 8));
  TRY(check(2, "scales", k.columns * k.count));
  const bool packed = call.has(3) && call.input(3).dtype == DType::kUInt8;
  TRY(check(3, "zero_points", k.columns * (packed ? (k.count * k.bits + 7) / 8 : k.count)));
  return k;
}

static DType type_of_bits(int64_t bits) {
  return bits == 8 ? DType::kUInt8 : bits == 4 ? DType::kUInt4 : DType::kUInt2;
}

// [rows, count] of numbers whose rows begin with a byte.
static Tensor unpacked(const Packed& packed, int64_t rows, int64_t count) {
  Tensor numbers(type_of_bits(packed.bits), {rows, count});
  const auto* from = static_cast<const uint8_t*>(packed.tensor.data());
  auto* to = static_cast<uint8_t*>(numbers.data());
  const int64_t mask = (1 << packed.bits) - 1;
  for (int64_t row = 0; row < rows; ++row) {
    const uint8_t* bytes = from + row * packed.bytes_a_row;
    for (int64_t i = 0; i < count; ++i)
      *to++ = static_cast<uint8_t>(bytes[i * packed.bits / 8] >> (i * packed.bits % 8) & mask);
  }
  return numbers;
}

static Term zero_points(Body& b, const Blocks& k) {
  const std::vector<int64_t> shape = {k.columns, k.count};
  if (!b.has(3)) {
    Tensor middle(type_of_bits(k.bits), shape);
    for (int64_t i = 0; i < middle.num_elements(); ++i)
      middle.set_int(i, int64_t{1} << (k.bits - 1));
    return b.constant(std::move(middle));
  }
  const Tensor& given = *b.input(3).constant();
  if (given.dtype() != DType::kUInt8) return b.constant(given.reshaped(shape));
  return b.constant(unpacked({given, k.bits, (k.count * k.bits + 7) / 8}, k.columns, k.count));
}

static void matmul_n_bits(Body& b) {
  const Result<Blocks> blocks = blocks_of(b.call());
  if (!blocks.ok()) return b.fail(blocks.error());
  const Blocks& k = *blocks;
  const Packed packed{*b.input(1).constant(), k.bits, k.count * k.size * k.bits / 8};
  const Term codes = b.constant(unpacked(packed, k.columns, k.rows));
  const Term scales =
      b.cast(b.constant(b.input(2).constant()->reshaped({k.columns, k.count})), DType::kFloat32);
  const Term columns = b.add("DequantizeBlocks",
                             {codes, scales, zero_points(b, k)},
                             {{"axis", int64_t{1}}, {"block_size", k.size}});
  const Term matrix = b.cast(b.transpose(columns, {1, 0}), b.input(0).dtype());
  const Term product = b.add("MatMul", {b.input(0), matrix});
  b.output(0, b.has(5) ? product + b.input(5) : product);
}

static constexpr Function kMatMulNBitsFunctions[] = {
    {"com.microsoft::MatMulNBits",
     3,
     6,
     "K:i N:i accuracy_level:i bits:i block_size:i weight_prepacked:i",
     matmul_n_bits},
};

std::span<const Function> matmul_n_bits_functions() { return kMatMulNBitsFunctions; }

}  // namespace pruner
