// Polynomials and reductions after N. Juffa's, fdlibm's and Cephes' single-precision functions. The
// same code serves a float and a vector of floats; selects stand in for branches.
#include "codegen/llvm/math.h"

#include <llvm/IR/IntrinsicsX86.h>

#include <cmath>
#include <iterator>

#include "support/check.h"

namespace pruner {
namespace {

using llvm::Value;

// erf(n / kErfNodes + d / kErfNodes), |d| <= 0.5, as a polynomial of d: by degree, then by n.
// Fitted to the least error of each in turn, of n = 0 to the least relative one. The last node's
// is 1.
constexpr double kErfNodes = 0x1.e460c8p+1;
constexpr float kErfNear[6][16] = {
    {0,
     0x1.2a6078p-2,
     0x1.1723ecp-1,
     0x1.79bd7ep-1,
     0x1.bae7b4p-1,
     0x1.e06b38p-1,
     0x1.f33ab8p-1,
     0x1.fb71eap-1,
     0x1.fe9200p-1,
     0x1.ff9b1ap-1,
     0x1.ffe79ap-1,
     0x1.fffad6p-1,
     0x1.ffff0ap-1,
     0x1.ffffd8p-1,
     0x1.fffffap-1,
     1},
    {0x1.315678p-2,
     0x1.1cbe38p-2,
     0x1.cdd996p-3,
     0x1.45bc0cp-3,
     0x1.8f940ep-4,
     0x1.aa453cp-5,
     0x1.8b785cp-6,
     0x1.3f122ep-7,
     0x1.bfc028p-9,
     0x1.113658p-10,
     0x1.21f5fap-12,
     0x1.0b9f88p-14,
     0x1.ad9e68p-17,
     0x1.2be322p-19,
     0x1.6c16d8p-22,
     0},
    {0x1.b57666p-24,
     -0x1.3e235cp-6,
     -0x1.020266p-5,
     -0x1.10f4fap-5,
     -0x1.be7430p-6,
     -0x1.29abccp-6,
     -0x1.4b679ep-7,
     -0x1.37f01ap-8,
     -0x1.f411c2p-10,
     -0x1.575660p-11,
     -0x1.93235ap-13,
     -0x1.a0197ep-15,
     -0x1.4d2474p-17,
     -0x1.dca14ep-20,
     0x1.095afap-26,
     0},
    {-0x1.c6f29ep-8,
     -0x1.6cf208p-8,
     -0x1.2fad8ap-9,
     0x1.f2b7d2p-11,
     0x1.6f75b2p-9,
     0x1.8b8efap-9,
     0x1.28a066p-9,
     0x1.5b3484p-10,
     0x1.4af390p-11,
     0x1.065666p-12,
     0x1.5e0df2p-14,
     0x1.8c2764p-16,
     0x1.7e329cp-18,
     0x1.3b807ep-20,
     0x1.bee7d2p-23,
     0},
    {0x1.1b26b8p-18,
     0x1.50540ap-11,
     0x1.d22506p-11,
     0x1.612658p-11,
     0x1.0061b8p-12,
     -0x1.abc568p-14,
     -0x1.ef3baep-13,
     -0x1.bd7916p-13,
     -0x1.1b63acp-13,
     -0x1.0d7dd6p-14,
     -0x1.dace3cp-16,
     -0x1.7c684ap-18,
     -0x1.674256p-18,
     -0x1.92ea40p-20,
     -0x1.8c3f0ap-20,
     0},
    {0x1.25d236p-13,
     0x1.9b4ef4p-14,
     -0x1.0437b0p-20,
     -0x1.3dab94p-14,
     -0x1.66c238p-14,
     -0x1.98bf04p-15,
     -0x1.fc0a64p-18,
     0x1.cb16e4p-17,
     0x1.0f7ec2p-16,
     0x1.66e726p-17,
     0x1.5a2d42p-18,
     0x1.06ce5ep-19,
     0x1.449540p-21,
     0x1.4c1b62p-23,
     0x1.1cad0ep-25,
     0},
};

class MathEmitter {
 public:
  MathEmitter(llvm::IRBuilder<>& b, llvm::Type* type, MathInstructions instructions = {})
      : b_(b),
        type_(type),
        bits_(type->getWithNewType(b.getInt32Ty())),
        fuses_(instructions.fma),
        in_zmm_(instructions.avx512 && type == llvm::FixedVectorType::get(b.getFloatTy(), 16)) {}

  Value* emit(Intrinsic function, Value* x, Value* y) {
    switch (function) {
      case Intrinsic::kExp: return exp(x);
      case Intrinsic::kLog: return log(x);
      case Intrinsic::kSqrt: return unary(llvm::Intrinsic::sqrt, x);
      case Intrinsic::kRsqrt: return b_.CreateFDiv(f(1), unary(llvm::Intrinsic::sqrt, x));
      case Intrinsic::kTanh: return tanh(x);
      case Intrinsic::kSigmoid: return sigmoid(x);
      case Intrinsic::kErf: return erf(x);
      case Intrinsic::kPow: return pow(x, y);
      case Intrinsic::kAbs: return abs(x);
      case Intrinsic::kFloor: return unary(llvm::Intrinsic::floor, x);
      case Intrinsic::kCeil: return unary(llvm::Intrinsic::ceil, x);
      case Intrinsic::kRound: return unary(llvm::Intrinsic::roundeven, x);
      case Intrinsic::kSin: return sin_or_cos(x, 0);
      case Intrinsic::kCos: return sin_or_cos(x, 1);
      case Intrinsic::kTan: return tan(x);
      case Intrinsic::kAsin: return asin(x);
      case Intrinsic::kAcos: return acos(x);
      case Intrinsic::kAtan: return atan(x);
      case Intrinsic::kSinh: return sinh(x);
      case Intrinsic::kCosh: return cosh(x);
      case Intrinsic::kAsinh: return asinh(x);
      case Intrinsic::kAcosh: return acosh(x);
      case Intrinsic::kAtanh: return atanh(x);
      case Intrinsic::kTf32: return round_to_tf32(x);
      case Intrinsic::kExpm1: return expm1(x);
      case Intrinsic::kLog1p: return log1p(x);
      case Intrinsic::kNormalCdf: return normal_cdf(x);
      case Intrinsic::kNot: break;
    }
    CHECK(false) << "no function of floats";
    return nullptr;
  }

