// Windows, mel filters and Fourier transforms. A transform is a matmul with a constant matrix; a
// long one is split by the factors of its length (J. Cooley and J. Tukey, 1965).
#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>

#include "graph/functions/body.h"

namespace pruner {
namespace {

constexpr int64_t kDirect = 512;         // length of a complex transform that is one matmul
constexpr int64_t kLongestPrime = 4096;  // length without factors that still is one

Term made(Body& b,
          DType dtype,
          std::vector<int64_t> shape,
          const std::function<double(int64_t)>& of) {
  Tensor tensor(dtype, std::move(shape));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.set(i, of(i));
  return b.constant(std::move(tensor));
}

// Input i, a number that has to be known.
Result<double> constant_number(const Body& b, size_t i, const char* what) {
  const std::optional<double> value = b.call().scalar(i);
  if (value) return *value;
  return Error(what, " is computed at run time; it has to be a constant");
}

// a0 - a1 * cos(2 pi n / N) + a2 * cos(4 pi n / N).
void window(Body& b, double a0, double a1, double a2) {
  const Result<double> size = constant_number(b, 0, "the window's size");
  if (!size.ok()) return b.fail(size.error());
  const auto n = static_cast<int64_t>(*size);
  if (n < 1 || n > int64_t{1} << 30) return b.fail(Error("a window of ", n, " elements"));
  const int64_t period = std::max<int64_t>(b.call().integer("periodic", 1) ? n : n - 1, 1);
  const DType dtype = b.dtype("output_datatype", DType::kFloat32);
  b.output(0, made(b, dtype, {n}, [&](int64_t i) {
             const double turn =
                 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(period);
             return a0 - a1 * std::cos(turn) + a2 * std::cos(2 * turn);
           }));
}

void hann_window(Body& b) { window(b, 0.5, 0.5, 0); }
void hamming_window(Body& b) { window(b, 25.0 / 46, 21.0 / 46, 0); }
void blackman_window(Body& b) { window(b, 0.42, 0.5, 0.08); }

// Triangles over the bins of a spectrum, whose corners are evenly apart in mel.
void mel_weight_matrix(Body& b) {
  std::vector<double> given;
  for (size_t i = 0; i < 5; ++i) {
    const Result<double> value = constant_number(b, i, "an input of MelWeightMatrix");
    if (!value.ok()) return b.fail(value.error());
    given.push_back(*value);
  }
  const auto filters = static_cast<int64_t>(given[0]);
  const auto length = static_cast<int64_t>(given[1]);
  const double rate = given[2];
  if (filters < 1 || length < 1 || rate <= 0)
    return b.fail(Error(filters, " filters of a transform of ", length, " at a rate of ", rate));
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(given[3]);
  const double step = (mel(given[4]) - low) / static_cast<double>(filters + 2);
  const auto corner = [&](int64_t i) {
    const double hertz = 700 * (std::pow(10, (static_cast<double>(i) * step + low) / 2595) - 1);
    return std::floor(static_cast<double>(length + 1) * hertz / rate);
  };
  const auto weight = [&](int64_t i) {
    const auto bin = static_cast<double>(i / filters);
    const int64_t filter = i % filters;
    const double left = corner(filter), centre = corner(filter + 1), right = corner(filter + 2);
    if (bin == centre && (left == centre || right == centre)) return 1.0;
    if (bin >= left && bin <= centre && left < centre) {
      if (bin < centre || right == centre) return (bin - left) / (centre - left);
    }
    if (bin >= centre && bin < right) return (right - bin) / (right - centre);
    return 0.0;
  };
  const DType dtype = b.dtype("output_datatype", DType::kFloat32);
  b.output(0, made(b, dtype, {length / 2 + 1, filters}, weight));
}

/// A transform of signals [rows, points, 1 or 2]: real, or real and imaginary parts.
struct Fourier {
  int64_t length;
  bool inverse, onesided;

  int64_t bins() const { return length / 2 + 1; }
  bool to_real() const { return inverse && onesided; }
  int64_t outputs() const { return onesided && !inverse ? bins() : length; }

  Term of(Term x) const;

