// The functions of doubles: the methods of fdlibm and Cephes where they have rational functions,
// series where the argument is small after reduction. The same code serves a double and a vector of
// doubles; selects stand in for branches.
#include <llvm/IR/Module.h>

#include <array>
#include <cmath>

#include "codegen/llvm/math.h"
#include "support/check.h"

namespace pruner {
namespace {

using llvm::Value;

/// high + low, of which high is the sum rounded.
struct Pair {
  Value *high, *low;
};

class DoubleMath {
 public:
  DoubleMath(llvm::IRBuilder<>& b, llvm::Type* type)
      : b_(b), type_(type), bits_(type->getWithNewType(b.getInt64Ty())) {}

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
      case Intrinsic::kExpm1: return expm1(x);
      case Intrinsic::kLog1p: return log1p(x);
      case Intrinsic::kNormalCdf: return normal_cdf(x);
      default: break;  // no function of doubles (kNotOfDouble), or none of reals
    }
    CHECK(false) << "no function of doubles";
    return nullptr;
  }

  // x = m * 2^e with an integer m < 2^53: bits of its quotient by y are divided out 11 at a time,
  // in integers of 64 bits, until both have one exponent.
  Value* remainder(Value* x, Value* y, Value* counts) {
    // Lanes that do not count compute 1 % 1. An x that is less than y is the remainder already.
    x = where(counts, x, f(1));
    y = where(counts, y, f(1));
    Value* less = b_.CreateFCmpOLT(x, y);
    const auto [m, e] = whole(x);
    const auto [divisor, least] = whole(y);
    llvm::BasicBlock* before = b_.GetInsertBlock();
    auto* body = llvm::BasicBlock::Create(b_.getContext(), "", before->getParent());
    auto* after = llvm::BasicBlock::Create(b_.getContext(), "", before->getParent());
    Value* first = b_.CreateURem(m, divisor);
    Value* apart = b_.CreateSub(e, least);
    apart = where(b_.CreateICmpSGT(apart, i(0)), apart, i(0));
    b_.CreateBr(body);
    b_.SetInsertPoint(body);
    auto *rest = b_.CreatePHI(bits_, 2), *left = b_.CreatePHI(bits_, 2);
    rest->addIncoming(first, before);
    left->addIncoming(apart, before);
    Value* step = where(b_.CreateICmpSLT(left, i(11)), left, i(11));
    Value* next = b_.CreateURem(b_.CreateShl(rest, step), divisor);
    Value* remaining = b_.CreateSub(left, step);
    rest->addIncoming(next, body);
    left->addIncoming(remaining, body);
    Value* more = b_.CreateICmpSGT(remaining, i(0));
    b_.CreateCondBr(more->getType()->isVectorTy() ? b_.CreateOrReduce(more) : more, body, after);
    b_.SetInsertPoint(after);
    Value* exponent = b_.CreateSub(least, i(1075));
    Value* half = b_.CreateAShr(exponent, i(1));
    Value* scaled = mul(b_.CreateUIToFP(next, type_), power_of_two(half));
    return where(less, x, mul(scaled, power_of_two(b_.CreateSub(exponent, half))));
  }

