// Operators that make one element from the elements at the same place of their inputs, which
// broadcast as in numpy. A constant with one element becomes an immediate in the expression.
#include <algorithm>
#include <array>
#include <cmath>

#include "graph/ops/op.h"
#include "tensor/code.h"
#include "tensor/multiply_add.h"
#include "tensor/operator_dags.h"

namespace pruner {

using enum Fusion;

namespace {

using Operands = std::span<const Expr>;

Expr imm(double value, const Expr& like) {
  return is_float(like->dtype) ? float_imm(value, like->dtype)
                               : int_imm(static_cast<int64_t>(value), like->dtype);
}

Expr fn(Intrinsic f, const Expr& x) { return call(f, {x}); }
// 0 - x would be +0 for x = +0.
Expr negate(const Expr& x) { return is_float(x->dtype) ? x * imm(-1, x) : imm(0, x) - x; }
Expr logistic(const Expr& x) { return fn(Intrinsic::kSigmoid, x); }
Expr compare(BinaryOp op, const Expr& a, const Expr& b) { return binary(op, a, b); }
Expr clamp(const Expr& x, double low, double high) {
  return min(max(x, imm(low, x)), imm(high, x));
}

// ONNX, Selu: gamma * x above 0, else gamma * alpha * (exp(x) - 1); Elu has a gamma of 1.
Expr elu(const Expr& x, double alpha, double gamma = 1) {
  const Expr below = imm(gamma * alpha, x) * fn(Intrinsic::kExpm1, x);
  const Expr above = gamma == 1 ? x : imm(gamma, x) * x;
  return select(compare(BinaryOp::kGt, x, imm(0, x)), above, below);
}

// ONNX, Gelu: x / 2 * (1 + erf(x / sqrt(2))), or its approximation by tanh. The sums with 1 would
// lose all digits of the lower tail, so that they are a normal distribution's and, as
// (1 + tanh(t)) / 2 = sigmoid(2 t), a sigmoid.
Expr gelu(const OpCall& c, const Expr& x) {
  const double pi = 3.14159265358979323846;
  if (c.text("approximate", "none") == "tanh") {
    // 2 * sqrt(2 / pi) * (x + 0.044715 * x^3), with few roundings: the tail is exp() of it.
    const double factor = 2 * std::sqrt(2 / pi);
    return x * logistic(x * (imm(factor, x) + imm(0.044715 * factor, x) * (x * x)));
  }
  return x * fn(Intrinsic::kNormalCdf, x);
}

// x * tanh(softplus(x)): with e = exp(x), tanh(log(1 + e)) is n / (n + 2) for n = e * (e + 2). This
// loses no digits where e is little; where x is more than 20, it is 1 in float32.
Expr mish(const Expr& x) {
  const Expr e = fn(Intrinsic::kExp, min(x, imm(20, x)));
  const Expr n = e * (e + imm(2, x));
  return x * (n / (n + imm(2, x)));
}

Expr sign(const Expr& x) {
  // An x that is neither above nor below 0 is its own sign: 0 or NaN.
  const Expr negative = select(x < imm(0, x), imm(-1, x), is_float(x->dtype) ? x : imm(0, x));
  return select(compare(BinaryOp::kGt, x, imm(0, x)), imm(1, x), negative);
}

// Integers divide towards zero.
Expr divide(const Expr& a, const Expr& b) {
  if (is_float(a->dtype)) return a / b;
  const Expr quotient = floor_div(a, b);
  const Expr inexact = compare(BinaryOp::kNe, floor_mod(a, b), imm(0, a));
  const Expr below = compare(BinaryOp::kNe, a < imm(0, a), b < imm(0, b));
  return select(inexact && below, quotient + imm(1, a), quotient);
}

// The remainder with the sign of the divisor, or with fmod of the dividend.
Expr modulo(const OpCall& c, const Expr& a, const Expr& b) {
  if (c.integer("fmod", 0) == 0) return floor_mod(a, b);
  if (!is_float(a->dtype)) return a - divide(a, b) * b;
  const Expr size = floor_mod(fn(Intrinsic::kAbs, a), fn(Intrinsic::kAbs, b));
  const Expr rest = select(a < imm(0, a), negate(size), size);
  // Zero keeps its sign, but the remainder by 0 stays NaN.
  return select(compare(BinaryOp::kEq, a, imm(0, a)), a * (size + imm(1, a)), rest);
}

// x to the power of an integer, by squares; integers wrap around. A power of the least 6 bits of y
// and of its sign: beyond them, only those of 0, 1 and -1 have not left 64 bits.
Expr whole_power(const Expr& x, const Expr& y) {
  const Expr one = imm(1, x), two = imm(2, y), zero = imm(0, y);
  const auto odd = [&](const Expr& of) {
    return compare(BinaryOp::kEq, floor_mod(of, two), imm(1, y));
  };
  Expr power = one, square = x, rest = y;
  for (int bit = 0; bit < 6; ++bit) {
    power = power * select(odd(rest), square, one);
    square = square * square;
    rest = floor_div(rest, two);
  }
  if (!is_signed_int(y->dtype)) return power;
  // 1 / x^-y, of which only 1 and -1 leave something.
  const Expr unit = compare(BinaryOp::kEq, fn(Intrinsic::kAbs, x), one);
  const Expr inverse = select(unit, select(odd(y), x, one), imm(0, x));
  return select(y < zero, inverse, power);
}

// The usual exponents need no call of pow.
Expr power(const OpCall& c, const Expr& x, const Expr& y) {
  const std::optional<double> exponent = c.scalar(1);
  if (exponent == 2.0) return x * x;
  if (exponent == 3.0) return x * x * x;
  if (is_float(x->dtype)) return call(Intrinsic::kPow, {x, cast(x->dtype, y)});
  if (!is_float(y->dtype)) return whole_power(x, y);
  const Expr real = call(Intrinsic::kPow, {cast(DType::kFloat64, x), cast(DType::kFloat64, y)});
  return cast(x->dtype, real);
}

// Casts x to the float that a code is made of: float32 if it holds the type, else float64.
Expr as_real(const Expr& x) {
  if (x->dtype == DType::kFloat64) return x;
  const bool exact = is_float(x->dtype) || row_of(x->dtype).bits <= 16;
  return cast(exact ? DType::kFloat32 : DType::kFloat64, x);
}

// Returns the number that a code stands for; other values stay as they are.
Expr decoded(const Expr& x) { return is_code(x->dtype) ? decode_code(x) : x; }

Expr convert(const OpCall& c, const Expr& from) {
  const DType to = c.output().dtype;
  if (to == from->dtype) return from;
  const Expr x = decoded(from);
  if (to == x->dtype) return x;
  if (is_code(to)) {
    const std::string mode = c.text("round_mode", "up");
    const CodeRounding rounding = mode == "down"      ? CodeRounding::kDown
                                  : mode == "nearest" ? CodeRounding::kNearest
                                                      : CodeRounding::kUp;
    return encode_code(to, as_real(x), c.integer("saturate", 1) != 0, rounding);
  }
  if (to == DType::kBool) return compare(BinaryOp::kNe, x, imm(0, x));
  return cast(to, x);
}

Expr clip(const OpCall& c, Operands x) {
  Expr result = x[0];
  if (c.has(1)) result = max(result, x[1]);
  if (c.has(2)) result = min(result, x.back());
  return result;
}

// Whether x lies beyond the greatest number of its type.
Expr is_infinite(const OpCall& c, const Expr& x) {
  const Expr most = imm(greatest_float(x->dtype), x);
  const Expr above = compare(BinaryOp::kGt, x, most), below = x < negate(most);
  const bool positive = c.integer("detect_positive", 1) != 0;
  const bool negative = c.integer("detect_negative", 1) != 0;
  if (positive && negative) return compare(BinaryOp::kOr, above, below);
  if (positive) return above;
  return negative ? below : x < x;
}

// Dequantize and Quantize, of ours: an integer q stands for (q - zero) * scale. Their operands
// behind the first (a scale; a zero point) may be left out, and broadcast to it.
Expr dequantize(const OpCall& c, Operands x) {
  Expr real = cast(DType::kFloat32, decoded(x[0]));
  if (c.has(2)) real = real - cast(DType::kFloat32, decoded(x[2]));
  return real * x[1];
}

// Quantizes the ratio x / scale: clamps it to the type's numbers less zero, rounds, and adds zero.
// NaN becomes the least number: a cast makes 0 of NaN, and signed types are cast less the least.
Expr quantize(const OpCall& c, Operands x) {
  const DType to = c.output().dtype;
  const Expr zero = c.has(2) ? cast(DType::kFloat32, decoded(x.back())) : float_imm(0);
  const Expr low = float_imm(static_cast<double>(least_int(to))) - zero;
  const Expr high = float_imm(static_cast<double>(greatest_int(to))) - zero;
  const Expr whole = fn(Intrinsic::kRound, max(min(x[0], high), low));
  if (is_code(to)) return encode_code(to, whole + zero, true, CodeRounding::kNearest);
  if (!is_signed_int(to)) return cast(to, whole + zero);
  const Expr above = cast(DType::kInt32, whole - low);
  return cast(to, above + int_imm(least_int(to), DType::kInt32));
}

Types infer_elementwise(const OpCall& call);
Types infer_float_elementwise(const OpCall& call);
Types infer_int_elementwise(const OpCall& call);
Types infer_cast(const OpCall& call);
Types infer_bit_cast(const OpCall& call);
Types infer_dequantize(const OpCall& call);
Types infer_quantize(const OpCall& call);
StageId lower_elementwise(const OpCall& call, StageSink& to);
StageId lower_quantize(const OpCall& call, StageSink& to);

constexpr GraphOp elementwise(std::string_view name,
                              Fusion fusion,
                              size_t fewest,
                              size_t most,
                              std::string_view attributes = "") {
  return {name, fusion, fewest, most, attributes, infer_elementwise, lower_elementwise};
}
/// Rows of operators: `each` has one input of any number type, `real` one of reals, `pair` two
/// inputs, `many` any number of inputs.
constexpr GraphOp each(std::string_view name, std::string_view attributes = "") {
  return elementwise(name, kElemWise, 1, 1, attributes);
}
constexpr GraphOp real(std::string_view name, std::string_view attributes = "") {
  return {name, kElemWise, 1, 1, attributes, infer_float_elementwise, lower_elementwise};
}
constexpr GraphOp pair(std::string_view name, std::string_view attributes = "") {
  return elementwise(name, kBroadcast, 2, 2, attributes);
}
constexpr GraphOp many(std::string_view name) {
  return elementwise(name, kBroadcast, 1, kAnyNumber);
}

struct Row {
  GraphOp op;
  std::string_view stage;  // TVM's name
  Expr (*fn)(const OpCall&, Operands);
};

constexpr Row kRows[] = {
    {each("Abs"), "T_abs", [](const OpCall&, Operands x) { return fn(Intrinsic::kAbs, x[0]); }},
    {real("Acos").with(kNotOfDouble),
     "T_acos",
     [](const OpCall&, Operands x) { return fn(Intrinsic::kAcos, x[0]); }},
    {real("Acosh").with(kNotOfDouble),
     "T_acosh",
     [](const OpCall&, Operands x) { return fn(Intrinsic::kAcosh, x[0]); }},
    {pair("Add").with(kCommutative),
     "T_add",
     [](const OpCall&, Operands x) { return x[0] + x[1]; }},
    {pair("And").with(kOfTruth),
     "T_logical_and",
     [](const OpCall&, Operands x) { return x[0] && x[1]; }},
    {real("Asin").with(kNotOfDouble),
     "T_asin",
     [](const OpCall&, Operands x) { return fn(Intrinsic::kAsin, x[0]); }},
    {real("Asinh").with(kNotOfDouble),
     "T_asinh",
     [](const OpCall&, Operands x) { return fn(Intrinsic::kAsinh, x[0]); }},
    {real("Atan").with(kNotOfDouble),
     "T_atan",
     [](const OpCall&, Operands x) { return fn(Intrinsic::kAtan, x[0]); }},
    {real("Atanh").with(kNotOfDouble),
     "T_atanh",
     [](const OpCall&, Operands x) { return fn(Intrinsic::kAtanh, x[0]); }},
    {GraphOp{"BitCast", kElemWise, 1, 1, "to:s", infer_bit_cast, lower_elementwise}.from(26).with(
         kTakesCodes),
     "T_bitcast",
     [](const OpCall& c, Operands x) { return bit_cast(c.output().dtype, x[0]); }},
    {GraphOp{"BitwiseNot", kElemWise, 1, 1, "", infer_int_elementwise, lower_elementwise}.from(18),
     "T_bitwise_not",
     [](const OpCall&, Operands x) {
       const DType dtype = x[0]->dtype;
       return int_imm(is_signed_int(dtype) ? -1 : greatest_int(dtype), dtype) - x[0];
     }},
    {GraphOp{"Cast", kElemWise, 1, 1, "round_mode:s saturate:i to:s", infer_cast, lower_elementwise}
         .with(kTakesCodes),
     "T_cast",
     [](const OpCall& c, Operands x) { return convert(c, x[0]); }},
    {real("Ceil"), "T_ceil", [](const OpCall&, Operands x) { return fn(Intrinsic::kCeil, x[0]); }},
    {GraphOp{"Clip", kElemWise, 1, 3, "", infer_elementwise, lower_elementwise}.moved(
         "min:1 max:2"),
     "T_clip",
     clip},
    {real("Cos"), "T_cos", [](const OpCall&, Operands x) { return fn(Intrinsic::kCos, x[0]); }},
    {real("Cosh").with(kNotOfDouble),
     "T_cosh",
     [](const OpCall&, Operands x) { return fn(Intrinsic::kCosh, x[0]); }},
    {GraphOp{"Dequantize", kBroadcast, 2, 3, "", infer_dequantize, lower_elementwise}.with(
         kMixesTypes | kTakesCodes | kOwn),
     "T_dequantize",
     dequantize},
    {pair("Div", "exact:i"),
     "T_divide",
     [](const OpCall&, Operands x) { return divide(x[0], x[1]); }},
    {real("Elu", "alpha:f"),
     "T_elu",
     [](const OpCall& c, Operands x) { return elu(x[0], c.number("alpha", 1)); }},
    {pair("Equal").with(kComparison | kOfAnything),
     "T_equal",
     [](const OpCall&, Operands x) { return compare(BinaryOp::kEq, x[0], x[1]); }},
    {real("Erf"), "T_erf", [](const OpCall&, Operands x) { return fn(Intrinsic::kErf, x[0]); }},
    {real("Exp"), "T_exp", [](const OpCall&, Operands x) { return fn(Intrinsic::kExp, x[0]); }},
    // Expm1 is our operator, as in torch: exp(x) - 1, exact near 0.
    {real("Expm1").with(kOfTorch),
     "T_expm1",
     [](const OpCall&, Operands x) { return fn(Intrinsic::kExpm1, x[0]); }},
    {real("Floor"),
     "T_floor",
     [](const OpCall&, Operands x) { return fn(Intrinsic::kFloor, x[0]); }},
    {real("Gelu", "approximate:s").from(20),
     "T_gelu",
     [](const OpCall& c, Operands x) { return gelu(c, x[0]); }},
    {pair("Greater").with(kComparison),
     "T_greater",
     [](const OpCall&, Operands x) { return compare(BinaryOp::kGt, x[0], x[1]); }},
    {pair("GreaterOrEqual").with(kComparison),
     "T_greater_equal",
     [](const OpCall&, Operands x) { return x[0] >= x[1]; }},
    {real("HardSigmoid", "alpha:f beta:f"),
     "T_hard_sigmoid",
     [](const OpCall& c, Operands x) {
       const Expr line =
           imm(c.number("alpha", 0.2), x[0]) * x[0] + imm(c.number("beta", 0.5), x[0]);
       return clamp(line, 0, 1);
     }},
    {real("HardSwish").from(14),
     "T_hard_swish",
     [](const OpCall&, Operands x) {
       return x[0] * clamp(x[0] * imm(1.0 / 6, x[0]) + imm(0.5, x[0]), 0, 1);
     }},
    {real("IsInf", "detect_negative:i detect_positive:i").with(kComparison),
     "T_isinf",
     [](const OpCall& c, Operands x) { return is_infinite(c, x[0]); }},
    {real("IsNaN").with(kComparison),
     "T_isnan",
     [](const OpCall&, Operands x) { return compare(BinaryOp::kNe, x[0], x[0]); }},
    {real("LeakyRelu", "alpha:f"),
     "T_leaky_relu",
     [](const OpCall& c, Operands x) {
       return select(x[0] < imm(0, x[0]), imm(c.number("alpha", 0.01), x[0]) * x[0], x[0]);
     }},
    {pair("Less").with(kComparison),
     "T_less",
     [](const OpCall&, Operands x) { return x[0] < x[1]; }},
    {pair("LessOrEqual").with(kComparison),
     "T_less_equal",
     [](const OpCall&, Operands x) { return compare(BinaryOp::kLe, x[0], x[1]); }},
    {real("Log"), "T_log", [](const OpCall&, Operands x) { return fn(Intrinsic::kLog, x[0]); }},
    // Log1p is our operator, as in torch: log(1 + x), exact near 0.
    {real("Log1p").with(kOfTorch),
     "T_log1p",
     [](const OpCall&, Operands x) { return fn(Intrinsic::kLog1p, x[0]); }},
    {many("Max").with(kCommutative),
     "T_maximum",
     [](const OpCall&, Operands x) { return max(x[0], x[1]); }},
    {many("Min").with(kCommutative),
     "T_minimum",
     [](const OpCall&, Operands x) { return min(x[0], x[1]); }},
    {real("Mish").from(18), "T_mish", [](const OpCall&, Operands x) { return mish(x[0]); }},
    {pair("Mod", "fmod:i"),
     "T_mod",
     [](const OpCall& c, Operands x) { return modulo(c, x[0], x[1]); }},
    {pair("Mul").with(kCommutative),
     "T_multiply",
     [](const OpCall&, Operands x) { return x[0] * x[1]; }},
    // MultiplyAdd is our operator; it rounds once in float32, as a fused multiply-add does.
    {elementwise("MultiplyAdd", kBroadcast, 3, 3).with(kOwn),
     "T_multiply_add",
     [](const OpCall&, Operands x) {
       const bool single = x[0]->dtype == DType::kFloat32;
       return single ? multiply_add(x[0], x[1], x[2]) : x[0] * x[1] + x[2];
     }},
    {each("Neg"), "T_negative", [](const OpCall&, Operands x) { return negate(x[0]); }},
    {each("Not").with(kOfTruth),
     "T_logical_not",
     [](const OpCall&, Operands x) { return fn(Intrinsic::kNot, x[0]); }},
    {pair("Or").with(kOfTruth),
     "T_logical_or",
     [](const OpCall&, Operands x) { return compare(BinaryOp::kOr, x[0], x[1]); }},
    {GraphOp{"PRelu", kBroadcast, 2, 2, "", infer_float_elementwise, lower_elementwise},
     "T_prelu",
     [](const OpCall&, Operands x) { return select(x[0] < imm(0, x[0]), x[0] * x[1], x[0]); }},
    {pair("Pow").with(kMixesTypes),
     "T_power",
     [](const OpCall& c, Operands x) { return power(c, x[0], x[1]); }},
    {GraphOp{"Quantize", kBroadcast, 1, 3, "to:s", infer_quantize, lower_quantize}.with(
         kMixesTypes | kTakesCodes | kOwn),
     "T_quantize",
     quantize},
    {real("Reciprocal"),
     "T_reciprocal",
     [](const OpCall&, Operands x) { return imm(1, x[0]) / x[0]; }},
    {each("Relu"), "T_relu", [](const OpCall&, Operands x) { return max(x[0], imm(0, x[0])); }},
    {real("Round"),
     "T_round",
     [](const OpCall&, Operands x) { return fn(Intrinsic::kRound, x[0]); }},
    {real("Selu", "alpha:f gamma:f"),
     "T_selu",
     [](const OpCall& c, Operands x) {
       return elu(x[0],
                  c.number("alpha", 1.67326319217681884765625),
                  c.number("gamma", 1.05070102214813232421875));
     }},
    {real("Sigmoid"), "T_sigmoid", [](const OpCall&, Operands x) { return logistic(x[0]); }},
    {each("Sign"), "T_sign", [](const OpCall&, Operands x) { return sign(x[0]); }},
    {real("Sin"), "T_sin", [](const OpCall&, Operands x) { return fn(Intrinsic::kSin, x[0]); }},
    {real("Sinh").with(kNotOfDouble),
     "T_sinh",
     [](const OpCall&, Operands x) { return fn(Intrinsic::kSinh, x[0]); }},
    {real("Softplus"),
     "T_softplus",
     [](const OpCall&, Operands x) {
       // log(1 + exp(x)) without overflow for large x.
       const Expr tail = fn(Intrinsic::kExp, negate(fn(Intrinsic::kAbs, x[0])));
       return max(x[0], imm(0, x[0])) + fn(Intrinsic::kLog1p, tail);
     }},
    {real("Softsign"),
     "T_softsign",
     [](const OpCall&, Operands x) { return x[0] / (imm(1, x[0]) + fn(Intrinsic::kAbs, x[0])); }},
    {real("Sqrt"), "T_sqrt", [](const OpCall&, Operands x) { return fn(Intrinsic::kSqrt, x[0]); }},
    {pair("Sub"), "T_subtract", [](const OpCall&, Operands x) { return x[0] - x[1]; }},
    {many("Sum").with(kCommutative),
     "T_add",
     [](const OpCall&, Operands x) { return x[0] + x[1]; }},
    {real("Tan").with(kNotOfDouble),
     "T_tan",
     [](const OpCall&, Operands x) { return fn(Intrinsic::kTan, x[0]); }},
    {real("Tanh"), "T_tanh", [](const OpCall&, Operands x) { return fn(Intrinsic::kTanh, x[0]); }},
    {GraphOp{"Where", kBroadcast, 3, 3, "", infer_elementwise, lower_elementwise}.with(kOfAnything),
     "T_where",
     [](const OpCall&, Operands x) { return select(x[0], x[1], x[2]); }},
    {pair("Xor").with(kOfTruth),
     "T_logical_xor",
     [](const OpCall&, Operands x) { return compare(BinaryOp::kNe, x[0], x[1]); }},
};

using Operand = std::variant<StageId, Expr>;

// A stage that maps the row's function over operands, each a stage or an immediate.
StageId add_mapped(StageSink& to,
                   const Row& row,
                   const OpCall& call,
                   std::span<const Operand> operands) {
  std::vector<StageId> stages;
  for (const Operand& operand : operands) {
    if (const StageId* stage = std::get_if<StageId>(&operand)) stages.push_back(*stage);
  }
  return add_elementwise(to.dag, std::string(row.stage), stages, [&](Operands loads) {
    std::vector<Expr> all;
    size_t next = 0;
    for (const Operand& operand : operands) {
      const Expr* immediate = std::get_if<Expr>(&operand);
      all.push_back(immediate ? *immediate : loads[next++]);
    }
    return row.fn(call, all);
  });
}

// Whether one-element constants can be immediates: the other operands alone have the output's
// shape.
bool scalars_fold(const OpCall& call) {
  std::vector<int64_t> shape;
  bool any = false;
  for (size_t i = 0; i < call.num_inputs(); ++i) {
    if (!call.has(i) || call.scalar(i)) continue;
    shape = *broadcast_shapes(shape, call.shape(i));
    any = true;
  }
  return any && shape == call.output().shape;
}

Types infer_elementwise(const OpCall& call) {
  const GraphOp& op = *find_graph_op(call.node.op);
  const bool where = op.name == "Where";
  TensorType out = call.type(0);
  if (where) {  // a condition, then two of one type
    if (out.dtype != DType::kBool)
      return Error("the condition is ", dtype_name(out.dtype), ", expected bool");
    out.dtype = call.input(1).dtype;
  }
  for (size_t i = 1; i < call.num_inputs(); ++i) {
    if (!call.has(i)) continue;
    TRY_ASSIGN(out.shape, broadcast_shapes(out.shape, call.shape(i)));
    if (!op.is(kMixesTypes) && call.input(i).dtype != out.dtype) {
      return Error("inputs are ",
                   dtype_name(out.dtype),
                   " and ",
                   dtype_name(call.input(i).dtype),
                   ", expected one type");
    }
  }
  if (op.is(kNotOfDouble) && out.dtype == DType::kFloat64)
    return Error(op.name, " of float64 is not supported");
  const bool truth = out.dtype == DType::kBool;
  if (truth != op.is(kOfTruth) && !(truth && op.is(kOfAnything))) {
    return Error(op.name, " of ", dtype_name(out.dtype));
  }
  if (op.is(kComparison)) out.dtype = DType::kBool;
  return {{out}};
}

// Functions of the reals only: "Exp" of integers has no meaning in ONNX.
Types infer_float_elementwise(const OpCall& call) {
  if (!is_float(call.input(0).dtype)) {
    return Error(
        call.node.op, " of ", dtype_name(call.input(0).dtype), ", expected a floating-point type");
  }
  return infer_elementwise(call);
}

Types infer_int_elementwise(const OpCall& call) {
  const DType dtype = call.input(0).dtype;
  if (!is_float(dtype) && dtype != DType::kBool) return infer_elementwise(call);
  return Error(call.node.op, " of ", dtype_name(dtype), ", expected integers");
}

Types infer_cast(const OpCall& call) {
  const std::optional<DType> to = parse_dtype(call.text("to", ""));
  if (!to) return Error("attribute \"to\" is ", call.text("to", "missing"));
  const std::string mode = call.text("round_mode", "up");
  if (mode != "up" && mode != "down" && mode != "nearest")
    return Error("attribute \"round_mode\" is ", mode, ", expected up, down or nearest");
  return {{{*to, call.shape(0)}}};
}

Types infer_bit_cast(const OpCall& call) {
  TRY_ASSIGN(const std::vector<TensorType> to, infer_cast(call));
  const DTypeRow &from = row_of(call.input(0).dtype), &made = row_of(to[0].dtype);
  if (from.bits != made.bits) {
    return Error("a ", from.name, " has ", from.bits, " bits, a ", made.name, " ", made.bits);
  }
  return to;
}

// A scale of float32 and a zero point of the type `whole` of the integers; both broadcast to the
// data.
Result<Unit> check_steps(const OpCall& call, DType whole) {
  if (row_of(whole).kind != DTypeKind::kInt && row_of(whole).kind != DTypeKind::kUInt)
    return Error(call.node.op, " of ", dtype_name(whole), ", expected integers");
  for (size_t i = 1; i < call.num_inputs(); ++i) {
    if (!call.has(i)) continue;
    const DType expected = i == 1 ? DType::kFloat32 : whole;
    if (call.input(i).dtype != expected)
      return Error(
          "input ", i, " is ", dtype_name(call.input(i).dtype), ", not ", dtype_name(expected));
    TRY_ASSIGN(const std::vector<int64_t> shape, broadcast_shapes(call.shape(0), call.shape(i)));
    if (shape != call.shape(0))
      return Error("input ", i, " of ", print_shape(call.shape(i)), " does not fit the data");
  }
  return Unit{};
}

Types infer_dequantize(const OpCall& call) {
  TRY(check_steps(call, call.input(0).dtype));
  return {{{DType::kFloat32, call.shape(0)}}};
}

Types infer_quantize(const OpCall& call) {
  const std::optional<DType> to = parse_dtype(call.text("to", ""));
  if (!to) return Error("attribute \"to\" is ", call.text("to", "missing"));
  if (call.input(0).dtype != DType::kFloat32)
    return Error("data are ", dtype_name(call.input(0).dtype), ", expected float32");
  TRY(check_steps(call, *to));
  return {{{*to, call.shape(0)}}};
}

const Row& row_of_call(std::string_view op) {
  const auto row = std::ranges::find(kRows, op, [](const Row& r) { return r.op.name; });
  CHECK(row != std::end(kRows)) << op;
  return *row;
}

// Input i, an immediate where it is one number and `fold`.
Operand operand_of(const OpCall& call, StageSink& to, size_t i, bool fold) {
  if (!fold || !call.scalar(i)) return to.input(call, i);
  return immediate_of(*call.input(i).constant, 0);
}

// The ratio is a stage, which rounds it to float32.
StageId lower_quantize(const OpCall& call, StageSink& to) {
  const bool fold = scalars_fold(call);
  std::vector<Operand> operands = {to.input(call, 0)};
  if (call.has(1)) {
    const Operand pair[] = {operands[0], operand_of(call, to, 1, fold)};
    operands[0] = add_mapped(to, row_of_call("Div"), call, pair);
  }
  if (call.has(2)) operands.push_back(operand_of(call, to, 2, fold));
  return add_mapped(to, row_of_call("Quantize"), call, operands);
}

StageId lower_elementwise(const OpCall& call, StageSink& to) {
  const Row& row = row_of_call(call.node.op);
  const bool fold = scalars_fold(call);
  std::vector<Operand> operands;
  for (size_t i = 0; i < call.num_inputs(); ++i) {
    if (call.has(i)) operands.push_back(operand_of(call, to, i, fold));
  }
  if (!row.op.is(kCommutative)) return add_mapped(to, row, call, operands);
  // Operands that the group computes stand first, so that conv(x) + r and r + conv(x) are one task.
  std::stable_partition(operands.begin(), operands.end(), [&](const Operand& operand) {
    const StageId* stage = std::get_if<StageId>(&operand);
    return stage && !to.dag.stage(*stage).is_placeholder();
  });
  std::stable_partition(operands.begin(), operands.end(), [](const Operand& operand) {
    return std::holds_alternative<StageId>(operand);
  });
  if (operands.size() == 1) {
    return add_elementwise(
        to.dag, "T_identity", {{to.input(call, 0)}}, [](Operands x) { return x[0]; });
  }
  Operand result = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) {
    const Operand pair[] = {result, operands[i]};
    result = add_mapped(to, row, call, pair);
  }
  return std::get<StageId>(result);
}

constexpr auto kOps = [] {
  std::array<GraphOp, std::size(kRows)> ops;
  std::ranges::transform(kRows, ops.begin(), &Row::op);
  return ops;
}();

}  // namespace

std::span<const GraphOp> elementwise_ops() { return kOps; }

}  // namespace pruner