 private:
  Term direct(Term x) const;
  Term split(Term x, int64_t factor) const;
  double angle(int64_t i, int64_t k) const {
    const double turn = static_cast<double>(i * k % length) / static_cast<double>(length);
    return (inverse ? 2 : -2) * std::numbers::pi * turn;
  }
};

// Points that are not there are 0, and add nothing. To a real signal the bins between the first and
// the last contribute twice: once for the conjugate that is left out.
Term Fourier::direct(Term x) const {
  Body& b = *x.body;
  const int64_t points = x.extent(1), parts = x.extent(2), out_parts = to_real() ? 1 : 2;
  const auto element = [&](int64_t index) {
    const int64_t out_part = index % out_parts, k = index / out_parts % outputs();
    const int64_t in = index / out_parts / outputs(), part = in % parts, i = in / parts;
    const double turn = angle(i, k);
    const double value = part == out_part ? std::cos(turn) : (part == 0 ? 1 : -1) * std::sin(turn);
    const double twice = to_real() && i > 0 && 2 * i != length ? 2 : 1;
    return value * (inverse ? twice / static_cast<double>(length) : 1);
  };
  const Term matrix = made(b, x.dtype(), {points * parts, outputs() * out_parts}, element);
  const Term flat = b.reshape(x, {x.extent(0), points * parts});
  return b.reshape(b.add("MatMul", {flat, matrix}), {x.extent(0), outputs(), out_parts});
}

// (re + i im) * (cos + i sin), the second of [points, 2] or what broadcasts.
Term turned(Term x, Term cosine, Term sine) {
  Body& b = *x.body;
  const int64_t last = x.rank() - 1;
  const Term re = b.slice(x, last, 0, 1), im = b.slice(x, last, 1, 2);
  return b.concat({re * cosine - im * sine, re * sine + im * cosine}, last);
}

// With length = n * m: point m * i + j is transformed over i, turned by the angle of j and bin k,
// then over j; bin k + n * l results.
Term Fourier::split(Term x, int64_t n) const {
  Body& b = *x.body;
  const int64_t rows = x.extent(0), m = length / n;
  const Fourier over_i{n, inverse, false}, over_j{m, inverse, false};
  const Term by_j = b.transpose(b.reshape(x, {rows, n, m, 2}), {0, 2, 1, 3});
  const Term first = b.reshape(over_i.of(b.reshape(by_j, {rows * m, n, 2})), {rows, m, n, 2});
  const auto twiddle = [&](double (*of)(double)) {
    return made(b, x.dtype(), {m, n, 1}, [&](int64_t e) { return of(angle(e / n, e % n)); });
  };
  const Term between = turned(first, twiddle(std::cos), twiddle(std::sin));
  const Term by_k = b.reshape(b.transpose(between, {0, 2, 1, 3}), {rows * n, m, 2});
  const Term second = b.reshape(over_j.of(by_k), {rows, n, m, 2});
  return b.reshape(b.transpose(second, {0, 2, 1, 3}), {rows, length, 2});
}

Term Fourier::of(Term x) const {
  Body& b = *x.body;
  if (x.extent(1) > (to_real() ? bins() : length))
    x = b.slice(x, 1, 0, to_real() ? bins() : length);
  const auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(length)));
  int64_t factor = root;
  while (factor > 1 && length % factor != 0) --factor;
  if (length <= kDirect || (factor <= 1 && length <= kLongestPrime)) return direct(x);
  if (factor <= 1) {
    b.fail(Error("a transform of ", length, " points, a prime above ", kLongestPrime));
    return x;
  }
  const auto zeros = [&](int64_t points, int64_t parts) {
    return b.constant(Tensor(x.dtype(), {x.extent(0), points, parts}));
  };
  if (x.extent(2) == 1) x = b.concat({x, zeros(x.extent(1), 1)}, 2);
  if (to_real()) {
    if (x.extent(1) < bins()) x = b.concat({x, zeros(bins() - x.extent(1), 2)}, 1);
    // Bin k above the last is the conjugate of bin length - k.
    std::vector<int64_t> mirrored(static_cast<size_t>(length));
    for (int64_t k = 0; k < length; ++k) mirrored[static_cast<size_t>(k)] = std::min(k, length - k);
    const Term sign = made(b, x.dtype(), {length, 2}, [&](int64_t e) {
      return e % 2 == 1 && e / 2 >= bins() ? -1 : 1;
    });
    x = b.add("Gather", {x, b.integers(mirrored)}, {{"axis", int64_t{1}}}) * sign;
  } else if (x.extent(1) < length) {
    x = b.concat({x, zeros(length - x.extent(1), 2)}, 1);
  }
  const Term all = split(x, factor);
  if (to_real()) return b.slice(all, 2, 0, 1);
  return onesided ? b.slice(all, 1, 0, bins()) : all;
}