 private:
  Value* f(double v) { return llvm::ConstantFP::get(type_, v); }
  Value* i(int64_t v) { return llvm::ConstantInt::getSigned(bits_, v); }
  Value* as_bits(Value* x) { return b_.CreateBitCast(x, bits_); }
  Value* as_double(Value* x) { return b_.CreateBitCast(x, type_); }
  Value* add(Value* x, Value* y) { return b_.CreateFAdd(x, y); }
  Value* sub(Value* x, Value* y) { return b_.CreateFSub(x, y); }
  Value* mul(Value* x, Value* y) { return b_.CreateFMul(x, y); }
  Value* div(Value* x, Value* y) { return b_.CreateFDiv(x, y); }
  Value* where(Value* condition, Value* x, Value* y) { return b_.CreateSelect(condition, x, y); }
  Value* unary(llvm::Intrinsic::ID id, Value* x) { return b_.CreateUnaryIntrinsic(id, x); }
  Value* abs(Value* x) { return unary(llvm::Intrinsic::fabs, x); }
  Value* with_sign_of(Value* magnitude, Value* sign) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign);
  }
  Value* fma(Value* x, Value* y, Value* z) {
    return b_.CreateIntrinsic(llvm::Intrinsic::fmuladd, {x->getType()}, {x, y, z});
  }
  /// c[0] * x^(n-1) + ... + c[n-1].
  template <typename Coefficients>
  Value* polynomial(Value* x, const Coefficients& c) {
    Value* sum = f(*c.begin());
    for (auto next = c.begin() + 1; next != c.end(); ++next) sum = fma(sum, x, f(*next));
    return sum;
  }
  Value* polynomial(Value* x, std::initializer_list<double> c) {
    return polynomial<std::initializer_list<double>>(x, c);
  }
  // NaN stays NaN, here and in clamp().
  Value* at_most(Value* x, double high) { return where(b_.CreateFCmpOGT(x, f(high)), f(high), x); }
  Value* clamp(Value* x, double low, double high) {
    return at_most(where(b_.CreateFCmpOLT(x, f(low)), f(low), x), high);
  }

  // 1.5 * 2^52: a double added to it has its nearest integer in the lowest bits of the sum.
  static constexpr double kRounder = 6755399441055744.0;
  // ln(2) in two parts; the first has 42 bits, so that its multiples by exponents are exact.
  static constexpr double kLn2High = 0x1.62e42fefa3800p-1, kLn2Low = 0x1.ef35793c76730p-45;

  Value* from_small_int(Value* n) {
    return sub(as_double(b_.CreateAdd(n, as_bits(f(kRounder)))), f(kRounder));
  }

  // exp(x + tail) = 2^n * exp(r), |r| <= ln(2)/2: 1 + r + r^2 * (1/2! + r/3! + ...), where r^14/14!
  // is less than a tenth of the last place. The power is multiplied in two halves, so that results
  // beyond the normal range round once. |x| is at most some 800.
  Value* exp_of(Value* x, Value* tail) {
    const auto [n, more] = split_exp(x, tail);
    Value* power = add(f(1), more);
    Value* half = b_.CreateAShr(n, i(1));
    return mul(mul(power, power_of_two(half)), power_of_two(b_.CreateSub(n, half)));
  }
  // exp(x + tail) = 2^n * (1 + more).
  struct Power {
    Value *n, *more;
  };
  Power split_exp(Value* x, Value* tail) {
    Value* rounded = fma(x, f(M_LOG2E), f(kRounder));
    Value* whole = sub(rounded, f(kRounder));
    Value* r = fma(whole, f(-kLn2Low), fma(whole, f(-kLn2High), x));
    if (tail) r = add(r, tail);
    std::array<double, 12> series;
    double factorial = 1;
    for (int n = 2; n <= 13; ++n) series[static_cast<size_t>(13 - n)] = 1 / (factorial *= n);
    Value* n = b_.CreateSub(as_bits(rounded), as_bits(f(kRounder)));
    return {n, fma(mul(r, r), polynomial(r, series), r)};
  }
  Value* power_of_two(Value* n) { return as_double(b_.CreateShl(b_.CreateAdd(n, i(1023)), i(52))); }

  // m and e of |x| = m * 2^(e - 1075); numbers below the normal ones have the least e.
  struct Whole {
    Value *m, *e;
  };
  Whole whole(Value* x) {
    Value* bits = as_bits(x);
    Value* e = b_.CreateLShr(bits, i(52));
    Value* fraction = b_.CreateAnd(bits, i((int64_t{1} << 52) - 1));
    Value* normal = b_.CreateICmpNE(e, i(0));
    Value* m = b_.CreateOr(fraction, where(normal, i(int64_t{1} << 52), i(0)));
    return {m, where(normal, e, i(1))};
  }

  // Beyond these limits exp is infinite, or rounds to 0.
  Value* exp(Value* x) { return exp_of(clamp(x, -746, 710), nullptr); }

  // 2^n * more + (2^n - 1). Half of it is computed and doubled, as 2^1024 is no double.
  Value* expm1(Value* x) {
    // Beyond these limits the result is infinite, or rounds to -1.
    const auto [n, more] = split_exp(clamp(x, -40, 709.9), nullptr);
    Value* half = power_of_two(b_.CreateSub(n, i(1)));
    Value* result = fma(more, half, sub(half, f(0.5)));
    // Half of a small number may be subnormal, and the sum has no sign of zero.
    return where(b_.CreateFCmpOLT(abs(x), f(0x1p-54)), x, add(result, result));
  }

  // |x| = mantissa * 2^exponent, sqrt(1/2) <= mantissa < sqrt(2); of numbers that are not 0.
  struct Parts {
    Value *exponent, *mantissa;  // both doubles
  };
  Parts split(Value* x) {
    Value* subnormal = b_.CreateFCmpOLT(x, f(0x1p-1022));
    Value* bits = as_bits(where(subnormal, mul(x, f(0x1p54)), x));
    // The constant is sqrt(1/2).
    Value* exponent = b_.CreateAShr(b_.CreateSub(bits, i(0x3fe6a09e667f3bcd)), i(52));
    Value* mantissa = as_double(b_.CreateSub(bits, b_.CreateShl(exponent, i(52))));
    Value* k = from_small_int(exponent);
    return {where(subnormal, sub(k, f(54)), k), mantissa};
  }

  // With t = m - 1 and s = t / (2 + t), log(m) is 2 * atanh(s), whose series begins with 2 * s = t
  // - s * t: then s * (t^2/2 + rest) makes up for t - t^2/2 (fdlibm's form, which loses no bits).
  Value* log(Value* x) {
    const auto [k, mantissa] = split(x);
    Value* t = sub(mantissa, f(1));
    Value* s = div(t, add(t, f(2)));
    Value* z = mul(s, s);
    Value* rest = mul(z,
                      polynomial(z,
                                 {2 / 21.,
                                  2 / 19.,
                                  2 / 17.,
                                  2 / 15.,
                                  2 / 13.,
                                  2 / 11.,
                                  2 / 9.,
                                  2 / 7.,
                                  2 / 5.,
                                  2 / 3.}));
    Value* half_square = mul(mul(f(0.5), t), t);
    Value* low = fma(s, add(half_square, rest), mul(k, f(kLn2Low)));
    Value* result = fma(k, f(kLn2High), sub(t, sub(half_square, low)));
    // log(0) = -inf, log(inf) = inf, log of NaN or a negative number is NaN.
    result = where(b_.CreateFCmpOLT(x, f(INFINITY)), result, x);
    result = where(b_.CreateFCmpUGT(x, f(0)), result, f(-INFINITY));
    return where(b_.CreateFCmpOLT(x, f(0)), f(NAN), result);
  }

  // The part of x that 1 + x loses is mended by the factor x / ((1 + x) - 1) (W. Kahan).
  Value* log1p(Value* x) {
    Value* sum = add(f(1), x);
    Value* more = sub(sum, f(1));
    Value* logarithm = log(sum);
    Value* mended = mul(logarithm, div(x, more));
    mended = where(b_.CreateFCmpOEQ(more, f(0)), x, mended);
    return where(b_.CreateFCmpOLT(x, f(0x1p54)), mended, logarithm);
  }

  // Cephes' rational function near 0; elsewhere 1 - 2 / (exp(2x) + 1).
  Value* tanh(Value* x) {
    Value* size = abs(x);
    Value* square = mul(x, x);
    Value* above = polynomial(
        square, {-9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3});
    Value* below = polynomial(
        square, {1, 1.12811678491632931402e2, 2.23548839060100448583e3, 4.84406305325125486048e3});
    // The magnitude only: added to 0, a term of the other sign would give +0 for -0.
    Value* near = fma(mul(size, square), div(above, below), size);
    Value* most = at_most(size, 22);  // beyond, tanh is 1
    Value* power = exp(add(most, most));
    Value* far = sub(f(1), div(f(2), add(power, f(1))));
    Value* result = where(b_.CreateFCmpOGE(size, f(0.625)), far, near);  // NaN: near
    return with_sign_of(result, x);
  }

  // With e = exp(-|x|), 1 / (1 + e) or e / (1 + e): nothing overflows, small results keep their
  // bits.
  Value* sigmoid(Value* x) {
    Value* e = exp(b_.CreateFNeg(abs(x)));
    return div(where(b_.CreateFCmpOLT(x, f(0)), e, f(1)), add(f(1), e));
  }

  // fdlibm's rational functions in four ranges.
  Value* erf(Value* x) {
    Value* size = at_most(abs(x), 6);  // beyond, erf is 1
    Value* z = mul(size, size);
    Value* near = near_erf(x, z);
    Value* middle = add(f(kErfOfOne), middle_erf(size));
    // 1 - exp(-x^2 - 0.5625 + rational(1/x^2)) / x.
    Value* inverse = div(f(1), z);
    Value* exponent = sub(erf_tail(size, inverse), add(z, f(0.5625)));
    Value* far = sub(f(1), div(exp(exponent), size));
    Value* beyond = where(b_.CreateFCmpOGE(size, f(1.25)), far, middle);
    return where(b_.CreateFCmpOGE(size, f(0.84375)), with_sign_of(beyond, x), near);
  }

  // Half of erfc(|x| / sqrt(2)) by the same functions is the lower tail. Where x^2 is large, what
  // its rounding leaves out counts.
  Value* normal_cdf(Value* x) {
    Value* t = at_most(abs(x), 38.8);  // beyond, the tail rounds to 0
    Value* size = mul(t, f(M_SQRT1_2));
    Value* z = mul(size, size);
    Value* near = sub(f(1), near_erf(size, z));
    Value* middle = sub(f(1 - kErfOfOne), middle_erf(size));
    const Pair square = two_product(t, t);
    Value* power = exp_of(mul(square.high, f(-0.5)), mul(square.low, f(-0.5)));
    Value* factor = exp(sub(erf_tail(size, div(f(1), z)), f(0.5625)));
    Value* far = div(mul(power, factor), size);
    Value* twice = where(b_.CreateFCmpOGE(size, f(1.25)), far, middle);
    Value* tail = mul(where(b_.CreateFCmpOGE(size, f(0.84375)), twice, near), f(0.5));
    return where(b_.CreateFCmpOLT(x, f(0)), tail, sub(f(1), tail));
  }

  // erf(x) where |x| < 0.84375, with z = x^2.
  Value* near_erf(Value* x, Value* z) {
    Value* near = div(polynomial(z,
                                 {-2.37630166566501626084e-05,
                                  -5.77027029648944159157e-03,
                                  -2.84817495755985104766e-02,
                                  -3.25042107247001499370e-01,
                                  1.28379167095512558561e-01}),
                      polynomial(z,
                                 {-3.96022827877536812320e-06,
                                  1.32494738004321644526e-04,
                                  5.08130628187576562776e-03,
                                  6.50222499887672944485e-02,
                                  3.97917223959155352819e-01,
                                  1}));
    return fma(x, near, x);
  }
  // erf(size) - kErfOfOne where 0.84375 <= size < 1.25.
  static constexpr double kErfOfOne = 8.45062911510467529297e-01;
  Value* middle_erf(Value* size) {
    Value* s = sub(size, f(1));
    return div(polynomial(s,
                          {-2.16637559486879084300e-03,
                           3.54783043256182359371e-02,
                           -1.10894694282396677476e-01,
                           3.18346619901161753674e-01,
                           -3.72207876035701323847e-01,
                           4.14856118683748331666e-01,
                           -2.36211856075265944077e-03}),
               polynomial(s,
                          {1.19844998467991074170e-02,
                           1.36370839120290507362e-02,
                           1.26171219808761642112e-01,
                           7.18286544141962662868e-02,
                           5.40397917702171048937e-01,
                           1.06420880400844228286e-01,
                           1}));
  }
  Value* erf_tail(Value* size, Value* s) {
    Value* close = div(polynomial(s,
                                  {-9.81432934416914548592e+00,
                                   -8.12874355063065934246e+01,
                                   -1.84605092906711035994e+02,
                                   -1.62396669462573470355e+02,
                                   -6.23753324503260060396e+01,
                                   -1.05586262253232909814e+01,
                                   -6.93858572707181764372e-01,
                                   -9.86494403484714822705e-03}),
                       polynomial(s,
                                  {-6.04244152148580987438e-02,
                                   6.57024977031928170135e+00,
                                   1.08635005541779435134e+02,
                                   4.29008140027567833386e+02,
                                   6.45387271733267880336e+02,
                                   4.34565877475229228821e+02,
                                   1.37657754143519042600e+02,
                                   1.96512716674392571292e+01,
                                   1}));
    Value* distant = div(polynomial(s,
                                    {-4.83519191608651397019e+02,
                                     -1.02509513161107724954e+03,
                                     -6.37566443368389627722e+02,
                                     -1.60636384855821916062e+02,
                                     -1.77579549177547519889e+01,
                                     -7.99283237680523006574e-01,
                                     -9.86494292470009928597e-03}),
                         polynomial(s,
                                    {-2.24409524465858183362e+01,
                                     4.74528541206955367215e+02,
                                     2.55305040643316442583e+03,
                                     3.19985821950859553908e+03,
                                     1.53672958608443695994e+03,
                                     3.25792512996573918826e+02,
                                     3.03380607434824582924e+01,
                                     1}));
    return where(b_.CreateFCmpOLT(size, f(1 / 0.35)), close, distant);
  }

  // The quadrant q and the rest r of x = q * pi/2 + r, |r| <= pi/4; then the series of sine and
  // cosine, where r^19/19! is below the last place.
  Value* sin_or_cos(Value* x, int64_t quarter_turns) {
    Value* rounded = fma(x, f(M_2_PI), f(kRounder));
    Value* q = as_bits(rounded);
    Value* whole = sub(rounded, f(kRounder));
    // pi/2 in parts of 33 bits, whose multiples by 20 bits are exact.
    Value* r = fma(whole, f(-0x1.921fb54400000p+0), x);
    r = fma(whole, f(-0x1.0b4611a600000p-34), r);
    r = fma(whole, f(-0x1.3198a2e000000p-69), r);
    r = fma(whole, f(-0x1.b839a252049c1p-104), r);
    reduce_large(x, q, r);
    q = b_.CreateAdd(q, i(quarter_turns));
    Value* z = mul(r, r);
    std::array<double, 8> sines, cosines;  // (-1)^n / (2n + 1)! from n = 8 to 1; / (2n + 2)!
    double factorial = 1;
    for (int n = 1; n <= 8; ++n) {
      const double sign = n % 2 == 0 ? 1 : -1;
      sines[static_cast<size_t>(8 - n)] = sign / (factorial *= 2 * n * (2 * n + 1));
      cosines[static_cast<size_t>(8 - n)] = -sign / (factorial * (2 * n + 2));
    }
    Value* sine =
        with_sign_of(fma(mul(r, z), polynomial(z, sines), r), r);  // a zero keeps its sign, too
    // 1 - z/2 rounds; what it loses is given back.
    Value* half = mul(z, f(0.5));
    Value* most = sub(f(1), half);
    Value* rest = fma(mul(z, z), polynomial(z, cosines), sub(sub(f(1), most), half));
    Value* cosine = add(most, rest);
    Value* odd = b_.CreateICmpNE(b_.CreateAnd(q, i(1)), i(0));
    Value* result = where(odd, cosine, sine);
    // Quadrants 2 and 3 change the sign: bit 1 of q goes to the place of the sign, 63.
    Value* flip = b_.CreateShl(b_.CreateAnd(q, i(2)), i(62));
    return as_double(b_.CreateXor(as_bits(result), flip));
  }

  // Beyond 2^20 the product with 2/pi is made of integers (Payne and Hanek). A branch: it is long
  // and rarely needed.
  void reduce_large(Value* x, Value*& q, Value*& r) {
    Value* large = b_.CreateFCmpOGE(abs(x), f(0x1p20));
    Value* any = large->getType()->isVectorTy() ? b_.CreateOrReduce(large) : large;
    llvm::BasicBlock* before = b_.GetInsertBlock();
    llvm::Function* function = before->getParent();
    auto* slow = llvm::BasicBlock::Create(b_.getContext(), "", function);
    auto* after = llvm::BasicBlock::Create(b_.getContext(), "", function);
    b_.CreateCondBr(any, slow, after);
    b_.SetInsertPoint(slow);
    auto [slow_q, slow_r] = payne_hanek(x, large);
    slow_q = where(large, slow_q, q);
    slow_r = where(large, slow_r, r);
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
    for (const auto& [fast, exact] : {std::pair{&q, slow_q}, std::pair{&r, slow_r}}) {
      auto* phi = b_.CreatePHI(exact->getType(), 2);
      phi->addIncoming(*fast, before);
      phi->addIncoming(exact, slow);
      *fast = phi;
    }
  }

  // |x| = m * 2^e with an integer m < 2^53. Of 2/pi, what gives multiples of 4 quarter turns is
  // dropped: the 192 bits from bit e - 2 on remain, of whose product with m the fraction counts.
  std::pair<Value*, Value*> payne_hanek(Value* x, Value* large) {
    llvm::Type* wide = type_->getWithNewType(b_.getInt128Ty());
    const auto w = [&](uint64_t v) { return llvm::ConstantInt::get(wide, v); };
    const auto widen = [&](Value* v) { return b_.CreateZExt(v, wide); };
    Value* bits = as_bits(abs(x));
    Value* m = b_.CreateOr(b_.CreateAnd(bits, i((int64_t{1} << 52) - 1)), i(int64_t{1} << 52));
    // e - 2, counted from the 64 zero bits that the table begins with.
    Value* place = b_.CreateSub(b_.CreateLShr(bits, i(52)), i(1075 + 2 - 64));
    place = where(large, place, i(0));
    Value* word = b_.CreateLShr(place, i(6));
    Value* shift = b_.CreateAnd(place, i(63));
    std::array<Value*, 4> words;
    for (int64_t k = 0; k < 4; ++k)
      words[static_cast<size_t>(k)] = two_over_pi(b_.CreateAdd(word, i(k)));
    const auto window = [&](size_t k) {
      return b_.CreateIntrinsic(llvm::Intrinsic::fshl, {bits_}, {words[k], words[k + 1], shift});
    };
    Value* low = b_.CreateLShr(b_.CreateMul(widen(m), widen(window(2))), w(64));
    Value* middle = b_.CreateMul(widen(m), widen(window(1)));
    Value* high = b_.CreateShl(widen(b_.CreateMul(m, window(0))), w(64));
    Value* product = b_.CreateAdd(b_.CreateAdd(high, middle), low);
    // 2 bits of quadrant, 126 of fraction; more than half a quarter turn goes to the next one.
    Value* q = b_.CreateTrunc(b_.CreateLShr(product, w(126)), bits_);
    Value* rest = b_.CreateShl(product, w(2));
    q = b_.CreateAdd(q, b_.CreateTrunc(b_.CreateLShr(rest, w(127)), bits_));
    // The rest, read as a signed number, is less by the quarter turn that q has gained.
    Value* top = b_.CreateTrunc(b_.CreateLShr(rest, w(64)), bits_);
    Value* bottom = b_.CreateTrunc(rest, bits_);
    Value* turns = fma(b_.CreateSIToFP(top, type_), f(0x1p64), b_.CreateUIToFP(bottom, type_));
    Value* r = mul(turns, f(0x1.921fb54442d18p-128));  // pi/2 * 2^-128
    Value* negative = b_.CreateFCmpOLT(x, f(0));
    r = where(negative, b_.CreateFNeg(r), r);
    q = where(negative, b_.CreateNeg(q), q);
    return {q, where(b_.CreateFCmpOLT(abs(x), f(INFINITY)), r, f(NAN))};
  }

  // 64 zero bits, then those of 2/pi.
  Value* two_over_pi(Value* word) {
    static constexpr uint64_t kWords[] = {
        0,
        0xa2f9836e4e441529,
        0xfc2757d1f534ddc0,
        0xdb6295993c439041,
        0xfe5163abdebbc561,
        0xb7246e3a424dd2e0,
        0x06492eea09d1921c,
        0xfe1deb1cb129a73e,
        0xe88235f52ebb4484,
        0xe99c7026b45f7e41,
        0x3991d639835339f4,
        0x9c845f8bbdf9283b,
        0x1ff897ffde05980f,
        0xef2f118b5a0a6d1f,
        0x6d367ecf27cb09b7,
        0x4f463f669e5fea2d,
        0x7527bac7ebe5f17b,
        0x3d0739f78a5292ea,
        0x6bfb5fb11f8d5d08,
        0x56033046fc7b6bab,
        0xf0cfbc209af4361d,
    };
    llvm::Module* module = b_.GetInsertBlock()->getModule();
    constexpr const char* kName = "two_over_pi";
    llvm::GlobalVariable* table = module->getGlobalVariable(kName, true);
    if (!table) {
      llvm::Constant* words = llvm::ConstantDataArray::get(b_.getContext(), kWords);
      table = new llvm::GlobalVariable(
          *module, words->getType(), true, llvm::GlobalValue::PrivateLinkage, words, kName);
    }
    Value* places = b_.CreateGEP(b_.getInt64Ty(), table, word);
    const llvm::Align align(8);
    if (!word->getType()->isVectorTy()) return b_.CreateAlignedLoad(bits_, places, align);
    return b_.CreateMaskedGather(bits_, places, align);
  }

  // -- Twice as many bits, for the logarithm of pow: nothing here may be fused.

  Pair two_sum(Value* a, Value* b) {
    Value* sum = add(a, b);
    Value* of_b = sub(sum, a);
    return {sum, add(sub(a, sub(sum, of_b)), sub(b, of_b))};
  }
  // Dekker's: each factor in two halves of 26 bits.
  Pair two_product(Value* a, Value* b) {
    const auto halves = [&](Value* x) -> Pair {
      Value* scaled = mul(x, f(0x1p27 + 1));
      Value* high = sub(scaled, sub(scaled, x));
      return {high, sub(x, high)};
    };
    const Pair x = halves(a), y = halves(b);
    Value* product = mul(a, b);
    Value* low = sub(mul(x.high, y.high), product);
    low = add(add(low, mul(x.high, y.low)), mul(x.low, y.high));
    return {product, add(low, mul(x.low, y.low))};
  }
  Pair product_of(Pair a, Pair b) {
    const Pair product = two_product(a.high, b.high);
    Value* low = add(product.low, add(mul(a.high, b.low), mul(a.low, b.high)));
    return two_sum(product.high, low);
  }

  // With s = (m - 1) / (m + 1), log(m) is 2 * (s + s * z * (1/3 + z/5 + ...)) for z = s^2.
  Pair log_pair(Value* size) {
    const auto [k, m] = split(size);
    Value* t = sub(m, f(1));
    const Pair d = two_sum(m, f(1));
    Value* quotient = div(t, d.high);
    const Pair back = two_product(quotient, d.high);
    Value* missing = sub(sub(sub(t, back.high), back.low), mul(quotient, d.low));
    const Pair s = {quotient, div(missing, d.high)};
    const Pair z = product_of(s, s);
    Value* rest = mul(z.high,
                      polynomial(z.high,
                                 {1 / 23.,
                                  1 / 21.,
                                  1 / 19.,
                                  1 / 17.,
                                  1 / 15.,
                                  1 / 13.,
                                  1 / 11.,
                                  1 / 9.,
                                  1 / 7.,
                                  1 / 5.}));
    constexpr double kThird = 1 / 3., kThirdLow = 0x1.5555555555555p-56;
    const Pair sum = two_sum(f(kThird), rest);
    const Pair series = {sum.high, add(sum.low, f(kThirdLow))};
    const Pair cubic = product_of(s, product_of(z, series));
    const Pair half = two_sum(s.high, cubic.high);
    Value* low = add(half.low, add(s.low, cubic.low));
    const Pair whole = two_sum(mul(k, f(kLn2High)), mul(half.high, f(2)));
    low = add(whole.low, add(mul(low, f(2)), mul(k, f(kLn2Low))));
    return two_sum(whole.high, low);
  }

  // |x|^y = exp(y * log|x|); then the cases of IEEE 754.
  Value* pow(Value* x, Value* y) {
    Value* size = abs(x);
    const Pair log = log_pair(size);
    // Beyond 2^64, what is not 1 to the power of y is 0 or infinite.
    Value* power = clamp(y, -0x1p64, 0x1p64);
    const Pair product = two_product(power, log.high);
    Value* low = add(product.low, mul(power, log.low));
    Value* endless = mul(power, f(INFINITY));
    Value* high = where(b_.CreateFCmpOEQ(size, f(0)), b_.CreateFNeg(endless), product.high);
    high = where(b_.CreateFCmpOEQ(size, f(INFINITY)), endless, high);
    // exp(-800) is 0, exp(800) infinite.
    low = where(b_.CreateFCmpOLT(abs(high), f(800)), low, f(0));
    Value* magnitude = exp_of(clamp(high, -800, 800), low);

    Value* half = mul(y, f(0.5));
    Value* whole = b_.CreateFCmpOEQ(unary(llvm::Intrinsic::trunc, y), y);
    Value* odd = b_.CreateAnd(whole, b_.CreateFCmpUNE(unary(llvm::Intrinsic::trunc, half), half));
    Value* negative = b_.CreateICmpSLT(as_bits(x), i(0));
    Value* result = where(b_.CreateAnd(negative, odd), b_.CreateFNeg(magnitude), magnitude);
    // A negative finite base needs a whole exponent.
    Value* undefined = b_.CreateAnd(b_.CreateAnd(b_.CreateFCmpOLT(x, f(0)), b_.CreateNot(whole)),
                                    b_.CreateFCmpONE(size, f(INFINITY)));
    result = where(b_.CreateOr(undefined, b_.CreateFCmpUNO(x, y)), f(NAN), result);
    // 1^y and x^0 are 1, whatever the other is; (-1)^inf too.
    Value* one = b_.CreateOr(b_.CreateFCmpOEQ(x, f(1)), b_.CreateFCmpOEQ(y, f(0)));
    one = b_.CreateOr(
        one, b_.CreateAnd(b_.CreateFCmpOEQ(x, f(-1)), b_.CreateFCmpOEQ(abs(y), f(INFINITY))));
    return where(one, f(1), result);
  }

  llvm::IRBuilder<>& b_;
  llvm::Type* type_;
  llvm::Type* bits_;  // the integers of type_'s width
};

}  // namespace

Value* emit_double_math(llvm::IRBuilder<>& b, Intrinsic function, llvm::ArrayRef<Value*> args) {
  return DoubleMath(b, args[0]->getType())
      .emit(function, args[0], args.size() > 1 ? args[1] : nullptr);
}

Value* emit_double_remainder(llvm::IRBuilder<>& b, Value* x, Value* y, Value* counts) {
  return DoubleMath(b, x->getType()).remainder(x, y, counts);
}

}  // namespace pruner