  // Half of the last bit that stays is added to the size, which may carry into the exponent.
  Value* round_to_tf32(Value* x) {
    const auto word = [&](uint64_t v) { return llvm::ConstantInt::get(bits_, v); };
    Value* rounded = b_.CreateAdd(b_.CreateBitCast(x, bits_), word(0x1000));
    rounded = b_.CreateBitCast(b_.CreateAnd(rounded, word(0xffffe000)), type_);
    return b_.CreateSelect(b_.CreateFCmpUNO(x, x), x, rounded);
  }

  /// x % y, rounding down.
  Value* remainder(Value* x, Value* y) {
    Value *dividend = abs(x), *divisor = abs(y);
    Value* counts =
        b_.CreateAnd(b_.CreateFCmpOLT(dividend, f(INFINITY)), b_.CreateFCmpOGT(divisor, f(0)));
    Value* rest = type_->getScalarType()->isDoubleTy()
                      ? emit_double_remainder(b_, dividend, divisor, counts)
                      : remainder_of_sizes(dividend, divisor, counts);
    Value* result = with_sign_of(rest, x);
    Value* down = b_.CreateFCmpONE(result, f(0));
    down = b_.CreateAnd(down, b_.CreateXor(b_.CreateFCmpOLT(x, f(0)), b_.CreateFCmpOLT(y, f(0))));
    result = b_.CreateSelect(down, b_.CreateFAdd(result, y), result);
    result = b_.CreateSelect(counts, result, f(NAN));
    return b_.CreateSelect(b_.CreateFCmpUNO(y, y), y, result);
  }

  /// x less multiples of y * 2^e, of 27 bits each, until it is below y, where it `counts`. Every
  /// step is exact in doubles: quotient and remainder have few enough bits.
  Value* remainder_of_sizes(Value* x, Value* y, Value* counts) {
    llvm::Type* real = type_->getWithNewType(b_.getDoubleTy());
    llvm::Type* wide = type_->getWithNewType(b_.getInt64Ty());
    const auto w = [&](int64_t v) { return llvm::ConstantInt::getSigned(wide, v); };
    Value *start = b_.CreateFPExt(x, real), *divisor = b_.CreateFPExt(y, real);
    Value* zero = llvm::Constant::getNullValue(real);

    llvm::BasicBlock* before = b_.GetInsertBlock();
    auto* head = llvm::BasicBlock::Create(b_.getContext(), "", before->getParent());
    auto* body = llvm::BasicBlock::Create(b_.getContext(), "", before->getParent());
    auto* after = llvm::BasicBlock::Create(b_.getContext(), "", before->getParent());
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    auto* rest = b_.CreatePHI(real, 2);
    rest->addIncoming(start, before);
    Value* more = b_.CreateAnd(counts, b_.CreateFCmpOGE(rest, divisor));
    b_.CreateCondBr(more->getType()->isVectorTy() ? b_.CreateOrReduce(more) : more, body, after);
    b_.SetInsertPoint(body);
    Value* bits = b_.CreateBitCast(divisor, wide);
    Value* apart = b_.CreateSub(b_.CreateLShr(b_.CreateBitCast(rest, wide), w(52)),
                                b_.CreateAdd(b_.CreateLShr(bits, w(52)), w(27)));
    apart = b_.CreateSelect(b_.CreateICmpSGT(apart, w(0)), apart, w(0));
    Value* step = b_.CreateBitCast(b_.CreateAdd(bits, b_.CreateShl(apart, w(52))), real);
    Value* quotient = unary(llvm::Intrinsic::trunc, b_.CreateFDiv(rest, step));
    Value* left = b_.CreateFSub(rest, b_.CreateFMul(quotient, step));
    // A quotient just below a whole number may have been rounded up to it.
    left = b_.CreateSelect(b_.CreateFCmpOLT(left, zero), b_.CreateFAdd(left, step), left);
    rest->addIncoming(b_.CreateSelect(more, left, rest), body);
    b_.CreateBr(head);
    b_.SetInsertPoint(after);
    return b_.CreateFPTrunc(rest, type_);
  }

 private:
  Value* f(double v) { return llvm::ConstantFP::get(type_, v); }
  Value* i(int64_t v) { return llvm::ConstantInt::getSigned(bits_, v); }
  Value* as_bits(Value* x) { return b_.CreateBitCast(x, bits_); }
  Value* as_float(Value* x) { return b_.CreateBitCast(x, type_); }
  Value* unary(llvm::Intrinsic::ID id, Value* x) { return b_.CreateUnaryIntrinsic(id, x); }
  Value* abs(Value* x) { return unary(llvm::Intrinsic::fabs, x); }
  Value* with_sign_of(Value* magnitude, Value* sign) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign);
  }
  Value* fma(Value* x, Value* y, Value* z) {
    return b_.CreateIntrinsic(llvm::Intrinsic::fmuladd, {x->getType()}, {x, y, z});
  }
  /// c[0] * x^(n-1) + ... + c[n-1].
  Value* polynomial(Value* x, std::initializer_list<double> c) {
    Value* sum = llvm::ConstantFP::get(x->getType(), *c.begin());
    for (const double* next = c.begin() + 1; next != c.end(); ++next) {
      sum = fma(sum, x, llvm::ConstantFP::get(x->getType(), *next));
    }
    return sum;
  }
  // NaN stays NaN, here and in clamp().
  Value* at_most(Value* x, double high) {
    Value* h = llvm::ConstantFP::get(x->getType(), high);
    return b_.CreateSelect(b_.CreateFCmpOGT(x, h), h, x);
  }
  Value* clamp(Value* x, double low, double high) {
    Value* l = llvm::ConstantFP::get(x->getType(), low);
    return at_most(b_.CreateSelect(b_.CreateFCmpOLT(x, l), l, x), high);
  }

