#include "model/nn/linear.h"

#include <gtest/gtest.h>

#include "support/rng.h"

namespace pruner {
namespace {

TEST(Linear, AgreesWithTheSumSpelledOut) {
  Rng rng(1);
  const auto drawn = [&](size_t count) {
    std::vector<float> values(count);
    for (float& v : values) v = static_cast<float>(2 * rng.uniform() - 1);
    return values;
  };
  for (const int64_t in : {1, 23, 174, 384}) {
    for (const int64_t out : {32, 64, 384}) {
      for (const int64_t rows : {0, 1, 5, 12, 37}) {
        const WeightTensor weight{{out, in}, drawn(static_cast<size_t>(out * in))};
        const WeightTensor bias{{out}, drawn(static_cast<size_t>(out))};
        Matrix x(rows, in);
        x.values = drawn(static_cast<size_t>(rows * in));
        const Linear linear(weight, bias);
        const Matrix y = linear(x, OutputFunction::kNone), relu = linear(x, OutputFunction::kRelu);
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t j = 0; j < out; ++j) {
            double sum = bias.values[static_cast<size_t>(j)];
            for (int64_t k = 0; k < in; ++k)
              sum += double{x.row(i)[k]} * weight.values[static_cast<size_t>(j * in + k)];
            ASSERT_NEAR(y.row(i)[j], sum, 1e-4);
            ASSERT_EQ(relu.row(i)[j], std::max(y.row(i)[j], 0.0f));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace pruner
