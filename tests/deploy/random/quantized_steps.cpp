#include "steps.h"

#include <cmath>

namespace pruner {

namespace {

// The scale and the zero point of a tensor of bytes.
struct Grid {
  DType dtype;
  double scale;
  ValueId scale_id, zero_id;
};

}  // namespace

static std::string onnxruntime(const char* op) { return std::string("com.microsoft::") + op; }

// With scales that are whole numbers all of a quantized network is exact.
static Grid grid(GraphMaker& m, double scale) {
  const DType dtype = m.choose<DType>({DType::kUInt8, DType::kUInt8, DType::kInt8});
  const ValueId scale_id = m.scalar(scale, DType::kFloat32);
  const bool centred = dtype == DType::kInt8 && m.one_in(2);
  const int64_t low = dtype == DType::kUInt8 ? 0 : -128;
  const int64_t zero = centred ? 0 : m.between(low, low + 255);
  return {dtype, scale, scale_id, m.scalar(static_cast<double>(zero), dtype)};
}

static double drawn_scale(GraphMaker& m) {
  return m.one_in(2) ? m.choose({1.0, 2.0, 4.0}) : 0.02 + m.rng().uniform();
}

// Quantizes `x`. If `x` is not exact, each of the bytes may be off by one, or by as many as the
// difference that `x` may have makes.
static ValueId quantize(GraphMaker& m, ValueId x, const Grid& g) {
  const bool exact = m.facts(x).exact;
  const Ids q =
      m.add("QuantizeLinear", {x, g.scale_id, g.zero_id}, exact ? Kind::kChooses : Kind::kRounds);
  if (q.empty()) return {};
  if (!exact) m.loosen(q[0], 1 + std::ceil(3e-4 * m.facts(x).scale / g.scale));
  return q[0];
}

static ValueId dequantize(GraphMaker& m, ValueId q, const Grid& g) {
  if (!q.valid()) return {};
  const double slack = m.facts(q).slack;
  const Ids x = m.add("DequantizeLinear", {q, g.scale_id, g.zero_id}, Kind::kMoves);
  if (x.empty()) return {};
  if (slack > 0) m.loosen(x[0], slack * g.scale);
  return x[0];
}

// Returns bytes that are dequantized, and no output of the network: where the floats themselves are
// asked for, run_quantized multiplies floats. They are of an input, or of a value that is quantized
// for it.
static ValueId operand(GraphMaker& m, const Ints& shape, double scale) {
  const Grid g = grid(m, scale);
  if (m.one_in(2)) {
    const Ids fitting = m.all_that([&](ValueId id) {
      return m.dtype(id) == DType::kFloat32 && m.shape_of(id) == shape && m.facts(id).exact;
    });
    if (!fitting.empty()) {
      const ValueId x = fitting[m.rng().below(std::ssize(fitting))];
      const ValueId made = dequantize(m, quantize(m, x, g), g);
      if (made.valid()) m.hide(made);
      return made;
    }
  }
  const ValueId made = dequantize(m, m.codes(g.dtype, shape), g);
  if (made.valid()) m.hide(made);
  return made;
}

// Returns a weight of small signed bytes, dequantized; scales by channel are of that axis.
static ValueId weight(GraphMaker& m, const Ints& shape, size_t axis, bool whole) {
  Tensor bytes(DType::kInt8, shape);
  const int64_t most = m.one_in(3) ? 127 : 7;
  for (int64_t i = 0; i < bytes.num_elements(); ++i) bytes.set_int(i, m.between(-most, most));
  const bool by_channel = m.one_in(2);
  Tensor scales(DType::kFloat32, by_channel ? Ints{shape[axis]} : Ints{});
  for (int64_t i = 0; i < scales.num_elements(); ++i)
    scales.set(i, whole ? m.choose({1.0, 2.0}) : 0.01 + 0.1 * m.rng().uniform());
  const ValueId q = m.constant(bytes), scale = m.constant(scales);
  Ids operands = {q, scale};
  if (m.one_in(2)) operands.push_back(m.constant(Tensor(DType::kInt8, scales.shape())));
  const Attributes attributes = {{"axis", static_cast<int64_t>(axis)}};
  const Ids made = m.add("DequantizeLinear", operands, Kind::kMoves, attributes);
  return made.empty() ? ValueId{} : made[0];
}

// Appends a contraction of dequantized operands. Sums of whole numbers are exact: bytes are
// multiplied, and no transform of Winograd's takes part.
static Ids quantized_contraction(GraphMaker& m, bool whole) {
  const double scale = whole ? m.choose({1.0, 2.0}) : 0.02 + 0.1 * m.rng().uniform();
  const Kind kind = whole ? Kind::kAdds : Kind::kSmooth;
  // Other biases are rounded to steps of the products.
  const bool biased = whole && m.one_in(2);
  const auto bias = [&](int64_t n) {
    Tensor values(DType::kFloat32, {n});
    for (int64_t i = 0; i < n; ++i) values.set(i, 4.0 * static_cast<double>(m.between(-3, 3)));
    return m.constant(values);
  };
  if (m.one_in(2)) {
    const int64_t k = m.extent(), n = m.extent();
    Ints shape = m.one_in(3) ? Ints{m.between(1, 3), m.extent(), k} : Ints{m.extent(), k};
    if (element_count(shape) > kMostElements) return {};
    const ValueId x = operand(m, shape, scale);
    const bool gemm = shape.size() == 2 && m.one_in(2);
    const bool turned = gemm && m.one_in(2);
    const ValueId w = weight(m, turned ? Ints{n, k} : Ints{k, n}, turned ? 0 : 1, whole);
    if (!x.valid() || !w.valid()) return {};
    if (!gemm) {
      const Ids made = m.add("MatMul", {x, w}, kind);
      if (made.empty() || !biased) return made;
      return m.add("Add", {made[0], bias(n)}, kind);
    }
    Ids operands = {x, w};
    if (biased) operands.push_back(bias(n));
    return m.add("Gemm", operands, kind, {{"transB", int64_t{turned}}});
  }
  const int64_t c = m.one_in(3) ? 4 * m.between(1, 4) : m.between(1, 17);
  const bool depthwise = m.one_in(4);
  const int64_t out = depthwise ? c : m.extent();
  const Ints shape = {m.between(1, 2), c, m.between(3, 9), m.between(3, 9)};
  const int64_t taps = m.choose<int64_t>({1, 3, 3, 2});
  const Ints filter = {out, depthwise ? 1 : c, taps, taps};
  if (element_count(shape) > kMostElements || element_count(filter) > 3 * kMostElements) return {};
  const ValueId x = operand(m, shape, scale);
  const ValueId w = weight(m, filter, 0, whole);
  if (!x.valid() || !w.valid()) return {};
  Attributes attributes = window(m, x, {taps, taps}, false);
  attributes["group"] = depthwise ? c : int64_t{1};
  Ids operands = {x, w};
  if (biased) operands.push_back(bias(out));
  return m.add("Conv", operands, kind, attributes);
}

// Appends an operator that run_quantized knows, on dequantized operands.
static Ids quantized_operator(GraphMaker& m, bool whole) {
  const Ints shape = {m.between(1, 2), m.between(1, 9), m.between(3, 9), m.between(3, 9)};
  const double scale = whole ? m.choose({1.0, 2.0}) : 0.02 + 0.1 * m.rng().uniform();
  const ValueId x = operand(m, shape, scale);
  if (!x.valid()) return {};
  switch (m.rng().below(10)) {
    case 0:
    case 1: {
      // ONNX Runtime's operators add the zero point before they round: a half may go elsewhere.
      const ValueId y = operand(m, shape, whole ? m.choose({1.0, 2.0}) : m.rng().uniform() + 0.1);
      if (!y.valid()) return {};
      return m.add(m.choose<const char*>({"Add", "Mul"}), {x, y}, Kind::kSmooth);
    }
    case 2: {
      Ints other = shape;
      other[1] = m.between(1, 9);
      const ValueId y = operand(m, other, m.one_in(2) ? scale : scale + 1);
      if (!y.valid()) return {};
      return m.add(
          "Concat", m.one_in(3) ? Ids{x, y, x} : Ids{x, y}, Kind::kMoves, {{"axis", int64_t{1}}});
    }
    case 3: {
      Attributes attributes = window(m, x, {2, 3}, true);
      attributes["kernel_shape"] = Ints{2, 3};
      if (m.one_in(2)) return m.add("MaxPool", {x}, Kind::kMoves, attributes);
      return m.add("AveragePool", {x}, Kind::kSmooth, attributes);
    }
    case 4: return m.add("GlobalAveragePool", {x}, Kind::kSmooth);
    case 5:
      return m.add(
          m.choose<const char*>({"Sigmoid", "LeakyRelu", "Tanh", "HardSwish"}), {x}, Kind::kSmooth);
    case 6: return m.add("Softmax", {x}, Kind::kSmooth, {{"axis", m.between(-3, -1)}});
    case 7: return m.add("Transpose", {x}, Kind::kMoves, {{"perm", m.permutation(4)}});
    case 8:
      return m.add("Resize",
                   {x, {}, {}, m.integers({shape[0], shape[1], m.extent(), m.extent()})},
                   Kind::kMoves,
                   {{"mode", std::string("nearest")}});
    default: return m.add("Reshape", {x, m.integers({shape[0], -1, shape[3]})}, Kind::kMoves);
  }
}

bool quantized_chain(GraphMaker& m) {
  const bool whole = !m.one_in(3);
  Ids made = m.one_in(2) ? quantized_contraction(m, whole) : quantized_operator(m, whole);
  if (made.empty()) return false;
  if (m.one_in(3)) {
    made = m.one_in(2)
               ? m.add("Relu", made, Kind::kMoves)
               : m.add("Clip",
                       {made[0], m.scalar(0, DType::kFloat32), m.scalar(6, DType::kFloat32)},
                       Kind::kMoves);
    if (made.empty()) return false;
  }
  if (m.one_in(6)) return true;
  const double range = std::max(m.facts(made[0]).scale, 0.1);
  const double step = whole ? std::exp2(std::ceil(std::log2(range / 128))) : range / 100;
  const Grid g = grid(m, step);
  const ValueId q = quantize(m, made[0], g);
  if (!q.valid()) return false;
  return m.one_in(5) || dequantize(m, q, g).valid();
}

bool quantize_alone(GraphMaker& m) {
  const ValueId x =
      m.pick([&](ValueId id) { return m.dtype(id) == DType::kFloat32; }, m.shape(m.between(1, 4)));
  if (m.dtype(x) != DType::kFloat32) return false;
  if (m.one_in(3)) {
    const DType dtype = m.choose<DType>({DType::kUInt16, DType::kInt16});
    const double scale = drawn_scale(m);
    const Grid g = {dtype,
                    scale,
                    m.scalar(scale, DType::kFloat32),
                    m.scalar(static_cast<double>(2 * m.between(0, 1500)), dtype)};
    return dequantize(m, quantize(m, x, g), g).valid();
  }
  // With an even zero point a half goes where it does in an operator that adds the zero point
  // before it rounds.
  Grid g = grid(m, drawn_scale(m));
  g.zero_id = m.scalar(static_cast<double>(2 * m.between(0, 60)), g.dtype);
  return dequantize(m, quantize(m, x, g), g).valid();
}

bool dequantize_blocks(GraphMaker& m) {
  const DType dtype = m.choose<DType>({DType::kUInt8, DType::kInt8, DType::kInt16, DType::kInt32});
  const Ints shape = m.shape(m.between(2, 3));
  const int64_t axis = m.rng().below(std::ssize(shape));
  const int64_t block = m.one_in(2) ? m.between(1, 5) : 0;
  Ints scales = {shape[static_cast<size_t>(axis)]};
  if (block > 0) {
    scales = shape;
    int64_t& n = scales[static_cast<size_t>(axis)];
    n = (n + block - 1) / block;
  }
  const ValueId q = dtype == DType::kInt32 ? m.fresh(dtype, shape) : m.codes(dtype, shape);
  Ids operands = {q, m.positive(DType::kFloat32, scales)};
  if (dtype != DType::kInt32 && m.one_in(2)) operands.push_back(m.fresh(dtype, scales, true));
  Attributes attributes = {{"axis", axis}};
  if (block > 0) attributes["block_size"] = block;
  return m.one("DequantizeLinear", operands, Kind::kMoves, attributes);
}

bool integer_product(GraphMaker& m) {
  const DType x_type = m.choose<DType>({DType::kUInt8, DType::kUInt8, DType::kInt8});
  const DType w_type = m.choose<DType>({DType::kInt8, DType::kInt8, DType::kUInt8});
  const auto zero = [&](DType dtype) {
    Tensor tensor(dtype, {});
    tensor.set_int(0, m.one_in(2) ? 0 : m.between(least_int(dtype), greatest_int(dtype)));
    return m.one_in(6) ? m.input(tensor) : m.constant(tensor);
  };
  Ids operands;
  Attributes attributes;
  const bool conv = m.one_in(2);
  if (conv) {
    const int64_t c = m.between(1, 9);
    const bool depthwise = m.one_in(4);
    const Ints shape = {m.between(1, 2), c, m.between(3, 9), m.between(3, 9)};
    const int64_t taps = m.between(1, 3);
    const Ints filter = {depthwise ? c : m.extent(), depthwise ? 1 : c, taps, taps};
    const ValueId x = m.codes(x_type, shape);
    const ValueId w = m.codes(w_type, filter, true);
    attributes = window(m, x, {taps, taps}, false);
    attributes["group"] = depthwise ? c : int64_t{1};
    operands = {x, w};
  } else {
    const int64_t k = m.one_in(3) ? m.between(1, 40) : m.extent(), n = m.extent();
    const Ints shape =
        m.one_in(3) ? Ints{m.between(1, 2), m.between(1, 9), k} : Ints{m.extent(), k};
    const ValueId x = m.codes(x_type, shape);
    const ValueId w = m.codes(w_type, {k, n}, true);
    operands = {x, w};
  }
  if (m.one_in(2)) {
    const ValueId x_zero = zero(x_type);
    operands.push_back(x_zero);
    if (m.one_in(2)) operands.push_back(zero(w_type));
  }
  return m.one(conv ? "ConvInteger" : "MatMulInteger", operands, Kind::kChooses, attributes);
}

// Appends an operator of bytes, as ONNX Runtime's optimizer writes them.
bool quantized_bytes(GraphMaker& m) {
  const DType dtype = m.choose<DType>({DType::kUInt8, DType::kUInt8, DType::kInt8});
  const auto scale = [&] { return m.scalar(0.05 + m.rng().uniform(), DType::kFloat32); };
  const auto zero = [&](DType of) {
    return m.scalar(static_cast<double>(m.between(least_int(of), greatest_int(of))), of);
  };
  const auto with_grid = [&](Ids& operands, ValueId q) {
    operands.push_back(q);
    operands.push_back(scale());
    operands.push_back(zero(m.dtype(q)));
  };
  const auto end = [&](Ids& operands) {
    operands.push_back(m.scalar(1 + 40 * m.rng().uniform(), DType::kFloat32));
    operands.push_back(zero(dtype));
  };
  const Ints shape = {m.between(1, 2), m.between(1, 9), m.between(2, 9), m.between(2, 9)};
  Ids operands;
  switch (m.rng().below(7)) {
    case 0: {
      const int64_t k = m.extent(), n = m.extent();
      with_grid(operands, m.codes(dtype, {m.extent(), k}));
      with_grid(operands, m.codes(DType::kInt8, {k, n}, true));
      end(operands);
      return m.one("QLinearMatMul", operands, Kind::kChooses);
    }
    case 1: {
      const ValueId x = m.codes(dtype, shape);
      with_grid(operands, x);
      operands.back() = zero(dtype);
      const int64_t out = m.extent();
      operands.push_back(m.codes(DType::kInt8, {out, shape[1], 2, 2}, true));
      operands.push_back(scale());
      operands.push_back(m.scalar(0, DType::kInt8));
      end(operands);
      if (m.one_in(2)) operands.push_back(m.fresh(DType::kInt32, {out}, true));
      return m.one("QLinearConv", operands, Kind::kChooses, window(m, x, {2, 2}, false));
    }
    case 2:
    case 3: {
      const ValueId x = m.codes(dtype, shape);
      Ints other = shape;
      if (m.one_in(3)) other[1] = 1;
      with_grid(operands, x);
      with_grid(operands, m.codes(dtype, other, true));
      end(operands);
      const char* op = m.choose<const char*>({"QLinearAdd", "QLinearMul"});
      return m.one(onnxruntime(op), operands, Kind::kChooses);
    }
    case 4:
      with_grid(operands, m.codes(dtype, shape));
      end(operands);
      return m.one(onnxruntime("QLinearGlobalAveragePool"), operands, Kind::kChooses);
    case 5: {
      const ValueId s = m.scalar(0.1, DType::kFloat32);
      operands = {s, zero(dtype)};
      with_grid(operands, m.codes(dtype, shape));
      with_grid(operands, m.codes(dtype, shape));
      return m.one(onnxruntime("QLinearConcat"), operands, Kind::kChooses, {{"axis", int64_t{1}}});
    }
    default: {
      with_grid(operands, m.codes(dtype, shape));
      operands.push_back(m.scalar(1.0 / 256, DType::kFloat32));
      operands.push_back(zero(dtype));
      const char* op = m.choose<const char*>({"QLinearSigmoid", "QLinearSoftmax"});
      return m.one(onnxruntime(op), operands, Kind::kRounds);
    }
  }
}

bool dynamic_quantization(GraphMaker& m) {
  const ValueId x = m.pick(
      [&](ValueId id) {
        return m.dtype(id) == DType::kFloat32 && m.rank(id) >= 2 && m.facts(id).exact;
      },
      m.shape(2));
  if (m.dtype(x) != DType::kFloat32 || m.rank(x) < 2) return false;
  const int64_t n = m.extent();
  const Ids q = m.add("DynamicQuantizeLinear", {x}, Kind::kMoves, {}, 3);
  if (q.empty()) return false;
  const ValueId w = m.codes(DType::kInt8, {m.shape_of(x).back(), n}, true);
  if (m.one_in(2)) return m.one("MatMulInteger", {q[0], w, q[2]}, Kind::kChooses);
  const ValueId scale = m.scalar(0.05, DType::kFloat32);
  return m.one(onnxruntime("MatMulIntegerToFloat"), {q[0], w, q[1], scale, q[2]}, Kind::kSmooth);
}

// A product of few rows with a constant matrix of few bits.
bool coded_product(GraphMaker& m) {
  const int64_t block = m.choose<int64_t>({16, 32, 24}), blocks = m.between(1, 3);
  const int64_t k = block * blocks - (m.one_in(4) ? 8 : 0), n = m.extent();
  const Ints rows =
      m.one_in(2) ? Ints{m.between(1, 9), k} : Ints{m.between(1, 2), m.between(1, 4), k};
  const ValueId x = m.fresh(DType::kFloat32, rows);
  const Attributes attributes = {{"block_size", block}, {"axis", int64_t{0}}};
  if (m.one_in(2)) {
    const DType dtype = m.choose<DType>({DType::kUInt4, DType::kInt4, DType::kUInt8, DType::kInt8});
    Tensor codes(dtype, {k, n}), scales(DType::kFloat32, {blocks, n}), zeros(dtype, {blocks, n});
    for (Tensor* each : {&codes, &zeros})
      for (int64_t i = 0; i < each->num_elements(); ++i)
        each->set_int(i, m.between(least_int(dtype), greatest_int(dtype)));
    for (int64_t i = 0; i < scales.num_elements(); ++i)
      scales.set(i, 0.01 + 0.05 * m.rng().uniform());
    Ids operands = {m.constant(codes), m.constant(scales)};
    if (m.one_in(2)) operands.push_back(m.constant(zeros));
    const Ids w = m.add("DequantizeLinear", operands, Kind::kMoves, attributes);
    if (w.empty()) return false;
    const Ids made = m.add("MatMul", {x, w[0]}, Kind::kSmooth);
    if (made.empty()) return false;
    epilogue(m, made[0], m.shape_of(made[0]).size() - 1);
    return true;
  }
  if (block == 24 && m.one_in(2)) return false;
  const int64_t bits = m.choose<int64_t>({2, 4, 8});
  const ValueId codes = m.codes(DType::kUInt8, {n, blocks, block * bits / 8}, true);
  if (!m.value(codes).constant) return false;
  Tensor scales(DType::kFloat32, {n * blocks});
  for (int64_t i = 0; i < scales.num_elements(); ++i)
    scales.set(i, 0.01 + 0.05 * m.rng().uniform());
  return m.one(onnxruntime("MatMulNBits"),
               {x, codes, m.constant(scales)},
               Kind::kSmooth,
               {{"K", k}, {"N", n}, {"bits", bits}, {"block_size", block}});
}

// Functions of bytes one after the other, each quantized again.
bool byte_chain(GraphMaker& m) {
  const Ints shape = m.shape(m.between(1, 4));
  Grid g = grid(m, 0.02 + 0.05 * m.rng().uniform());
  ValueId x = dequantize(m, m.codes(g.dtype, shape), g);
  for (int64_t steps = m.between(1, 3); steps-- > 0 && x.valid();) {
    const char* op = m.choose<const char*>(
        {"Sigmoid", "Tanh", "Erf", "Gelu", "HardSwish", "Relu", "Exp", "Softplus", "Mish"});
    const Ids made = m.add(op, {x}, Kind::kSmooth);
    if (made.empty()) return false;
    if (m.one_in(4)) return true;
    const double slack = m.facts(x).slack;
    g = grid(m, std::max(m.facts(made[0]).scale, 0.1) / 100);
    const ValueId q = quantize(m, made[0], g);
    if (!q.valid()) return false;
    // No slope of these functions is above 1.6, but for that of the exponential function.
    const double slope = op == std::string("Exp") ? m.facts(made[0]).scale + 1 : 1.6;
    m.loosen(q, m.facts(q).slack + std::ceil(slope * slack / g.scale));
    x = dequantize(m, q, g);
  }
  return x.valid();
}

}  // namespace pruner