  // 1.5 * 2^23: a float added to it has its nearest integer in the lowest bits of the sum.
  static constexpr double kRounder = 12582912.0;

  // exp(x) = 2^n * exp(r), |r| <= ln(2)/2.
  struct Power {
    Value *rounded, *whole, *fraction;  // kRounder + n, n, exp(r)
  };
  struct Reduced {
    Value *rounded, *whole, *rest;  // kRounder + n, n, r
  };
  Reduced reduced_exp(Value* x) {
    // log2(e); then -ln(2) in two parts, the first short enough that its multiples are exact.
    Value* rounded = fma(x, f(0x1.715476p+0), f(kRounder));
    Value* whole = b_.CreateFSub(rounded, f(kRounder));
    return {rounded, whole, less_multiple_of_log2(x, whole)};
  }
  static constexpr double kLog2High = 0x1.62e400p-1, kLog2Low = 0x1.7f7d1cp-20;
  Value* less_multiple_of_log2(Value* x, Value* whole) {
    return fma(whole, f(-kLog2Low), fma(whole, f(-kLog2High), x));
  }
  Value* exp_of_rest(Value* r) {
    return polynomial(
        r, {0x1.694000p-10, 0x1.125edcp-7, 0x1.555b5ap-5, 0x1.555450p-3, 0x1.fffff6p-2, 1, 1});
  }
  Power split_exp(Value* x) {
    const auto [rounded, whole, r] = reduced_exp(x);
    return {rounded, whole, exp_of_rest(r)};
  }
  // The result is a normal number if |x| <= 80, so n is added to the exponent of the result.
  Value* exp_of_small(Value* x) {
    const auto [rounded, whole, fraction] = split_exp(x);
    if (in_zmm_) return scaled(fraction, whole);
    return as_float(b_.CreateAdd(as_bits(fraction), b_.CreateShl(as_bits(rounded), i(23))));
  }
  // The power is multiplied in two halves, so that results beyond the normal range round once.
  Value* exp(Value* x) {
    // Beyond these limits exp is infinite, or rounds to 0.
    const auto [rounded, whole, power] = split_exp(clamp(x, -104.5, 89.5));
    return scaled(power, rounded, whole);
  }
  // x * 2^n, rounded once; by kRounder + n and n.
  Value* scaled(Value* x, Value* rounded, Value* whole) {
    if (in_zmm_) return scaled(x, whole);
    Value* n = b_.CreateSub(as_bits(rounded), as_bits(f(kRounder)));
    Value* half = b_.CreateAShr(n, i(1));
    return b_.CreateFMul(b_.CreateFMul(x, power_of_two(half)), power_of_two(b_.CreateSub(n, half)));
  }
  // x * 2^n, by one instruction, which rounds once.
  Value* scaled(Value* x, Value* n) {
    return zmm(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512,
               {x, n, x, b_.getInt16(0xffff), b_.getInt32(4)});  // all lanes, rounded as ever
  }
  Value* zmm(llvm::Intrinsic::ID id, llvm::ArrayRef<Value*> args) {
    return b_.CreateIntrinsic(id, {}, args);
  }
  Value* power_of_two(Value* n) { return as_float(b_.CreateShl(b_.CreateAdd(n, i(127)), i(23))); }

  // exp(r) - 1 for |r| <= ln(2)/2; the polynomial is a minimax fit of (exp(r) - 1 - r) / r^2.
  Value* power_less_one(Value* r) {
    Value* series = polynomial(
        r, {0x1.9e7c7ap-13, 0x1.6d3a5ep-10, 0x1.1112d4p-7, 0x1.5554f8p-5, 0x1.555554p-3, 0.5});
    return fma(b_.CreateFMul(r, r), series, r);
  }
  // With exp(x) = 2^n * (1 + p), it is 2^n * p + (2^n - 1). Half of it is computed and doubled, as
  // 2^128 is no float.
  Value* expm1(Value* x) {
    // Beyond these limits the result is infinite, or rounds to -1.
    Value* bounded = clamp(x, -20, 88.9);
    const auto [rounded, whole, r] = reduced_exp(bounded);
    Value* p = power_less_one(r);
    Value* n = b_.CreateSub(as_bits(rounded), as_bits(f(kRounder + 1)));
    Value* half = power_of_two(n);
    Value* result = fma(p, half, b_.CreateFSub(half, f(0.5)));
    result = b_.CreateFAdd(result, result);
    // Half of a small number may be subnormal, and the sum has no sign of zero.
    return b_.CreateSelect(b_.CreateFCmpOLT(abs(x), f(0x1p-26)), x, result);
  }

