#include <gtest/gtest.h>

#include "naive.h"
#include "tensor/operator_dags.h"

namespace pruner {
namespace {

// x[n, y, x, c], 0 outside.
double at(const Tensor& t, int64_t n, int64_t y, int64_t x, int64_t c) {
  const auto& s = t.shape();
  if (y < 0 || x < 0 || y >= s[1] || x >= s[2]) return 0;
  return t.get(((n * s[1] + y) * s[2] + x) * s[3] + c);
}

struct Conv {
  int64_t in, ci, co, k, stride, pad_before, pad_after, dilation, groups;
};

Window square_window(const Conv& c) {
  return {{c.stride, c.stride},
          {c.dilation, c.dilation},
          {c.pad_before, c.pad_before},
          {c.pad_after, c.pad_after}};
}

class ConvDag : public testing::TestWithParam<Conv> {};

TEST_P(ConvDag, IsTheConvolutionWrittenAsLoops) {
  const Conv c = GetParam();
  DagBuilder b;
  const StageId data = b.placeholder("data", {2, c.in, c.in, c.ci});
  const StageId weight = b.placeholder("weight", {c.k, c.k, c.ci / c.groups, c.co});
  const ComputeDag dag = b.finish({add_conv(b, data, weight, {square_window(c), c.groups})});
  Rng rng(1);
  const std::vector<Tensor> in = random_inputs(dag, rng);
  const Tensor out = interpret(dag, in)[0];

  const int64_t ho = out.shape()[1], cig = c.ci / c.groups;
  EXPECT_EQ(ho, (c.in + c.pad_before + c.pad_after - c.dilation * (c.k - 1) - 1) / c.stride + 1);
  int64_t position = 0;
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t y = 0; y < ho; ++y)
      for (int64_t x = 0; x < ho; ++x)
        for (int64_t f = 0; f < c.co; ++f, ++position) {
          double sum = 0;
          for (int64_t ry = 0; ry < c.k; ++ry)
            for (int64_t rx = 0; rx < c.k; ++rx)
              for (int64_t rc = 0; rc < cig; ++rc) {
                const int64_t channel = f / (c.co / c.groups) * cig + rc;
                sum += at(in[0],
                          n,
                          y * c.stride + ry * c.dilation - c.pad_before,
                          x * c.stride + rx * c.dilation - c.pad_before,
                          channel) *
                       in[1].get(((ry * c.k + rx) * cig + rc) * c.co + f);
              }
          ASSERT_NEAR(out.get(position), sum, 1e-5);
        }
}

INSTANTIATE_TEST_SUITE_P(All,
                         ConvDag,
                         testing::Values(Conv{7, 4, 6, 3, 1, 1, 1, 1, 1},
                                         Conv{8, 4, 6, 3, 2, 0, 1, 1, 1},
                                         Conv{9, 3, 5, 3, 1, 2, 2, 2, 1},
                                         Conv{6, 8, 8, 3, 1, 1, 1, 1, 4},
                                         Conv{5, 6, 9, 1, 1, 0, 0, 1, 3},
                                         Conv{5, 7, 3, 1, 2, 0, 0, 1, 1},
                                         Conv{7, 4, 4, 7, 1, 3, 3, 1, 1}));

TEST(ConvDag, PadsOnlyWhereSomethingIsPadded) {
  EXPECT_EQ(operator_dag("conv2d 1 8 5 5 4 1 1").size(), 3);
  EXPECT_EQ(operator_dag("conv2d 1 8 5 5 4 3 3 padding=1").size(), 4);
}

TEST(ConvDag, HasNamesAndTagsOfTvm) {
  const ComputeDag dag = operator_dag("conv2d 1 8 5 5 4 3 3 padding=1 groups=2");
  EXPECT_EQ(dag[StageId{2}].name, "PaddedInput");
  EXPECT_EQ(dag[StageId{2}].tag, "injective,pad");
  EXPECT_EQ(dag[StageId{3}].tag, "group_conv2d_nhwc");
  EXPECT_EQ(dag[StageId{3}].axes[3].name, "ff");
  EXPECT_EQ(dag[StageId{3}].layout_free, std::vector<StageId>{StageId{1}});
}

TEST(ConvDag, HasAnyRank) {
  for (size_t rank : {1u, 3u}) {
    DagBuilder b;
    std::vector<int64_t> shape = {1}, kernel;
    for (size_t d = 0; d < rank; ++d) shape.push_back(5), kernel.push_back(3);
    shape.push_back(4), kernel.insert(kernel.end(), {4, 6});
    const StageId data = b.placeholder("data", shape), weight = b.placeholder("weight", kernel);
    const std::vector<int64_t> ones(rank, 1);
    const StageId out = add_conv(b, data, weight, {{{}, {}, ones, ones}});
    shape.back() = 6;
    EXPECT_EQ(b.shape(out), shape);
    EXPECT_EQ(b.stage(out).tag, rank == 1 ? "conv1d_nwc" : "conv3d_ndhwc");
  }
}

// x[0, z, y, x, c], 0 outside.
double voxel(const Tensor& t, int64_t z, int64_t y, int64_t x, int64_t c) {
  const auto& s = t.shape();
  if (z < 0 || y < 0 || x < 0 || z >= s[1] || y >= s[2] || x >= s[3]) return 0;
  return t.get(((z * s[2] + y) * s[3] + x) * s[4] + c);
}

TEST(ConvDag, IsThreeDimensionalWrittenAsLoops) {
  const ComputeDag dag =
      operator_dag("conv3d 1 6 3 4 5 4 3 2 3 stride=1,2,1 padding=1,0,1 dilation=1,1,2 groups=2");
  Rng rng(5);
  const std::vector<Tensor> in = random_inputs(dag, rng);
  ASSERT_EQ(in[0].shape(), (std::vector<int64_t>{1, 3, 8, 7, 4}));
  const Tensor out = interpret(dag, in)[0];
  ASSERT_EQ(out.shape(), (std::vector<int64_t>{1, 3, 4, 5, 6}));
  int64_t position = 0;
  for (int64_t z = 0; z < 3; ++z)
    for (int64_t y = 0; y < 4; ++y)
      for (int64_t x = 0; x < 5; ++x)
        for (int64_t f = 0; f < 6; ++f, ++position) {
          double sum = 0;
          for (int64_t rz = 0; rz < 3; ++rz)
            for (int64_t ry = 0; ry < 2; ++ry)
              for (int64_t rx = 0; rx < 3; ++rx)
                for (int64_t rc = 0; rc < 2; ++rc)
                  sum += voxel(in[0], z + rz - 1, y * 2 + ry, x + rx * 2 - 1, f / 3 * 2 + rc) *
                         in[1].get((((rz * 2 + ry) * 3 + rx) * 2 + rc) * 6 + f);
          ASSERT_NEAR(out.get(position), sum, 1e-5);
        }
}

TEST(DepthwiseConvDag, HasAMultiplier) {
  const ComputeDag dag = operator_dag("depthwise_conv2d 1 3 4 4 3 3 padding=1 multiplier=2");
  Rng rng(2);
  const std::vector<Tensor> in = random_inputs(dag, rng);
  const Tensor out = interpret(dag, in)[0];
  ASSERT_EQ(out.shape(), (std::vector<int64_t>{1, 4, 4, 6}));
  for (int64_t y = 0; y < 4; ++y)
    for (int64_t x = 0; x < 4; ++x)
      for (int64_t c = 0; c < 6; ++c) {
        double sum = 0;
        for (int64_t ry = 0; ry < 3; ++ry)
          for (int64_t rx = 0; rx < 3; ++rx) {
            sum += at(in[0], 0, y + ry - 1, x + rx - 1, c / 2) * in[1].get((ry * 3 + rx) * 6 + c);
          }
        ASSERT_NEAR(out.get((y * 4 + x) * 6 + c), sum, 1e-6);
      }
}

// t with dimension order[d] of its own as number d.
Tensor transposed(const Tensor& t, const std::vector<size_t>& order) {
  const std::vector<int64_t>& from = t.shape();
  std::vector<int64_t> shape;
  for (const size_t d : order) shape.push_back(from[d]);
  Tensor out(t.dtype(), shape);
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    std::vector<int64_t> at(order.size());
    int64_t rest = i, place = 0;
    for (size_t d = order.size(); d-- > 0; rest /= shape[d]) at[order[d]] = rest % shape[d];
    for (size_t d = 0; d < order.size(); ++d) place = place * from[d] + at[d];
    out.set(i, t.get(place));
  }
  return out;
}