Result<int64_t> transformed_axis(const Body& b, int64_t rank) {
  int64_t axis = b.opset() < 20 ? b.call().integer("axis", 1) : -2;
  if (b.has(2)) {
    TRY_ASSIGN(const double given, constant_number(b, 2, "axis"));
    axis = static_cast<int64_t>(given);
  }
  TRY_ASSIGN(axis, normal_axis(axis, rank));
  if (axis == rank - 1) return Error("the axis is the last dimension, which holds complex numbers");
  return axis;
}

void dft(Body& b) {
  const Term x = b.input(0);
  const int64_t rank = x.rank();
  const Result<int64_t> axis = transformed_axis(b, rank);
  if (!axis.ok()) return b.fail(axis.error());
  Fourier fourier{
      x.extent(*axis), b.call().integer("inverse", 0) != 0, b.call().integer("onesided", 0) != 0};
  const int64_t parts = fourier.onesided && !fourier.inverse ? 1 : x.extent(-1);
  if (x.extent(-1) > 2 || parts != x.extent(-1) || (fourier.to_real() && parts != 2))
    return b.fail(Error("signals of ", x.extent(-1), " parts for this transform"));
  if (fourier.to_real()) fourier.length = 2 * (fourier.length - 1);
  if (b.has(1)) {
    const Result<double> length = constant_number(b, 1, "dft_length");
    if (!length.ok()) return b.fail(length.error());
    fourier.length = static_cast<int64_t>(*length);
  }
  if (fourier.length < 1 || fourier.length > int64_t{1} << 24)
    return b.fail(Error("a transform of ", fourier.length, " points"));
  std::vector<int64_t> order, back(static_cast<size_t>(rank)), shape;
  for (int64_t d = 0; d + 1 < rank; ++d) {
    if (d != *axis) order.push_back(d);
  }
  for (const int64_t d : order) shape.push_back(x.extent(d));
  const int64_t rows = element_count(shape);
  order.push_back(*axis);
  order.push_back(rank - 1);
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  const Term y =
      fourier.of(b.reshape(b.transpose(x, order), {rows, x.extent(*axis), x.extent(-1)}));
  shape.push_back(y.extent(1));
  shape.push_back(y.extent(2));
  b.output(0, b.transpose(b.reshape(y, shape), back));
}

// Frames of the signal, each times the window, as the rows of one transform.
void stft(Body& b) {
  Term x = b.input(0);
  const Result<double> step = constant_number(b, 1, "frame_step");
  if (!step.ok()) return b.fail(step.error());
  int64_t length = b.has(2) ? b.input(2).extent(0) : x.extent(1);
  if (b.has(3)) {
    const Result<double> given = constant_number(b, 3, "frame_length");
    if (!given.ok()) return b.fail(given.error());
    length = static_cast<int64_t>(*given);
  }
  const auto stride = static_cast<int64_t>(*step);
  if (x.rank() == 2) x = b.unsqueeze(x, 2);
  if (x.rank() != 3 || stride < 1 || length < 1 || length > x.extent(1))
    return b.fail(Error("frames of ", length, " every ", stride, " of ", print_shape(x.shape())));
  const int64_t frames = (x.extent(1) - length) / stride + 1;
  Tensor places(DType::kInt64, {frames, length});
  for (int64_t i = 0; i < places.num_elements(); ++i)
    places.set_int(i, i / length * stride + i % length);
  x = b.add("Gather", {x, b.constant(std::move(places))}, {{"axis", int64_t{1}}});
  if (b.has(2)) x = x * b.reshape(b.input(2), {length, 1});
  const bool onesided = b.call().integer("onesided", 1) != 0 && x.extent(-1) == 1;
  const Term y = Fourier{length, false, onesided}.of(
      b.reshape(x, {x.extent(0) * frames, length, x.extent(-1)}));
  b.output(0, b.reshape(y, {x.extent(0), frames, y.extent(1), y.extent(2)}));
}

constexpr Function kSignalFunctions[] = {
    {"BlackmanWindow", 1, 1, "output_datatype:i periodic:i", blackman_window},
    {"DFT", 1, 3, "axis:i inverse:i onesided:i", dft},
    {"HammingWindow", 1, 1, "output_datatype:i periodic:i", hamming_window},
    {"HannWindow", 1, 1, "output_datatype:i periodic:i", hann_window},
    {"MelWeightMatrix", 5, 5, "output_datatype:i", mel_weight_matrix},
    {"STFT", 2, 4, "onesided:i", stft},
};

}  // namespace

std::span<const Function> signal_functions() { return kSignalFunctions; }

}  // namespace pruner