  // log(x) = k*ln(2) + log(1 + f), sqrt(1/2) <= 1 + f < sqrt(2) (fdlibm's logf).
  Value* log(Value* x) {
    // The bits of a subnormal number, as an integer, are 2^149 times the number: no product with a
    // subnormal number is needed, which kernels take for zero. 0x3f3504f3 is sqrt(1/2).
    Value* subnormal = b_.CreateFCmpOLT(x, f(0x1p-126));
    Value* normal = b_.CreateSelect(subnormal, b_.CreateSIToFP(as_bits(x), type_), x);
    Value* shifted = b_.CreateSub(as_bits(normal), i(0x3f3504f3));
    Value* exponent = b_.CreateAShr(shifted, i(23));
    Value* mantissa = as_float(b_.CreateSub(as_bits(normal), b_.CreateShl(exponent, i(23))));
    Value* k = b_.CreateSIToFP(exponent, type_);
    k = b_.CreateSelect(subnormal, b_.CreateFSub(k, f(149)), k);
    Value* t = b_.CreateFSub(mantissa, f(1));
    Value* s = b_.CreateFDiv(t, b_.CreateFAdd(t, f(2)));
    Value* z = b_.CreateFMul(s, s);
    Value* series =
        b_.CreateFMul(z, polynomial(z, {0xf89e26p-26, 0x91e9eep-25, 0xccce13p-25, 0xaaaaaap-24}));
    Value* half_square = b_.CreateFMul(b_.CreateFMul(f(0.5), t), t);
    Value* low = fma(s, b_.CreateFAdd(half_square, series), b_.CreateFMul(k, f(9.0580006145e-06)));
    Value* result = fma(k, f(6.9313812256e-01), b_.CreateFSub(t, b_.CreateFSub(half_square, low)));
    // log(0) = -inf, log(inf) = inf, log of NaN or a negative number is NaN.
    result = b_.CreateSelect(b_.CreateFCmpOLT(x, f(INFINITY)), result, x);
    Value* some = b_.CreateOr(b_.CreateICmpSGT(as_bits(x), i(0)), b_.CreateFCmpUNO(x, x));
    result = b_.CreateSelect(some, result, f(-INFINITY));
    return b_.CreateSelect(b_.CreateFCmpOLT(x, f(0)), f(NAN), result);
  }

  Value* tanh(Value* x) {
    Value* size = abs(x);
    Value* square = b_.CreateFMul(x, x);
    Value* near = polynomial(square,
                             {-5.70498872745e-3,
                              2.06390887954e-2,
                              -5.37397155531e-2,
                              1.33314422036e-1,
                              -3.33332819422e-1});
    // The magnitude only: added to 0, a term of the other sign would give +0 for -0.
    near = fma(b_.CreateFMul(near, square), size, size);
    Value* most = at_most(size, 10);  // beyond, tanh is 1
    Value* power = exp_of_small(b_.CreateFAdd(most, most));
    Value* far = b_.CreateFSub(f(1), b_.CreateFDiv(f(2), b_.CreateFAdd(power, f(1))));
    Value* result = b_.CreateSelect(b_.CreateFCmpOGE(size, f(0.625)), far, near);  // NaN: near
    return with_sign_of(result, x);
  }

  // With e = exp(-|x|), 1 / (1 + e) or e / (1 + e): nothing overflows, small results keep their
  // bits.
  Value* sigmoid(Value* x) {
    Value* e = exp(b_.CreateFNeg(abs(x)));
    Value* numerator = b_.CreateSelect(b_.CreateFCmpOLT(x, f(0)), e, f(1));
    return b_.CreateFDiv(numerator, b_.CreateFAdd(f(1), e));
  }

  // The polynomial around the nearest of 16 nodes, whose coefficients an instruction looks up.
  Value* erf_by_nodes(Value* x) {
    const double last = (std::size(kErfNear[0]) - 1) / kErfNodes;
    Value* t = at_most(abs(x), last);  // beyond, erf is 1
    Value* rounded = fma(t, f(kErfNodes), f(kRounder));
    Value* whole = b_.CreateFSub(rounded, f(kRounder));
    Value* d = fma(t, f(kErfNodes), b_.CreateFNeg(whole));
    Value* sum = nullptr;
    for (size_t degree = std::size(kErfNear); degree-- > 0;) {
      Value* nodes = llvm::ConstantDataVector::get(b_.getContext(), kErfNear[degree]);
      Value* c = zmm(llvm::Intrinsic::x86_avx512_permvar_sf_512, {nodes, as_bits(rounded)});
      sum = sum == nullptr ? c : fma(sum, d, c);
    }
    return with_sign_of(sum, x);
  }

  Value* erf(Value* x) {
    if (in_zmm_) return erf_by_nodes(x);
    Value* t = at_most(abs(x), 4);  // beyond, erf is 1
    Value* s = b_.CreateFMul(t, t);
    Value* far = fma(f(-1.72853470e-5), t, f(3.83197126e-4));
    Value* part = fma(f(-3.88396438e-3), t, f(2.42546219e-2));
    far = fma(far, s, part);
    far = fma(far, t, f(-1.06777877e-1));
    far = fma(far, t, f(-6.34846687e-1));
    far = fma(far, t, f(-1.28717512e-1));
    far = fma(far, t, b_.CreateFNeg(t));
    far = with_sign_of(b_.CreateFSub(f(1), exp_of_small(far)), x);
    Value* near = polynomial(s,
                             {-5.96761703e-4,
                              4.99119423e-3,
                              -2.67681349e-2,
                              1.12819925e-1,
                              -3.76125336e-1,
                              1.28379166e-1});
    // A product that is rounded before it is added may be subnormal.
    near = fuses_ ? fma(near, x, x) : b_.CreateFMul(x, b_.CreateFAdd(f(1), near));
    return b_.CreateSelect(b_.CreateFCmpOGT(t, f(0.927734375)), far, near);
  }

  // x - whole * pi/2. A multiple of the first part of pi/2, of 33 bits, by 16 bits is exact.
  Value* rest_by_doubles(Value* x, Value* whole) {
    llvm::Type* real = type_->getWithNewType(b_.getDoubleTy());
    Value* times = b_.CreateFPExt(whole, real);
    Value* r = fma(times, llvm::ConstantFP::get(real, -0x1.921fb544p+0), b_.CreateFPExt(x, real));
    r = fma(times, llvm::ConstantFP::get(real, -0x1.0b4611a626331p-34), r);
    return b_.CreateFPTrunc(r, type_);
  }

