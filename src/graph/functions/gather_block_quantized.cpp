// GatherBlockQuantized: rows of a table of few bits an element, as floats. The codes are gathered
// and become floats afterwards, so that the table stays in codes.
#include <algorithm>

#include "graph/functions/packed_codes.h"
#include "support/ceil_div.h"

namespace pruner {

namespace {

/// The table's codes, each with the scale and, where it is valid, the zero point of its block.
struct Table {
  Term codes, scales, zeros;
  int64_t gather_axis, block_axis, block;
};

}  // namespace

// The known bytes of input i as numbers, of which the last dimension has `count`.
static Term numbers_of(Body& b, size_t i, int64_t bits, int64_t count) {
  std::vector<int64_t> shape = b.input(i).shape();
  shape.back() = count;
  const int64_t rows = element_count(shape) / std::max<int64_t>(count, 1);
  return b.constant(unpacked(*b.input(i).constant(), bits, rows, count).reshaped(shape));
}

// The shape of the codes, and of the scales of their blocks.
static Result<std::vector<int64_t>> shape_of_codes(const OpCall& call) {
  const int64_t bits = call.integer("bits", 4);
  std::vector<int64_t> shape = call.shape(0);
  if (call.input(0).dtype != DType::kUInt8) return shape;
  if (bits != 2 && bits != 4 && bits != 8) return Error("bits is ", bits, ", expected 2, 4 or 8");
  for (const size_t i : {size_t{0}, size_t{3}}) {
    if (bits == 8 || !call.has(i) || call.input(i).constant) continue;
    return computed_at_run_time(call.graph, call.node.inputs[i], i == 0 ? "data" : "zero_points");
  }
  shape.back() *= 8 / bits;
  return shape;
}

static Result<Unit> check_scales(const OpCall& call, std::vector<int64_t> shape, const Table& t) {
  int64_t& blocks = shape[static_cast<size_t>(t.block_axis)];
  blocks = ceil_div(blocks, t.block);
  const std::vector<int64_t>& scales = call.shape(2);
  bool fits = scales.size() == shape.size();
  // A scale of floats of few bits may stand for all of another axis.
  for (size_t d = 0; fits && d < shape.size(); ++d) {
    const bool repeated =
        is_code(call.input(0).dtype) && scales[d] == 1 && d != static_cast<size_t>(t.block_axis);
    fits = scales[d] == shape[d] || repeated;
  }
  if (!fits) return Error("scales are ", print_shape(scales), ", expected ", print_shape(shape));
  if (!call.has(3)) return Unit{};
  if (is_code(call.input(0).dtype))
    return Error("zero_points do not go with data of ", dtype_name(call.input(0).dtype));
  std::vector<int64_t> zeros = scales;
  if (call.input(0).dtype == DType::kUInt8)
    zeros.back() = packed_bytes(scales.back(), call.integer("bits", 4));
  if (call.shape(3) == zeros && call.input(3).dtype == call.input(0).dtype) return Unit{};
  return Error("zero_points are ",
               dtype_name(call.input(3).dtype),
               " ",
               print_shape(call.shape(3)),
               ", expected ",
               dtype_name(call.input(0).dtype),
               " ",
               print_shape(zeros));
}

static Result<Table> table_of(Body& b) {
  const OpCall& call = b.call();
  if (call.rank(0) < 1) return Error("data have no dimensions");
  TRY_ASSIGN(const std::vector<int64_t> shape, shape_of_codes(call));
  Table t{b.input(0), b.cast(b.input(2), DType::kFloat32), b.input(3), 0, 0, 0};
  TRY_ASSIGN(t.gather_axis, call.axis("gather_axis", 0, call.rank(0)));
  TRY_ASSIGN(t.block_axis, call.axis("quantize_axis", 1, call.rank(0)));
  const bool bytes = t.codes.dtype() == DType::kUInt8;
  if (bytes && (t.gather_axis != 0 || t.block_axis != call.rank(0) - 1 || t.block_axis == 0))
    return Error("data of uint8 need gather_axis 0 and quantize_axis ",
                 std::max<int64_t>(call.rank(0) - 1, 1),
                 ", found ",
                 t.gather_axis,
                 " and ",
                 t.block_axis);
  t.block = call.integer("block_size", 128);
  if (t.block == 0 && is_code(t.codes.dtype()))
    t.block = std::max<int64_t>(t.codes.extent(t.block_axis), 1);
  if (t.block < 1) return Error("block_size is ", t.block, ", expected 16 or more");
  TRY(check_scales(call, shape, t));
  if (!bytes) return t;
  const int64_t bits = call.integer("bits", 4);
  if (bits < 8) t.codes = numbers_of(b, 0, bits, shape.back());
  if (!t.zeros.valid()) {
    t.zeros = b.constant(filled(type_of_bits(bits), call.shape(2), int64_t{1} << (bits - 1)));
  } else if (bits < 8) {
    t.zeros = numbers_of(b, 3, bits, call.shape(2).back());
  }
  return t;
}

// The scales of floats of few bits, one for each element along the blocks' axis.
static Term scale_of_each(const Table& t) {
  Body& b = *t.scales.body;
  std::vector<int64_t> shape = t.scales.shape();
  shape.insert(shape.begin() + t.block_axis + 1, t.block);
  const Term all = b.add("Expand", {b.unsqueeze(t.scales, t.block_axis + 1), b.integers(shape)});
  shape = t.scales.shape();
  shape[static_cast<size_t>(t.block_axis)] *= t.block;
  return b.slice(b.reshape(all, shape), t.block_axis, 0, t.codes.extent(t.block_axis));
}

static Term reals_of(const Table& t) {
  Body& b = *t.codes.body;
  if (is_code(t.codes.dtype())) return b.cast(t.codes, DType::kFloat32) * scale_of_each(t);
  std::vector<Term> inputs = {t.codes, t.scales};
  if (t.zeros.valid()) inputs.push_back(t.zeros);
  return b.add("DequantizeBlocks", inputs, {{"axis", t.block_axis}, {"block_size", t.block}});
}

// Whether each index names a row, beside what is gathered; not valid where all are known to.
static Term names_a_row(Term indices, int64_t rows, int64_t rank, int64_t axis) {
  Body& b = *indices.body;
  if (const std::optional<Tensor>& known = indices.constant()) {
    bool all = true;
    for (int64_t i = 0; i < known->num_elements(); ++i)
      all = all && known->get_int(i) >= -rows && known->get_int(i) < rows;
    if (all) return {};
  }
  const auto bound = [&](int64_t row) {
    return b.scalar(static_cast<double>(row), indices.dtype());
  };
  const Term named = b.add(
      "And",
      {b.add("GreaterOrEqual", {indices, bound(-rows)}), b.add("Less", {indices, bound(rows)})});
  std::vector<int64_t> shape = indices.shape();
  shape.resize(shape.size() + static_cast<size_t>(rank - 1 - axis), 1);
  return b.reshape(named, shape);
}

static void gather_block_quantized(Body& b) {
  Result<Table> table = table_of(b);
  if (!table.ok()) return b.fail(table.error());
  Table t = *table;
  const DType dtype = b.input(2).dtype();
  const int64_t rank = t.codes.rank(), rows = t.codes.extent(t.gather_axis);
  // An index that names no row gives zeros.
  Term indices = b.input(1);
  const Term named = names_a_row(indices, rows, rank, t.gather_axis);
  if (named.valid()) {
    const Term inside = b.reshape(named, indices.shape());
    indices = b.add("Where", {inside, indices, b.scalar(0, indices.dtype())});
  }
  const auto gather = [&](Term values) {
    if (!values.valid()) return values;
    if (values.extent(t.gather_axis) == rows)
      return b.add("Gather", {values, indices}, {{"axis", t.gather_axis}});
    // One scale for all rows.
    std::vector<int64_t> shape = values.shape();
    shape.erase(shape.begin() + t.gather_axis);
    shape.insert(shape.begin() + t.gather_axis, static_cast<size_t>(indices.rank()), 1);
    return b.reshape(values, shape);
  };
  Term result;
  if (t.gather_axis != t.block_axis) {
    t.codes = gather(t.codes);
    t.scales = gather(t.scales);
    t.zeros = gather(t.zeros);
    if (t.gather_axis < t.block_axis) t.block_axis += b.input(1).rank() - 1;
    result = reals_of(t);
  } else {
    result = gather(reals_of(t));
  }
  if (named.valid()) result = b.add("Where", {named, result, b.scalar(0, result.dtype())});
  b.output(0, b.cast(result, dtype));
}

static constexpr Function kGatherBlockQuantizedFunctions[] = {
    {"com.microsoft::GatherBlockQuantized",
     3,
     4,
     "bits:i block_size:i gather_axis:i quantize_axis:i",
     gather_block_quantized},
};

std::span<const Function> gather_block_quantized_functions() {
  return kGatherBlockQuantizedFunctions;
}

}  // namespace pruner
