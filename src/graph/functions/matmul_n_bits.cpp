// MatMulNBits and MatMulBnb4: products with a matrix of few bits an element. MatMulNBits is written
// as numbers in blocks and a MatMul; the keep_codes pass says where the numbers stay as they are.
#include <algorithm>
#include <numeric>

#include "graph/functions/packed_codes.h"
#include "support/ceil_div.h"

namespace pruner {

namespace {

struct Blocks {
  int64_t rows, columns, bits, size, count;  // K, N, bits, elements of a block, blocks of a column
};

// The order of the rows of a MatMulNBits whose input g_idx names the block of each row.
struct RowOrder {
  std::vector<int64_t> blocks;  // block of each row
  std::vector<int64_t> rows;    // sorted by block
  bool fills_blocks;            // the sorted rows lie in the blocks that k / block_size says
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
  k.count = ceil_div(k.rows, k.size);
  const auto check = [&](size_t i, const char* what, int64_t elements) -> Result<Unit> {
    if (!call.has(i)) return Unit{};
    const std::optional<Tensor>& tensor = call.input(i).constant;
    if (!tensor) return computed_at_run_time(call.graph, call.node.inputs[i], what);
    if (tensor->num_elements() == elements) return Unit{};
    return Error(what, " is ", print_shape(tensor->shape()), ", expected ", elements, " elements");
  };
  if (call.input(1).dtype != DType::kUInt8)
    return Error("B is ", dtype_name(call.input(1).dtype), ", expected uint8");
  // ONNX Runtime takes as many block numbers as there are rows, or rows of whole blocks.
  const bool padded = call.has(4) && element_count(call.shape(4)) == k.count * k.size;
  TRY(check(4, "g_idx", padded ? k.count * k.size : k.rows));
  TRY(check(1, "B", k.columns * k.count * k.size * k.bits / 8));
  TRY(check(2, "scales", k.columns * k.count));
  const bool packed = call.has(3) && call.input(3).dtype == DType::kUInt8;
  TRY(check(3, "zero_points", k.columns * (packed ? packed_bytes(k.count, k.bits) : k.count)));
  return k;
}

static Tensor zero_points(Body& b, const Blocks& k) {
  const std::vector<int64_t> shape = {k.columns, k.count};
  if (!b.has(3)) return filled(type_of_bits(k.bits), shape, int64_t{1} << (k.bits - 1));
  const Tensor& given = *b.input(3).constant();
  if (given.dtype() != DType::kUInt8) return given.reshaped(shape);
  return unpacked(given, k.bits, k.columns, k.count);
}

static Result<RowOrder> row_order(const Tensor& given, const Blocks& k) {
  RowOrder order{{}, std::vector<int64_t>(static_cast<size_t>(k.rows)), true};
  for (int64_t row = 0; row < k.rows; ++row) {
    const int64_t block = given.get_int(row);
    if (block < 0 || block >= k.count)
      return Error("g_idx is ", block, " at row ", row, ", expected 0 to ", k.count - 1);
    order.blocks.push_back(block);
  }
  std::iota(order.rows.begin(), order.rows.end(), 0);
  std::ranges::stable_sort(order.rows, {}, [&](int64_t row) { return order.blocks[row]; });
  for (int64_t i = 0; i < k.rows; ++i)
    order.fills_blocks = order.fills_blocks && order.blocks[order.rows[i]] == i / k.size;
  return order;
}

// The columns `places` of a matrix of codes or of their steps.
static Term columns_at(Body& b, Term matrix, std::span<const int64_t> places) {
  return b.add("Gather", {matrix, b.integers(places)}, {{"axis", int64_t{1}}});
}

static void matmul_n_bits(Body& b) {
  const Result<Blocks> blocks = blocks_of(b.call());
  if (!blocks.ok()) return b.fail(blocks.error());
  const Blocks& k = *blocks;
  Term data = b.input(0);
  Term codes = b.constant(unpacked(*b.input(1).constant(), k.bits, k.columns, k.rows));
  Term scales =
      b.cast(b.constant(b.input(2).constant()->reshaped({k.columns, k.count})), DType::kFloat32);
  Term zeros = b.constant(zero_points(b, k));
  int64_t size = k.size;
  if (b.has(4)) {
    const Result<RowOrder> order = row_order(*b.input(4).constant(), k);
    if (!order.ok()) return b.fail(order.error());
    if (!order->fills_blocks) {  // each row has steps of its own
      scales = columns_at(b, scales, order->blocks);
      zeros = columns_at(b, zeros, order->blocks);
      size = 1;
    } else if (!std::ranges::is_sorted(order->rows)) {
      codes = columns_at(b, codes, order->rows);
      data = b.add("Gather", {data, b.integers(order->rows)}, {{"axis", int64_t{-1}}});
    }
  }
  const Term columns = b.add(
      "DequantizeBlocks", {codes, scales, zeros}, {{"axis", int64_t{1}}, {"block_size", size}});
  const Term matrix = b.cast(b.transpose(columns, {1, 0}), data.dtype());
  const Term product = b.add("MatMul", {data, matrix});
  b.output(0, b.has(5) ? product + b.input(5) : product);
}

// The values of the 16 codes of bitsandbytes' types. FP4 has a sign, two bits of exponent and one
// bit of fraction, in parts of its greatest number; NF4 has quantiles of the normal distribution.
static constexpr float kFp4[] = {0.0F,
                                 0x1.555556p-8F,
                                 0x1.555556p-1F,
                                 1.0F,
                                 0x1.555556p-2F,
                                 0.5F,
                                 0x1.555556p-3F,
                                 0.25F,
                                 0.0F,
                                 -0x1.555556p-8F,
                                 -0x1.555556p-1F,
                                 -1.0F,
                                 -0x1.555556p-2F,
                                 -0.5F,
                                 -0x1.555556p-3F,
                                 -0.25F};
static constexpr float kNf4[] = {-1.0F,
                                 -0x1.647362p-1F,
                                 -0x1.0cd66p-1F,
                                 -0x1.94654p-2F,
                                 -0x1.23449ap-2F,
                                 -0x1.7a6a7ep-3F,
                                 -0x1.74f0e2p-4F,
                                 0.0F,
                                 0x1.45f5fep-4F,
                                 0x1.4995c6p-3F,
                                 0x1.f809bap-3F,
                                 0x1.5a0674p-2F,
                                 0x1.c3497p-2F,
                                 0x1.200f56p-1F,
                                 0x1.722766p-1F,
                                 1.0F};

static Result<Unit> check_bnb4(const OpCall& call) {
  const int64_t k = call.integer("K", 0), n = call.integer("N", 0),
                block = call.integer("block_size", 0), type = call.integer("quant_type", -1);
  if (k < 1 || n < 1 || block < 1)
    return Error("K ", k, ", N ", n, " and block_size ", block, " say no matrix");
  if (type != 0 && type != 1) return Error("quant_type is ", type, ", expected 0 (FP4) or 1 (NF4)");
  const std::pair<const char*, int64_t> expected[] = {{"B", packed_bytes(n * k, 4)},
                                                      {"absmax", ceil_div(n * k, block)}};
  for (size_t i = 1; i < 3; ++i) {
    const auto& [what, elements] = expected[i - 1];
    if (!call.input(i).constant) return computed_at_run_time(call.graph, call.node.inputs[i], what);
    if (element_count(call.shape(i)) == elements) continue;
    return Error(what, " is ", print_shape(call.shape(i)), ", expected ", elements, " elements");
  }
  if (call.input(1).dtype == DType::kUInt8) return Unit{};
  return Error("B is ", dtype_name(call.input(1).dtype), ", expected uint8");
}

// B is [N, K] in a row: the first code of a byte is in its upper bits, and each block of codes
// stands for parts of its number in absmax.
static void matmul_bnb4(Body& b) {
  const OpCall& call = b.call();
  if (const Result<Unit> checked = check_bnb4(call); !checked.ok()) return b.fail(checked.error());
  const int64_t k = call.integer("K", 0), n = call.integer("N", 0),
                block = call.integer("block_size", 0);
  const Tensor &bytes = *b.input(1).constant(), &largest = *b.input(2).constant();
  const std::span<const float> table = call.integer("quant_type", 0) == 0 ? kFp4 : kNf4;
  Tensor matrix(DType::kFloat32, {n, k});
  const std::span<float> values = matrix.values<float>();
  for (int64_t i = 0; i < n * k; ++i) {
    const int64_t byte = bytes.get_int(i / 2), code = i % 2 == 0 ? byte >> 4 : byte & 15;
    values[i] = table[code] * static_cast<float>(largest.get(i / block));
  }
  Term factor = b.cast(b.constant(std::move(matrix)), b.input(0).dtype());
  if (call.integer("transB", 1) != 0) factor = b.transpose(factor, {1, 0});
  b.output(0, b.add("MatMul", {b.input(0), factor}));
}

static constexpr Function kMatMulNBitsFunctions[] = {
    {"com.microsoft::MatMulBnb4",
     3,
     3,
     "K:i N:i block_size:i quant_type:i training_mode:i transB:i",
     matmul_bnb4},
    {"com.microsoft::MatMulNBits",
     3,
     6,
     "K:i N:i accuracy_level:i bits:i block_size:i weight_prepacked:i",
     matmul_n_bits},
};

std::span<const Function> matmul_n_bits_functions() { return kMatMulNBitsFunctions; }

}  // namespace pruner