  // `Turn` holds the quadrant q of x = q * pi/2 + r, |r| <= pi/4, and the functions of the rest r.
  struct Turn {
    Value *quadrant, *sine, *cosine;
  };
  Turn turn_of(Value* x) {
    // 2/pi; then -pi/2 in three parts.
    Value* rounded = fma(x, f(0.636619747), f(kRounder));
    Value* q = as_bits(rounded);
    Value* whole = b_.CreateFSub(rounded, f(kRounder));
    Value* r = fuses_ ? fma(whole, f(-0x1.921fb0p+0), x) : rest_by_doubles(x, whole);
    if (fuses_) {
      r = fma(whole, f(-0x1.5110b4p-22), r);
      r = fma(whole, f(-0x1.846988p-48), r);
    }
    reduce_large(x, q, r);
    Value* s = b_.CreateFMul(r, r);
    Value* cosine = polynomial(s, {0x1.9a8000p-16, -0x1.6c0efap-10, 0x1.555550p-5, -0.5, 1});
    Value* sine = polynomial(s, {0x1.80a000p-19, -0x1.a0690cp-13, 0x1.111182p-7, -0x1.555556p-3});
    // The sum has no sign of zero.
    return {q, with_sign_of(fma(sine, b_.CreateFMul(r, s), r), r), cosine};
  }
  Value* is_odd(Value* q) { return b_.CreateICmpNE(b_.CreateAnd(q, i(1)), i(0)); }

  Value* sin_or_cos(Value* x, int64_t quarter_turns) {
    const Turn turn = turn_of(x);
    Value* q = b_.CreateAdd(turn.quadrant, i(quarter_turns));
    Value* result = b_.CreateSelect(is_odd(q), turn.cosine, turn.sine);
    // Quadrants 2 and 3 change the sign: bit 1 of q goes to the place of the sign, 31.
    Value* flip = b_.CreateShl(b_.CreateAnd(q, i(2)), i(30));
    return as_float(b_.CreateXor(as_bits(result), flip));
  }

  Value* tan(Value* x) {
    const auto [q, sine, cosine] = turn_of(x);
    Value* odd = is_odd(q);
    return b_.CreateFDiv(b_.CreateSelect(odd, b_.CreateFNeg(cosine), sine),
                         b_.CreateSelect(odd, sine, cosine));
  }

  // x + x^3 * p(x^2): the functions that are odd, near 0.
  Value* odd_series(Value* x, std::initializer_list<double> p) {
    Value* square = b_.CreateFMul(x, x);
    return fma(b_.CreateFMul(polynomial(square, p), square), x, x);
  }

  // Beyond 1 it is pi/2 less that of 1/x. The polynomial is a minimax fit on [0, 1].
  Value* atan(Value* x) {
    Value* size = abs(x);
    Value* beyond = b_.CreateFCmpOGT(size, f(1));
    Value* t = b_.CreateSelect(beyond, b_.CreateFDiv(f(1), size), size);
    Value* angle = odd_series(t,
                              {-0.00179359389,
                               0.010914481,
                               -0.031177613,
                               0.0579573595,
                               -0.0840343665,
                               0.109521811,
                               -0.142642408,
                               0.199985482,
                               -0.333332991});
    angle = b_.CreateSelect(beyond, b_.CreateFSub(f(M_PI_2), angle), angle);
    return with_sign_of(angle, x);
  }

  // asin of |x| where that is at most 1/2; where it is more, of sqrt((1 - |x|) / 2), which is half
  // the angle that is left to pi/2. The polynomial is a minimax fit on [0, 1/2].
  struct Arc {
    Value *steep, *angle;
  };
  Arc arc_of(Value* x) {
    Value* size = abs(x);
    Value* steep = b_.CreateFCmpOGT(size, f(0.5));
    Value* half = b_.CreateFMul(b_.CreateFSub(f(1), size), f(0.5));
    Value* t = b_.CreateSelect(steep, unary(llvm::Intrinsic::sqrt, half), size);
    return {steep,
            odd_series(t, {0.0421662863, 0.0241795263, 0.0454703741, 0.0749529765, 0.166667525})};
  }
  Value* asin(Value* x) {
    const auto [steep, angle] = arc_of(x);
    Value* rest = fma(f(-2), angle, f(M_PI_2));
    return with_sign_of(b_.CreateSelect(steep, rest, angle), x);
  }
  Value* acos(Value* x) {
    const auto [steep, angle] = arc_of(x);
    Value* twice = b_.CreateFAdd(angle, angle);
    Value* left = b_.CreateFCmpOLT(x, f(0));
    twice = b_.CreateSelect(left, b_.CreateFSub(f(M_PI), twice), twice);
    // pi/2 in two parts: near 0 the angle is added to the lesser one first.
    Value* low = b_.CreateFSub(f(-0x1.777a5cp-25), with_sign_of(angle, x));
    return b_.CreateSelect(steep, twice, b_.CreateFAdd(f(0x1.921fb6p+0), low));
  }

  // exp(|x|) in two factors: it may be infinite where half of it is not.
  struct Halves {
    Value *growing, *falling;  // exp(|x|) / 2, exp(-|x|) / 2
  };
  Halves halves_of(Value* x) {
    Value* root = exp(b_.CreateFMul(abs(x), f(0.5)));
    return {b_.CreateFMul(b_.CreateFMul(root, f(0.5)), root),
            b_.CreateFDiv(b_.CreateFDiv(f(0.5), root), root)};
  }
  Value* sinh(Value* x) {
    const auto [growing, falling] = halves_of(x);
    Value* near = odd_series(x, {2.81695137e-06, 0.000198361597, 0.00833335006, 0.166666665});
    Value* far = with_sign_of(b_.CreateFSub(growing, falling), x);
    return b_.CreateSelect(b_.CreateFCmpOGT(abs(x), f(1)), far, near);
  }
  Value* cosh(Value* x) {
    const auto [growing, falling] = halves_of(x);
    return b_.CreateFAdd(growing, falling);
  }