TEST(ChannelsFirst, MeansTheSameOfTransposedData) {
  for (const auto& [name, arguments] : {
           std::pair{"conv2d", "2 5 4 6 3 3 2 stride=2,1 padding=1,0 dilation=1,2"},
           {"depthwise_conv2d", "2 3 4 6 3 2 stride=1,2 padding=1,0,2,1 multiplier=2"},
           {"max_pool2d", "2 3 4 5 3 3 stride=2 padding=1"},
           {"avg_pool2d", "2 3 4 5 3 2 stride=2,1 padding=1,1"},
       }) {
    const ComputeDag last = operator_dag(std::string(name) + " " + arguments);
    const ComputeDag first = operator_dag(std::string(name) + "_nchw " + arguments);
    Rng rng(4);
    const std::vector<Tensor> in = random_inputs(last, rng);
    std::vector<Tensor> moved = {transposed(in[0], {0, 3, 1, 2})};
    if (in.size() > 1) moved.push_back(transposed(in[1], {3, 2, 0, 1}));
    if (std::string_view(name) == "depthwise_conv2d")
      moved[1] = transposed(in[1], {2, 3, 0, 1}).reshaped({6, 1, 3, 2});
    const Tensor expected = transposed(interpret(last, in)[0], {0, 3, 1, 2});
    const Tensor found = interpret(first, moved)[0];
    ASSERT_EQ(found.shape(), expected.shape()) << name;
    for (int64_t i = 0; i < found.num_elements(); ++i)
      ASSERT_NEAR(found.get(i), expected.get(i), 1e-6) << name << " element " << i;
  }
}

