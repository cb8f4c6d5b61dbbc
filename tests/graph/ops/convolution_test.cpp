#include <gmock/gmock.h>

#include "graph/small_graph.h"

namespace pruner {
namespace {

using testing::HasSubstr;

// Conv by its definition, NCHW and OIHW.
Tensor naive_conv(const Tensor& x,
                  const Tensor& w,
                  int64_t stride,
                  int64_t pad,
                  int64_t dilation,
                  int64_t groups) {
  const Ints &in = x.shape(), &k = w.shape();
  const auto extent = [&](size_t d) {
    return (in[d] + 2 * pad - (k[d] - 1) * dilation - 1) / stride + 1;
  };
  Tensor out(DType::kFloat32, {in[0], k[0], extent(2), extent(3)});
  const int64_t per_group = k[0] / groups;
  int64_t at = 0;
  for (int64_t n = 0; n < in[0]; ++n)
    for (int64_t o = 0; o < k[0]; ++o)
      for (int64_t y = 0; y < extent(2); ++y)
        for (int64_t z = 0; z < extent(3); ++z) {
          double sum = 0;
          for (int64_t c = 0; c < k[1]; ++c)
            for (int64_t i = 0; i < k[2]; ++i)
              for (int64_t j = 0; j < k[3]; ++j) {
                const int64_t h = y * stride - pad + i * dilation,
                              v = z * stride - pad + j * dilation;
                if (h < 0 || v < 0 || h >= in[2] || v >= in[3]) continue;
                const int64_t channel = o / per_group * k[1] + c;
                sum += x.get(((n * in[1] + channel) * in[2] + h) * in[3] + v) *
                       w.get(((o * k[1] + c) * k[2] + i) * k[3] + j);
              }
          out.set(at++, sum);
        }
  return out;
}

TEST(Conv, IsItsDefinition) {
  struct Case {
    Ints data, weight;
    int64_t stride, pad, dilation, groups;
  };
  for (const Case& c : {Case{{2, 3, 7, 6}, {4, 3, 3, 3}, 1, 1, 1, 1},
                        Case{{1, 4, 9, 9}, {6, 4, 3, 3}, 2, 1, 1, 1},
                        Case{{1, 2, 9, 8}, {3, 2, 3, 3}, 1, 2, 2, 1},
                        Case{{1, 6, 5, 5}, {4, 3, 3, 3}, 1, 1, 1, 2},
                        Case{{1, 4, 6, 6}, {4, 1, 3, 3}, 1, 1, 1, 4},
                        Case{{1, 4, 6, 6}, {8, 1, 3, 3}, 2, 1, 1, 4},
                        Case{{1, 8, 4, 4}, {5, 8, 1, 1}, 1, 0, 1, 1}}) {
    const Tensor x = waves(c.data), w = waves(c.weight, 1);
    const Attributes attributes = {{"strides", Ints{c.stride, c.stride}},
                                   {"pads", Ints{c.pad, c.pad, c.pad, c.pad}},
                                   {"dilations", Ints{c.dilation, c.dilation}},
                                   {"group", c.groups}};
    const Tensor expected = naive_conv(x, w, c.stride, c.pad, c.dilation, c.groups);
    expect_near(run_op("Conv", {x, Operand::weight(w)}, attributes), expected);
    expect_near(run_op("Conv", {x, w}, attributes), expected);  // the weight an input too
  }
}

// Each dimension with a stride and pads of its own, so that none can be taken for another's.
TEST(Conv, IsItsDefinitionInThreeDimensions) {
  const Tensor x = waves({1, 2, 4, 7, 5}), w = waves({3, 2, 3, 2, 3}, 1);
  const Ints stride = {1, 2, 1}, before = {1, 0, 2};
  Tensor expected(DType::kFloat32, {1, 3, 3, 4, 6});
  for (int64_t at = 0; at < expected.num_elements(); ++at) {
    const int64_t o = at / 72;
    double sum = 0;
    for (int64_t tap = 0; tap < 2 * 3 * 2 * 3; ++tap) {
      const Ints place = {at / 24 % 3, at / 6 % 4, at % 6}, k = {tap / 6 % 3, tap / 3 % 2, tap % 3};
      int64_t position = tap / 18;  // the channel
      bool inside = true;
      for (size_t d = 0; d < 3; ++d) {
        const int64_t i = place[d] * stride[d] + k[d] - before[d];
        inside = inside && i >= 0 && i < x.shape()[2 + d];
        position = position * x.shape()[2 + d] + i;
      }
      if (inside) sum += x.get(position) * w.get(o * 36 + tap);
    }
    expected.set(at, sum);
  }
  const Attributes attributes = {{"strides", stride}, {"pads", Ints{1, 0, 2, 0, 1, 1}}};
  expect_near(run_op("Conv", {x, Operand::weight(w)}, attributes), expected);
  expect_near(run_op("Conv", {x, w}, attributes), expected);
}

TEST(Conv, AddsItsBias) {
  const Tensor x = floats({1, 1, 1, 2}, {1, 2}), w = floats({2, 1, 1, 1}, {3, 4});
  const Tensor y = run_op("Conv", {x, w, floats({2}, {10, 20})});
  EXPECT_EQ(values_of(y), (std::vector<double>{13, 16, 24, 28}));
}

TEST(Conv, ResolvesAutoPad) {
  const Tensor x = waves({1, 1, 5, 5}), w = waves({1, 1, 3, 3}, 2);
  const auto with = [&](const char* mode, int64_t stride) {
    return run_op(
        "Conv", {x, w}, {{"auto_pad", std::string(mode)}, {"strides", Ints{stride, stride}}});
  };
  expect_near(with("SAME_UPPER", 1), naive_conv(x, w, 1, 1, 1, 1));
  expect_near(with("VALID", 1), naive_conv(x, w, 1, 0, 1, 1));
  EXPECT_EQ(with("SAME_LOWER", 2).shape(), (Ints{1, 1, 3, 3}));
}

TEST(Conv, NamesWhatDoesNotFit) {
  const Tensor x = waves({1, 4, 5, 5});
  EXPECT_EQ(refusal("Conv", {x, waves({2, 4, 3, 3})}, {{"group", int64_t{3}}}),
            "node \"it\": group 3 does not divide 4 channels");
  EXPECT_THAT(refusal("Conv", {x, waves({2, 3, 3, 3})}),
              HasSubstr("expects 3 channels, the input has 4"));
  EXPECT_THAT(refusal("Conv", {x, waves({2, 4, 7, 7})}),
              HasSubstr("a kernel of 7 does not fit the padded extent 5"));
  EXPECT_THAT(refusal("Conv", {x, waves({2, 4, 3})}),
              HasSubstr("weight 2x4x3 does not fit data 1x4x5x5"));
  EXPECT_THAT(refusal("Conv", {x, waves({2, 4, 3, 3}), waves({3})}),
              HasSubstr("bias 3 does not fit 2 output channels"));
  EXPECT_THAT(refusal("Conv", {x, waves({2, 4, 3, 3})}, {{"strides", Ints{0, 1}}}),
              HasSubstr("strides has the element 0"));
  EXPECT_THAT(refusal("Conv", {x, waves({2, 4, 3, 3})}, {{"pads", Ints{1, 1}}}),
              HasSubstr("pads has 2 elements, expected 4"));
  EXPECT_THAT(refusal("Conv", {x, waves({2, 4, 3, 3})}, {{"kernel_shape", Ints{5, 5}}}),
              HasSubstr("kernel_shape 5x5 is not that of weight 2x4x3x3"));
}

// Each input element times the kernel, added up where they land.
TEST(ConvTranspose, ScattersTheKernel) {
  for (const int64_t groups : {1, 2}) {
    const Tensor x = waves({1, 4, 3, 3}), w = waves({4, 2, 3, 3}, 1);
    const int64_t stride = 2, pad = 1, out = 2 * stride - 2 * pad + 3, per_group = 4 / groups;
    Tensor expected(DType::kFloat32, {1, 2 * groups, out, out});
    for (int64_t c = 0; c < 4; ++c)
      for (int64_t o = 0; o < 2; ++o)
        for (int64_t y = 0; y < 9; ++y)
          for (int64_t k = 0; k < 9; ++k) {
            const int64_t h = y / 3 * stride - pad + k / 3, v = y % 3 * stride - pad + k % 3;
            if (h < 0 || v < 0 || h >= out || v >= out) continue;
            const int64_t at = ((c / per_group * 2 + o) * out + h) * out + v;
            expected.set(at, expected.get(at) + x.get(c * 9 + y) * w.get((c * 2 + o) * 9 + k));
          }
    const Attributes attributes = {
        {"strides", Ints{stride, stride}}, {"pads", Ints{pad, pad, pad, pad}}, {"group", groups}};
    expect_near(run_op("ConvTranspose", {x, Operand::weight(w)}, attributes), expected);
  }
}

TEST(ConvTranspose, FollowsOutputShapeAndPadding) {
  const Tensor x = waves({1, 1, 3, 3}), w = waves({1, 1, 3, 3});
  EXPECT_EQ(
      run_op("ConvTranspose", {x, w}, {{"strides", Ints{2, 2}}, {"output_padding", Ints{1, 1}}})
          .shape(),
      (Ints{1, 1, 8, 8}));
  EXPECT_EQ(
      run_op("ConvTranspose", {x, w}, {{"strides", Ints{3, 2}}, {"output_shape", Ints{10, 8}}})
          .shape(),
      (Ints{1, 1, 10, 8}));
  EXPECT_EQ(run_op("ConvTranspose",
                   {x, w},
                   {{"strides", Ints{2, 2}}, {"auto_pad", std::string("SAME_UPPER")}})
                .shape(),
            (Ints{1, 1, 6, 6}));
}

TEST(Conv, AddsUpIntegers) {
  const Tensor x = integers({1, 1, 3}, {1000000, -2, 3}, DType::kInt32);
  const Tensor w = integers({1, 1, 2}, {2000, 1}, DType::kInt32);
  EXPECT_EQ(values_of(run_op("Conv", {x, w})), (std::vector<double>{1999999998, -3997}));
  const Tensor narrow = integers({1, 1, 3}, {1, 2, 3}, DType::kInt8);
  EXPECT_EQ(refusal("Conv", {narrow, narrow}), "node \"it\": Conv of int8 is not supported");
}

}  // namespace
}  // namespace pruner