  // log(1 + x) = k*ln(2) + log(1 + m), where 1 + x is about 2^k * (1 + m) with -1/4 <= m < 1/2: m
  // is x * 2^-k + (2^-k - 1), whose terms are exact (after N. Juffa). The polynomial is a minimax
  // fit of (log(1 + m) - m) / m^2.
  Value* log1p(Value* x) {
    // 0x3f400000 is 3/4; the mask keeps k, in the place of an exponent.
    Value* k = b_.CreateAnd(b_.CreateSub(as_bits(b_.CreateFAdd(x, f(1))), i(0x3f400000)),
                            i(-int64_t{0x800000}));
    Value* shrunk = as_float(b_.CreateSub(as_bits(x), k));
    Value* power = as_float(b_.CreateSub(as_bits(f(4)), k));
    Value* m = b_.CreateFAdd(shrunk, fma(power, f(0.25), f(-1)));
    Value* series = polynomial(m,
                               {0x1.547064p-5,
                                -0x1.8e43cep-4,
                                0x1.eb07aap-4,
                                -0x1.04a0dap-3,
                                0x1.23a902p-3,
                                -0x1.54fb32p-3,
                                0x1.999d62p-3,
                                -0x1.000126p-2,
                                0x1.555554p-2,
                                -0x1.fffffep-2});
    Value* result = fma(b_.CreateFMul(m, m), series, m);
    // k * 2^23, an integer, times ln(2) / 2^23.
    result = fma(b_.CreateSIToFP(k, type_), f(0x1.62e430p-24), result);
    // log1p(inf) = inf, log1p(-1) = -inf, log1p of NaN or less than -1 is NaN; 0 keeps its sign.
    Value* itself = b_.CreateOr(b_.CreateFCmpOEQ(x, f(0)), b_.CreateFCmpOEQ(x, f(INFINITY)));
    result = b_.CreateSelect(itself, x, result);
    Value* least = b_.CreateSelect(b_.CreateFCmpOEQ(x, f(-1)), f(-INFINITY), f(NAN));
    return b_.CreateSelect(b_.CreateFCmpOGT(x, f(-1)), result, least);
  }

  // The lower tail is exp(-t^2/2) * R(t) for t = |x|; the quotient of polynomials is a minimax
  // fit of R on 0 <= t <= 14.6. t^2 is the square of the upper half of the bits of t, which is
  // exact, and a rest.
  Value* normal_cdf(Value* x) {
    Value* t = at_most(abs(x), 14.5);  // beyond, the tail rounds to 0
    Value* high = as_float(b_.CreateAnd(as_bits(t), i(-int64_t{0x1000})));
    Value* exact = b_.CreateFMul(b_.CreateFMul(high, high), f(-0.5));
    Value* rest =
        b_.CreateFMul(b_.CreateFMul(b_.CreateFAdd(t, high), f(-0.5)), b_.CreateFSub(t, high));
    Value* rounded = fma(b_.CreateFAdd(exact, rest), f(0x1.715476p+0), f(kRounder));
    Value* whole = b_.CreateFSub(rounded, f(kRounder));
    Value* r = b_.CreateFAdd(fma(whole, f(-kLog2High), exact), fma(whole, f(-kLog2Low), rest));
    // In powers of one rounded square: its error is the same above and below.
    Value* square = b_.CreateFMul(t, t);
    const auto line = [&](double slope, double start) { return fma(t, f(slope), f(start)); };
    Value* above = fma(square, f(0x1.9b7234p-8), line(0x1.fb6496p-5, 0x1.1de38ep-2));
    above = fma(square, above, line(0x1.55cc7ep-1, 0x1.85bd58p-1));
    Value* below =
        fma(square, line(0x1.01d52ap-6, 0x1.3dfb32p-3), line(0x1.6e4006p-1, 0x1.d4e7a2p+0));
    below = fma(square, below, line(0x1.466212p+1, 0x1.85bd58p+0));
    Value* ratio = b_.CreateFDiv(above, below);
    Value* tail = scaled(fma(ratio, power_less_one(r), ratio), rounded, whole);
    return b_.CreateSelect(b_.CreateFCmpOLT(x, f(0)), tail, b_.CreateFSub(f(1), tail));
  }

  // Beyond 2^13, asinh(x) and acosh(x) are log(2 * x) in float32.
  Value* or_log_of_twice(Value* size, Value* result) {
    Value* far = b_.CreateFAdd(log(size), f(M_LN2));
    return b_.CreateSelect(b_.CreateFCmpOGT(size, f(8192)), far, result);
  }
  // log(|x| + sqrt(x^2 + 1)).
  Value* asinh(Value* x) {
    Value* size = abs(x);
    Value* square = b_.CreateFMul(size, size);
    Value* root = unary(llvm::Intrinsic::sqrt, b_.CreateFAdd(square, f(1)));
    Value* more = b_.CreateFAdd(size, b_.CreateFDiv(square, b_.CreateFAdd(root, f(1))));
    return with_sign_of(or_log_of_twice(size, log1p(more)), x);
  }
  // log(x + sqrt(x^2 - 1)).
  Value* acosh(Value* x) {
    Value* t = b_.CreateFSub(x, f(1));
    Value* root = unary(llvm::Intrinsic::sqrt, b_.CreateFMul(t, b_.CreateFAdd(t, f(2))));
    Value* result = or_log_of_twice(x, log1p(b_.CreateFAdd(t, root)));
    return b_.CreateSelect(b_.CreateFCmpOLT(x, f(1)), f(NAN), result);
  }
  // log((1 + x) / (1 - x)) / 2.
  Value* atanh(Value* x) {
    Value* size = abs(x);
    Value* more = b_.CreateFDiv(b_.CreateFAdd(size, size), b_.CreateFSub(f(1), size));
    return with_sign_of(b_.CreateFMul(log1p(more), f(0.5)), x);
  }