TEST(ChannelsFirst, HasNamesAndTagsOfTvm) {
  const ComputeDag dag = operator_dag("depthwise_conv2d_nchw 1 8 5 5 3 3 padding=1");
  EXPECT_EQ(dag[StageId{2}].name, "PaddedInput");
  EXPECT_EQ(dag[StageId{3}].tag, "depthwise_conv2d_nchw");
  EXPECT_EQ(dag[StageId{3}].axes[1].name, "ff");
  EXPECT_EQ(dag[StageId{3}].reduce_axes[1].name, "rx");
}

struct Transposed {
  int64_t in, k, stride, pad, output_padding, dilation, groups;
};
class ConvTransposeDag : public testing::TestWithParam<Transposed> {};

TEST_P(ConvTransposeDag, ScattersWhatAConvolutionGathers) {
  const Transposed t = GetParam();
  constexpr int64_t kIn = 4, kOut = 6;
  DagBuilder b;
  const StageId data = b.placeholder("data", {1, t.in, t.in, kIn});
  const StageId weight = b.placeholder("weight", {t.k, t.k, kIn / t.groups, kOut});
  const Window window{
      {t.stride, t.stride}, {t.dilation, t.dilation}, {t.pad, t.pad}, {t.pad, t.pad}};
  const std::vector<int64_t> extra(2, t.output_padding);
  const ComputeDag dag = b.finish({add_conv_transpose(b, data, weight, {window, t.groups}, extra)});
  Rng rng(3);
  const std::vector<Tensor> in = random_inputs(dag, rng);
  const Tensor out = interpret(dag, in)[0];
  const int64_t ho =
      (t.in - 1) * t.stride - 2 * t.pad + t.dilation * (t.k - 1) + 1 + t.output_padding;
  ASSERT_EQ(out.shape(), (std::vector<int64_t>{1, ho, ho, kOut}));

  std::vector<double> expected(static_cast<size_t>(ho * ho * kOut), 0);
  for (int64_t y = 0; y < t.in; ++y)
    for (int64_t x = 0; x < t.in; ++x)
      for (int64_t ky = 0; ky < t.k; ++ky)
        for (int64_t kx = 0; kx < t.k; ++kx) {
          const int64_t oy = y * t.stride + ky * t.dilation - t.pad;
          const int64_t ox = x * t.stride + kx * t.dilation - t.pad;
          if (oy < 0 || ox < 0 || oy >= ho || ox >= ho) continue;
          for (int64_t f = 0; f < kOut; ++f)
            for (int64_t rc = 0; rc < kIn / t.groups; ++rc) {
              const int64_t c = f / (kOut / t.groups) * (kIn / t.groups) + rc;
              expected[static_cast<size_t>((oy * ho + ox) * kOut + f)] +=
                  at(in[0], 0, y, x, c) *
                  in[1].get(((ky * t.k + kx) * (kIn / t.groups) + rc) * kOut + f);
            }
        }
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(out.get(static_cast<int64_t>(i)), expected[i], 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(All,
                         ConvTransposeDag,
                         testing::Values(Transposed{4, 4, 2, 1, 0, 1, 1},
                                         Transposed{3, 3, 2, 0, 1, 1, 1},
                                         Transposed{3, 3, 1, 1, 0, 1, 2},
                                         Transposed{3, 2, 3, 0, 0, 1, 1},
                                         Transposed{3, 3, 2, 2, 0, 2, 1},
                                         Transposed{4, 1, 2, 0, 0, 1, 1}));

// The windows of a 1-D pool over 1, 2, ..., n.
std::vector<double> pooled(int64_t n, const PoolParams& params) {
  DagBuilder b;
  const StageId data = b.placeholder("data", {1, n, 1});
  const ComputeDag dag = b.finish({add_pool(b, data, params)});
  std::vector<double> values;
  for (int64_t i = 1; i <= n; ++i) values.push_back(static_cast<double>(i));
  return values_of(interpret(dag, std::vector{tensor_of({1, n, 1}, values)})[0]);
}

TEST(PoolDag, TakesTheLargest) {
  EXPECT_EQ(pooled(5, {PoolKind::kMax, {3}, {{2}, {}, {1}, {1}}}), (std::vector<double>{2, 4, 5}));
  EXPECT_EQ(pooled(5, {PoolKind::kMax, {2}, {{1}, {2}, {}, {}}}), (std::vector<double>{3, 4, 5}));
}

TEST(PoolDag, TheLargestOfInfinitiesIsOne) {
  DagBuilder b;
  const StageId data = b.placeholder("data", {1, 3, 1});
  const ComputeDag dag = b.finish({add_pool(b, data, {PoolKind::kMax, {3}, {{}, {}, {1}, {1}}})});
  const auto of = [&](std::vector<double> values) {
    return values_of(interpret(dag, std::vector{tensor_of({1, 3, 1}, values)})[0]);
  };
  EXPECT_EQ(of({-INFINITY, -INFINITY, 1}), (std::vector<double>{-INFINITY, 1, 1}));
  EXPECT_TRUE(std::isnan(of({1, std::nan(""), 3})[0]));
}

// Records have keys from when such a pool was padded with a finite number.
TEST(PoolDag, HasTheKeyOfAPoolPaddedWithTheLeastFiniteNumber) {
  const auto key = [](bool pools) {
    DagBuilder b;
    const StageId data = b.placeholder("data", {1, 4, 4, 2});
    if (pools)
      return workload_key(
          b.finish({add_pool(b, data, {PoolKind::kMax, {2, 2}, {{}, {}, {1, 0}, {}}})}));
    const int64_t before[] = {0, 1, 0, 0}, after[] = {0, 0, 0, 0};
    const StageId padded =
        add_pad(b, data, before, after, -greatest_float(DType::kFloat32), "pad_temp");
    return workload_key(b.finish({add_pool(b, padded, {PoolKind::kMax, {2, 2}, {}})}));
  };
  EXPECT_EQ(key(true), key(false));
}

TEST(PoolDag, AveragesOfNarrowFloatsAddUpInFloat32) {
  DagBuilder b;
  const StageId data = b.placeholder("data", {1, 256, 1}, DType::kFloat16);
  const ComputeDag dag = b.finish({add_pool(b, data, {PoolKind::kAverage, {256}, {}})});
  Tensor values(DType::kFloat16, {1, 256, 1});
  for (int64_t i = 0; i < 256; ++i) values.set(i, 300);
  const Tensor found = interpret(dag, std::vector{values})[0];
  EXPECT_EQ(found.dtype(), DType::kFloat16);
  EXPECT_EQ(found.get(0), 300);
}

TEST(PoolDag, AveragesWhatLiesInside) {
  const Window window{{2}, {}, {1}, {1}};
  EXPECT_EQ(pooled(5, {PoolKind::kAverage, {3}, window}), (std::vector<double>{1.5, 3, 4.5}));
  EXPECT_EQ(pooled(5, {PoolKind::kAverage, {3}, window, true}), (std::vector<double>{1, 3, 3}));
  EXPECT_EQ(pooled(4, {PoolKind::kAverage, {2}, {{2}, {}, {}, {}}}),
            (std::vector<double>{1.5, 3.5}));
  EXPECT_EQ(pooled(5, {PoolKind::kAverage, {2}, {{1}, {3}, {1}, {1}}}),
            (std::vector<double>{3, 2.5, 3.5, 3}));
}

TEST(PoolDag, CeilLetsTheLastWindowEndOutside) {
  const PoolParams max{PoolKind::kMax, {2}, {{2}, {}, {}, {}}, false, true};
  EXPECT_EQ(pooled(5, max), (std::vector<double>{2, 4, 5}));
  PoolParams average = max;
  average.kind = PoolKind::kAverage;
  EXPECT_EQ(pooled(5, average), (std::vector<double>{1.5, 3.5, 5}));
}

TEST(WindowOutput, DropsAWindowThatStartsInThePadding) {
  EXPECT_EQ(window_output(5, 2, 2, 1, 0, 0), 2);
  EXPECT_EQ(window_output(5, 2, 2, 1, 0, 0, true), 3);
  EXPECT_EQ(window_output(4, 1, 3, 1, 0, 2, true), 2);
}

TEST(PadDag, AddsAndCuts) {
  DagBuilder b;
  const StageId data = b.placeholder("x", {4});
  const int64_t before[] = {2}, after[] = {-1};
  const ComputeDag dag = b.finish({add_pad(b, data, before, after, 7)});
  EXPECT_EQ(values_of(interpret(dag, std::vector{tensor_of({4}, {1, 2, 3, 4})})[0]),
            (std::vector<double>{7, 7, 1, 2, 3}));
}

TEST(ConvDagDeathTest, ChecksTheWeight) {
  DagBuilder b;
  const StageId data = b.placeholder("data", {1, 5, 5, 4}),
                weight = b.placeholder("w", {3, 3, 3, 8});
  EXPECT_DEATH(add_conv(b, data, weight, {}), "a conv weight is \\[kernel..., ci / groups, co\\]");
}

}  // namespace
}  // namespace pruner
