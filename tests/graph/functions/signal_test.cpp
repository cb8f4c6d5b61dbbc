#include <complex>
#include <numbers>

#include "graph/small_graph.h"

namespace pruner {
namespace {

using V = std::vector<double>;
using Complex = std::complex<double>;

Operand number(double value, DType dtype = DType::kInt64) {
  Tensor tensor(dtype, {});
  tensor.set(0, value);
  return Operand::weight(std::move(tensor));
}

// Transforms the rows of x, [rows, points, parts], by the definition; missing points are 0.
Tensor transformed(const Tensor& x, int64_t length, bool inverse) {
  const int64_t rows = x.shape()[0], points = x.shape()[1], parts = x.shape()[2];
  Tensor y(DType::kFloat32, {rows, length, 2});
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t k = 0; k < length; ++k) {
      Complex sum = 0;
      for (int64_t i = 0; i < std::min(points, length); ++i) {
        const int64_t at = (r * points + i) * parts;
        const double turn = static_cast<double>(i * k % length) / static_cast<double>(length);
        sum += Complex(x.get(at), parts == 2 ? x.get(at + 1) : 0) *
               std::polar(1.0, (inverse ? 2 : -2) * std::numbers::pi * turn);
      }
      if (inverse) sum /= static_cast<double>(length);
      y.set(2 * (r * length + k), sum.real());
      y.set(2 * (r * length + k) + 1, sum.imag());
    }
  }
  return y;
}

Tensor dft(const Tensor& x,
           const Attributes& attributes = {},
           double axis = 1,
           int64_t length = 0) {
  const Operand points = number(static_cast<double>(length ? length : x.shape()[1]));
  return run_op("DFT", {x, points, number(axis)}, attributes);
}

TEST(Windows, ArePeriodicUnlessTold) {
  expect_near(run_op("HannWindow", {number(4)}), floats({4}, {0, 0.5, 1, 0.5}));
  expect_near(run_op("HannWindow", {number(3)}, {{"periodic", int64_t{0}}}),
              floats({3}, {0, 1, 0}));
  expect_near(run_op("HammingWindow", {number(4)}),
              floats({4}, {4.0 / 46, 25.0 / 46, 1, 25.0 / 46}));
  expect_near(run_op("BlackmanWindow", {number(4)}), floats({4}, {0, 0.34, 1, 0.34}), 1e-6);
}

Tensor mel_filters(double filters, double length, double rate, double highest) {
  return run_op("MelWeightMatrix",
                {number(filters),
                 number(length),
                 number(rate),
                 number(0, DType::kFloat32),
                 number(highest, DType::kFloat32)});
}

// 8000 Hz are 2840 mel, thirds of which are 0, 921 and 3055 Hz: bins 0, 3 and 11 of 31 / 8192 Hz.
TEST(MelWeightMatrix, IsMadeOfTriangles) {
  const Tensor found = mel_filters(1, 30, 8192, 8000);
  V expected = {0, 1.0 / 3, 2.0 / 3};
  for (int bin = 3; bin < 16; ++bin) expected.push_back(std::max(0.0, (11 - bin) / 8.0));
  expect_near(found, floats({16, 1}, expected));
}

// The corners are the bins 0, 0, 0, 1, 1, 2, ...
TEST(MelWeightMatrix, OfFiltersWithinOneBinIsOneThere) {
  const V values = values_of(mel_filters(8, 16, 8192, 4096));
  EXPECT_EQ(V(values.begin(), values.begin() + 4), (V{1, 1, 0, 0}));
  EXPECT_EQ(V(values.begin() + 8, values.begin() + 14), (V{0, 0, 1, 1, 0, 0}));
}

TEST(Dft, IsItsDefinition) {
  for (const int64_t parts : {1, 2}) {
    const Tensor x = waves({2, 6, parts});
    expect_near(dft(x), transformed(x, 6, false));
    expect_near(dft(x, {{"inverse", int64_t{1}}}), transformed(x, 6, true));
    expect_near(dft(x, {}, -2, 9), transformed(x, 9, false));  // zeros behind
    expect_near(dft(x, {}, 1, 4), transformed(x, 4, false));   // the first four points
  }
}

TEST(Dft, RunsAlongAnyAxis) {
  const Tensor x = waves({3, 4, 1});
  Tensor turned(DType::kFloat32, {4, 3, 1});
  for (int64_t i = 0; i < 12; ++i) turned.set(i % 4 * 3 + i / 4, x.get(i));
  const Tensor expected = transformed(turned, 3, false);
  const Tensor found = dft(x, {}, 0, 3);
  ASSERT_EQ(found.shape(), (Ints{3, 4, 2}));
  for (int64_t i = 0; i < 24; ++i)
    EXPECT_NEAR(found.get(i), expected.get((i / 2 % 4 * 3 + i / 8) * 2 + i % 2), 1e-5);
}

TEST(Dft, OfRealSignalsGivesHalfAndTakesItBack) {
  for (const int64_t points : {6, 7}) {
    const Tensor x = waves({2, points, 1});
    const Tensor all = transformed(x, points, false);
    const Tensor half = dft(x, {{"onesided", int64_t{1}}});
    const int64_t bins = points / 2 + 1;
    ASSERT_EQ(half.shape(), (Ints{2, bins, 2}));
    for (int64_t i = 0; i < half.num_elements(); ++i)
      EXPECT_NEAR(half.get(i), all.get(i / (2 * bins) * 2 * points + i % (2 * bins)), 1e-5);
    expect_near(dft(half, {{"onesided", int64_t{1}}, {"inverse", int64_t{1}}}, 1, points), x);
  }
}

// 1030 is 10 * 103: more than one matmul.
TEST(Dft, SplitsALongTransform) {
  const Tensor x = waves({1, 1030, 2});
  expect_near(dft(x), transformed(x, 1030, false), 1e-4);
  expect_near(dft(x, {{"inverse", int64_t{1}}}), transformed(x, 1030, true), 1e-4);
  const Tensor real = waves({1, 1030, 1});
  const Tensor half = dft(real, {{"onesided", int64_t{1}}});
  EXPECT_EQ(half.shape(), (Ints{1, 516, 2}));
  expect_near(dft(half, {{"onesided", int64_t{1}}, {"inverse", int64_t{1}}}, 1, 1030), real, 1e-4);
  EXPECT_EQ(refusal("DFT", {waves({1, 4099, 1})}, {}),
            "node \"it\": a transform of 4099 points, a prime above 4096");
}

TEST(Stft, TransformsFramesTimesAWindow) {
  const Tensor x = waves({1, 8, 1}), window = floats({4}, {0.5, 1, 1, 0.5});
  const Tensor found = run_op("STFT", {x, number(2), window}, {{"onesided", int64_t{0}}});
  Tensor frames(DType::kFloat32, {3, 4, 1});
  for (int64_t i = 0; i < 12; ++i) frames.set(i, x.get(i / 4 * 2 + i % 4) * window.get(i % 4));
  EXPECT_EQ(found.shape(), (Ints{1, 3, 4, 2}));
  expect_near(found.reshaped({3, 4, 2}), transformed(frames, 4, false));
  EXPECT_EQ(run_op("STFT", {x, number(2), window}).shape(), (Ints{1, 3, 3, 2}));
}

}  // namespace
}  // namespace pruner