  // Beyond 2^16 the product with 2/pi is made of integers, with as many of its bits as matter
  // (Payne and Hanek). A branch: it is long and rarely needed.
  void reduce_large(Value* x, Value*& q, Value*& r) {
    Value* size = abs(x);
    Value* large = b_.CreateFCmpOGE(size, f(65536));
    Value* any = large->getType()->isVectorTy() ? b_.CreateOrReduce(large) : large;
    llvm::BasicBlock* before = b_.GetInsertBlock();
    llvm::Function* function = before->getParent();
    auto* slow = llvm::BasicBlock::Create(b_.getContext(), "", function);
    auto* after = llvm::BasicBlock::Create(b_.getContext(), "", function);
    b_.CreateCondBr(any, slow, after);
    b_.SetInsertPoint(slow);
    auto [slow_q, slow_r] = payne_hanek(x, size);
    slow_q = b_.CreateSelect(large, slow_q, q);
    slow_r = b_.CreateSelect(large, slow_r, r);
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
    for (const auto& [fast, exact] : {std::pair{&q, slow_q}, std::pair{&r, slow_r}}) {
      auto* phi = b_.CreatePHI(exact->getType(), 2);
      phi->addIncoming(*fast, before);
      phi->addIncoming(exact, slow);
      *fast = phi;
    }
  }

  // |x| = m * 2^e with an integer m < 2^24. Of the product with 2/pi = 0.w0 w1 w2 ... (words of 32
  // bits), what is above 4 quarter turns is dropped: the 96 bits of 2/pi from bit e - 2 on remain.
  std::pair<Value*, Value*> payne_hanek(Value* x, Value* size) {
    llvm::Type* wide = type_->getWithNewType(b_.getInt64Ty());
    llvm::Type* real = type_->getWithNewType(b_.getDoubleTy());
    const auto w = [&](uint64_t v) { return llvm::ConstantInt::get(wide, v); };
    Value* bits = as_bits(size);
    Value* m = b_.CreateZExt(b_.CreateOr(b_.CreateAnd(bits, i(0x7fffff)), i(0x800000)), wide);
    // e = exponent - 150 lies in [-7, 104]; from here on, counted from -8.
    Value* e = b_.CreateSub(b_.CreateLShr(bits, i(23)), i(142));
    Value* first_word = b_.CreateLShr(e, i(5));
    Value* shift = b_.CreateZExt(b_.CreateAnd(e, i(31)), wide);
    // 2/pi after ten zero bits: bit (e + 8) of this is bit e - 2 of 2/pi.
    static constexpr uint32_t kTwoOverPi[] = {0xa2f9836e,
                                              0x4e441529,
                                              0xfc2757d1,
                                              0xf534ddc0,
                                              0xdb629599,
                                              0x3c439041,
                                              0xfe5163ab,
                                              0xdebbc561};
    uint32_t words[8];
    for (int k = 0; k < 8; ++k) {
      words[k] = (kTwoOverPi[k] >> 10) | (k ? kTwoOverPi[k - 1] << 22 : 0);
    }
    // Word first_word + k, by selects: first_word is 0 to 3.
    const auto word = [&](int k) {
      Value* result = w(words[k + 3]);
      for (int choice = 2; choice >= 0; --choice) {
        Value* here = b_.CreateICmpEQ(first_word, i(choice));
        result = b_.CreateSelect(here, w(words[k + choice]), result);
      }
      return result;
    };
    // 32 bits from `shift` on, of two words.
    const auto window = [&](Value* high, Value* low) {
      Value* both = b_.CreateOr(b_.CreateShl(high, w(32)), low);
      return b_.CreateAnd(b_.CreateLShr(b_.CreateShl(both, shift), w(32)), w(0xffffffff));
    };
    Value *w0 = word(0), *w1 = word(1), *w2 = word(2), *w3 = word(3);
    Value *p0 = window(w0, w1), *p1 = window(w1, w2), *p2 = window(w2, w3);
    // The 64 bits below 2^2 quarter turns of m * 0.p0p1p2: 2 bits of quadrant, 62 of fraction.
    Value* product = b_.CreateAdd(b_.CreateMul(m, p1), b_.CreateLShr(b_.CreateMul(m, p2), w(32)));
    product = b_.CreateAdd(b_.CreateShl(b_.CreateMul(m, p0), w(32)), product);
    Value* fraction = b_.CreateAnd(product, w(~uint64_t{0} >> 2));
    Value* quadrant = b_.CreateLShr(product, w(62));
    Value* above =
        b_.CreateLShr(fraction, w(61));  // more than half a quarter turn: to the next one
    quadrant = b_.CreateAdd(quadrant, above);
    fraction = b_.CreateSub(fraction, b_.CreateShl(above, w(62)));
    Value* radians = b_.CreateFMul(b_.CreateSIToFP(fraction, real),
                                   llvm::ConstantFP::get(real, 0x1.921fb54442d18p-62));
    Value* r = b_.CreateFPTrunc(radians, type_);
    Value* q = b_.CreateTrunc(quadrant, bits_);
    Value* negative = b_.CreateFCmpOLT(x, f(0));
    r = b_.CreateSelect(negative, b_.CreateFNeg(r), r);
    q = b_.CreateSelect(negative, b_.CreateNeg(q), q);
    r = b_.CreateSelect(b_.CreateFCmpOLT(size, f(INFINITY)), r, f(NAN));
    return {q, r};
  }

  // |x|^y = 2^(y * log2|x|) in double precision; then the cases of IEEE 754.
  // pow(x, 0.5): of -inf it is inf, of -0 it is 0.
  Value* square_root(Value* x) {
    Value* root = unary(llvm::Intrinsic::sqrt, b_.CreateFAdd(x, f(0)));
    return b_.CreateSelect(b_.CreateFCmpOEQ(x, f(-INFINITY)), f(INFINITY), root);
  }

