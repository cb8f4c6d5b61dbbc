// Programs that cast the values of one element type to every type, and compute in it: values at the
// edges of types (halves between two neighbours, subnormal and not finite ones) and drawn ones.
#pragma once

#include <cmath>
#include <cstdint>

#include "lower/program_builder.h"
#include "support/rng.h"
#include "tensor/tensor.h"

namespace pruner {

inline constexpr int64_t kDTypeValues = 64;  // a multiple of 8

inline Tensor edge_values(DType dtype) {
  const double inf = HUGE_VAL;
  const std::vector<double> reals = {
      inf,
      -inf,
      std::nan(""),
      0,
      -0.0,
      1,
      -1.5,
      0x1.01p0,
      0x1.03p0,
      0x1.01001p0,
      0x1.002p0,
      0x1.006p0,
      65504,
      65519,
      65520,
      0x1.fep127,
      0x1.fefp127,
      0x1.ffp127,
      -3.4e38,
      0x1p-24,
      0x1p-25,
      0x1.8p-25,
      1e-40,
      0x1p-133,
      0x1p-134,
      0x1.8p-134,
      1e-45,
      255,
      256.5,
      -0.9,
      100,
      127.5,
      -0x1.03p-14,
      // Rounded to float32 first, these float64 numbers lie midway between two narrower floats.
      0x1.002000001p0,
      -0x1.010000001p0,
      0x1.ffdfffffffp15,
      0x1.000000001p-25,
      1e300,
      1e-310};
  const int64_t far = int64_t{1} << 61;  // differences have to be int64, too
  const std::vector<int64_t> whole = {
      0,         1,         -1,         2,          100,         127,  128,   129,
      -128,      254,       255,        256,        2049,        2051, 65519, 65520,
      0x1000001, 0x2020001, -0x2020001, 0x7fffffff, -0x7fffffff, far,  -far};
  Rng rng(3);
  Tensor tensor(dtype, {kDTypeValues});
  for (int64_t i = 0; i < kDTypeValues; ++i) {
    const auto at = static_cast<size_t>(i);
    if (is_float(dtype)) {
      const double drawn = std::ldexp(2 * rng.uniform() - 1, static_cast<int>(rng.below(40)) - 20);
      tensor.set(i, at < reals.size() ? reals[at] : drawn);
    } else {
      const int64_t drawn = rng.below(int64_t{1} << (1 + rng.below(24)));
      tensor.set_int(i, at < whole.size() ? whole[at] : drawn);
    }
  }
  return tensor;
}

/// Returns a program of casts and operations for a GPU or for a CPU. The first argument is x.
inline Program dtype_program(DType from, bool gpu) {
  ProgramBuilder b("casts_from_" + std::string(dtype_name(from)));
  const std::vector<int64_t> shape = {kDTypeValues};
  const TensorId x = b.input("x", shape, from);
  std::vector<TensorId> casts;
  for (const DTypeRow& to : kDTypes)
    casts.push_back(b.output("to_" + std::string(to.name), shape, to.dtype));
  const auto own = [&](const char* name) { return b.output(name, shape, from); };
  const TensorId sum = own("sum"), difference = own("difference"), product = own("product"),
                 least = own("least"), most = own("most"), quotient = own("quotient"),
                 remainder = own("remainder"), absolute = own("absolute"), bits = own("bits"),
                 less = b.output("less", shape, DType::kBool);
  // Larger products of signed integers have no value in C.
  const bool is_unsigned = row_of(from).kind == DTypeKind::kUInt && dtype_bytes(from) >= 4;
  const bool is_byte = from != DType::kBool && dtype_bytes(from) == 1 && !is_only_moved(from);
  const bool computes = is_float(from) || is_unsigned || is_byte;
  const auto body = [&](Expr i) {
    const Expr v = b.read(x, {i}), w = b.read(x, {Expr(kDTypeValues - 1) - i});
    std::vector<Stmt> parts;
    for (const DTypeRow& to : kDTypes) {
      // A float has an integer's value only within its range.
      const bool bounded = is_float(from) && !is_float(to.dtype) && to.dtype != DType::kBool;
      const Expr low = float_imm(is_signed_int(to.dtype) ? -100 : 0, from);
      const Expr inside = bounded ? v >= low && float_imm(100, from) >= v : Expr();
      const Expr value = bounded ? select(inside, v, float_imm(0, from)) : v;
      parts.push_back(b.store(casts[static_cast<size_t>(to.dtype)], {i}, cast(to.dtype, value)));
    }
    const auto put = [&](TensorId to, Expr value) { parts.push_back(b.store(to, {i}, value)); };
    put(less, v < w);
    put(least, min(v, w));
    put(most, max(v, w));
    put(sum, computes ? v + w : v);
    put(difference, computes ? v - w : v);
    put(product, computes ? v * w : v);
    put(absolute, computes ? call(Intrinsic::kAbs, {v}) : v);
    const bool divides = computes && !is_float(from);
    put(quotient, divides ? floor_div(v, max(w, int_imm(1, from))) : v);
    put(bits, divides ? v ^ w : v);
    put(remainder, divides ? floor_mod(v, max(w, int_imm(1, from))) : v);
    return b.block(std::move(parts));
  };
  const int64_t eights = kDTypeValues / 8;
  if (gpu) {
    b.program.body = b.blocks(eights, [&](Expr block) {
      return b.threads(4, [&](Expr t) {
        return b.vectorize(2, 2, [&](Expr l) { return body(block * 8 + t * 2 + l); });
      });
    });
  } else {
    b.program.body =
        b.block({b.serial(eights - 1,
                          [&](Expr o) {
                            return b.vectorize(8, 8, [&](Expr l) { return body(o * 8 + l); });
                          }),
                 b.serial(8, [&](Expr i) { return body(i + (eights - 1) * 8); })});
  }
  return b.program;
}

/// Arguments for it; outputs are zero.
inline std::vector<Tensor> dtype_arguments(const Program& program) {
  std::vector<Tensor> args = {edge_values(program[program.args[0]].dtype)};
  for (size_t i = 1; i < program.args.size(); ++i)
    args.emplace_back(program[program.args[i]].dtype, program[program.args[i]].shape);
  return args;
}

}  // namespace pruner
