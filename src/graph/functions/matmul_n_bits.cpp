// MatMulNBits: a product with a matrix of few bits an element, which becomes one of floats when it
// is imported.
#include "graph/functions/body.h"

namespace pruner {

namespace {

// Numbers of 2, 4 or 8 bits, packed from a byte's lowest bits on; each row begins with a byte.
struct Packed {
  const Tensor& tensor;
  int64_t bits, bytes_a_row;

  double at(int64_t row, int64_t i) const {
    const int64_t byte = tensor.get_int(row * bytes_a_row + i * bits / 8);
    return static_cast<double>((byte >> (i * bits % 8)) & ((1 << bits) - 1));
  }
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
  TRY(check(1, "B", k.columns * k.count * k.size * k.bits / 8));
  TRY(check(2, "scales", k.columns * k.count));
  const bool packed = call.has(3) && call.input(3).dtype == DType::kUInt8;
  TRY(check(3, "zero_points", k.columns * (packed ? (k.count * k.bits + 7) / 8 : k.count)));
  return k;
}

// [K, N]: (weight - zero point) * scale, both of its block.
static Tensor unpacked(const OpCall& call, const Blocks& k) {
  const Tensor &weights = *call.input(1).constant, &scales = *call.input(2).constant;
  const Tensor zeros = call.has(3) ? *call.input(3).constant : Tensor();
  const Packed packed{weights, k.bits, k.count * k.size * k.bits / 8};
  const Packed packed_zeros{zeros, k.bits, (k.count * k.bits + 7) / 8};
  Tensor matrix(call.input(0).dtype, {k.rows, k.columns});
  for (int64_t n = 0; n < k.columns; ++n) {
    for (int64_t block = 0; block < k.count; ++block) {
      const int64_t at = n * k.count + block;
      const double scale = scales.get(at);
      double zero = static_cast<double>(int64_t{1} << (k.bits - 1));
      if (call.has(3))
        zero = zeros.dtype() == DType::kUInt8 ? packed_zeros.at(n, block) : zeros.get(at);
      for (int64_t i = block * k.size; i < std::min(k.rows, (block + 1) * k.size); ++i) {
        matrix.set(i * k.columns + n, (packed.at(n, i) - zero) * scale);
      }
    }
  }
  return matrix;
}

static void matmul_n_bits(Body& b) {
  const Result<Blocks> blocks = blocks_of(b.call());
  if (!blocks.ok()) return b.fail(blocks.error());
  const Term product = b.add("MatMul", {b.input(0), b.constant(unpacked(b.call(), *blocks))});
  b.output(0, b.has(5) ? product + b.input(5) : product);
}

static constexpr Function kRows[] = {
    {"com.microsoft::MatMulNBits",
     3,
     6,
     "K:i N:i accuracy_level:i bits:i block_size:i weight_prepacked:i",
     matmul_n_bits},
};

std::span<const Function> matmul_n_bits_functions() { return kRows; }

}  // namespace pruner