  Value* pow(Value* x, Value* y) {
    if (auto* constant = llvm::dyn_cast<llvm::Constant>(y)) {
      auto* exponent = llvm::dyn_cast_or_null<llvm::ConstantFP>(
          constant->getType()->isVectorTy() ? constant->getSplatValue() : constant);
      if (exponent && exponent->isExactlyValue(2)) return b_.CreateFMul(x, x);
      if (exponent && exponent->isExactlyValue(1)) return x;
      if (exponent && exponent->isExactlyValue(-1)) return b_.CreateFDiv(f(1), x);
      if (exponent && exponent->isExactlyValue(0.5)) return square_root(x);
      if (exponent && exponent->isExactlyValue(3)) return b_.CreateFMul(b_.CreateFMul(x, x), x);
    }
    llvm::Type* real = type_->getWithNewType(b_.getDoubleTy());
    llvm::Type* wide = type_->getWithNewType(b_.getInt64Ty());
    const auto d = [&](double v) { return llvm::ConstantFP::get(real, v); };
    const auto w = [&](int64_t v) { return llvm::ConstantInt::getSigned(wide, v); };
    Value* size = abs(x);
    Value* power = b_.CreateFPExt(y, real);

    // log2: every subnormal float is a normal double.
    Value* bits = b_.CreateBitCast(b_.CreateFPExt(size, real), wide);
    // |x| = m * 2^exponent with m in [sqrt(1/2), sqrt(2)): the constant is sqrt(1/2). Then log2(m)
    // is 2/ln(2) * atanh((m - 1) / (m + 1)), by its series.
    Value* exponent = b_.CreateAShr(b_.CreateSub(bits, w(0x3fe6a09e667f3bcd)), w(52));
    Value* mantissa = b_.CreateBitCast(b_.CreateSub(bits, b_.CreateShl(exponent, w(52))), real);
    Value* s = b_.CreateFDiv(b_.CreateFSub(mantissa, d(1)), b_.CreateFAdd(mantissa, d(1)));
    Value* series =
        polynomial(b_.CreateFMul(s, s),
                   {1 / 17., 1 / 15., 1 / 13., 1 / 11., 1 / 9., 1 / 7., 1 / 5., 1 / 3., 1});
    Value* log2 = fma(b_.CreateFMul(s, series), d(2 / M_LN2), b_.CreateSIToFP(exponent, real));
    const auto where = [&](Value* condition, Value* a, Value* b) {
      return b_.CreateSelect(condition, a, b);
    };
    log2 = where(b_.CreateFCmpOEQ(size, f(0)), d(-INFINITY), log2);
    log2 = where(b_.CreateFCmpOEQ(size, f(INFINITY)), d(INFINITY), log2);

    // exp2, by the same rounding as exp's.
    constexpr double kDoubleRounder = 6755399441055744.0;  // 1.5 * 2^52
    // 2^140 is infinite as a float, 2^-160 is 0.
    Value* t = clamp(b_.CreateFMul(power, log2), -160, 140);
    Value* rounded = b_.CreateFAdd(t, d(kDoubleRounder));
    Value* n =
        b_.CreateSub(b_.CreateBitCast(rounded, wide), b_.CreateBitCast(d(kDoubleRounder), wide));
    Value* r = b_.CreateFMul(b_.CreateFSub(t, b_.CreateFSub(rounded, d(kDoubleRounder))), d(M_LN2));
    Value* result = polynomial(r,
                               {1 / 3628800.,
                                1 / 362880.,
                                1 / 40320.,
                                1 / 5040.,
                                1 / 720.,
                                1 / 120.,
                                1 / 24.,
                                1 / 6.,
                                1 / 2.,
                                1,
                                1});
    Value* scale = b_.CreateBitCast(b_.CreateShl(b_.CreateAdd(n, w(1023)), w(52)), real);
    Value* magnitude = b_.CreateFPTrunc(b_.CreateFMul(result, scale), type_);

    Value* half = b_.CreateFMul(y, f(0.5));
    Value* whole = b_.CreateFCmpOEQ(unary(llvm::Intrinsic::trunc, y), y);
    Value* odd = b_.CreateAnd(whole, b_.CreateFCmpUNE(unary(llvm::Intrinsic::trunc, half), half));
    Value* negative = b_.CreateICmpSLT(as_bits(x), i(0));
    Value* signed_result = where(b_.CreateAnd(negative, odd), b_.CreateFNeg(magnitude), magnitude);
    // A negative finite base needs a whole exponent.
    Value* undefined = b_.CreateAnd(b_.CreateAnd(b_.CreateFCmpOLT(x, f(0)), b_.CreateNot(whole)),
                                    b_.CreateFCmpONE(size, f(INFINITY)));
    signed_result = where(undefined, f(NAN), signed_result);
    signed_result = where(b_.CreateFCmpUNO(x, y), f(NAN), signed_result);
    // 1^y and x^0 are 1, whatever the other is; (-1)^inf too.
    Value* one = b_.CreateOr(b_.CreateFCmpOEQ(x, f(1)), b_.CreateFCmpOEQ(y, f(0)));
    one = b_.CreateOr(
        one, b_.CreateAnd(b_.CreateFCmpOEQ(x, f(-1)), b_.CreateFCmpOEQ(abs(y), f(INFINITY))));
    return where(one, f(1), signed_result);
  }

  llvm::IRBuilder<>& b_;
  llvm::Type* type_;
  llvm::Type* bits_;  // the integers of type_'s width
  bool fuses_;        // products are not rounded before they are added
  bool in_zmm_;       // values are 16 floats, in a register of AVX-512
};

}  // namespace

Value* emit_math(llvm::IRBuilder<>& b,
                 Intrinsic function,
                 llvm::ArrayRef<Value*> args,
                 MathInstructions instructions) {
  if (args[0]->getType()->getScalarType()->isDoubleTy()) return emit_double_math(b, function, args);
  return MathEmitter(b, args[0]->getType(), instructions)
      .emit(function, args[0], args.size() > 1 ? args[1] : nullptr);
}

Value* emit_remainder(llvm::IRBuilder<>& b, Value* x, Value* y) {
  return MathEmitter(b, x->getType()).remainder(x, y);
}

}  // namespace pruner
