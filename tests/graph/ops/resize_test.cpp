#include <gmock/gmock.h>

#include "graph/small_graph.h"

namespace pruner {
namespace {

using testing::HasSubstr;
using V = std::vector<double>;

// Returns where output o lies in the input, as ONNX's reference computes it.
double place(const std::string& mode, int64_t o, int64_t in, int64_t out) {
  const double scale = static_cast<double>(out) / static_cast<double>(in);
  const auto x = static_cast<double>(o);
  if (mode == "asymmetric") return x / scale;
  if (mode == "align_corners") {
    return out == 1 ? 0 : x * static_cast<double>(in - 1) / static_cast<double>(out - 1);
  }
  if (mode == "pytorch_half_pixel" && out == 1) return 0;
  return (x + 0.5) / scale - 0.5;
}

int64_t rounded(const std::string& mode, double x) {
  // Fractions that should be equal differ by rounding here.
  const double e = 1e-9;
  if (mode == "floor") return static_cast<int64_t>(std::floor(x + e));
  if (mode == "ceil") return static_cast<int64_t>(std::ceil(x - e));
  if (mode == "round_prefer_floor") return static_cast<int64_t>(std::ceil(x - 0.5 - e));
  return static_cast<int64_t>(std::floor(x + 0.5 + e));
}

// The weight of each input element in output o, along one dimension.
V weights(const Attributes& a, int64_t o, int64_t in, int64_t out) {
  const auto text = [&](const char* name, const char* fallback) {
    return a.contains(name) ? std::get<std::string>(a.at(name)) : std::string(fallback);
  };
  const double x = place(text("coordinate_transformation_mode", "half_pixel"), o, in, out);
  V result(static_cast<size_t>(in), 0);
  const auto at = [&](int64_t i) -> double& {
    return result[static_cast<size_t>(std::clamp<int64_t>(i, 0, in - 1))];
  };
  if (text("mode", "nearest") == "nearest") {
    at(rounded(text("nearest_mode", "round_prefer_floor"), x)) = 1;
    return result;
  }
  const auto number = [&](const char* name) {
    return a.contains(name) && std::get<int64_t>(a.at(name)) != 0;
  };
  // A filter's value at each distance, over all elements that it may reach; then the edges count
  // for what lies outside.
  const double narrow = static_cast<double>(out) / static_cast<double>(in);
  const double width = number("antialias") ? std::min(narrow, 1.0) : 1;
  double sum = 0;
  for (int64_t i = -4 * in; i < 5 * in; ++i) {
    const double d = std::abs(x - static_cast<double>(i)) * width;
    double weight = std::max(1 - d, 0.0);
    if (text("mode", "nearest") == "cubic") {
      const double c =
          a.contains("cubic_coeff_a") ? std::get<double>(a.at("cubic_coeff_a")) : -0.75;
      weight = d < 1   ? (c + 2) * d * d * d - (c + 3) * d * d + 1
               : d < 2 ? c * (d * d * d - 5 * d * d + 8 * d - 4)
                       : 0;
    }
    if (number("exclude_outside") && (i < 0 || i >= in)) continue;
    at(i) += weight;
    sum += weight;
  }
  for (double& weight : result) weight /= sum;
  return result;
}

// Resizes x of shape [1, 1, h, w] by the weights.
Tensor naive_resize(const Tensor& x, const Attributes& a, int64_t height, int64_t width) {
  const int64_t h = x.shape()[2], w = x.shape()[3];
  Tensor out(DType::kFloat32, {1, 1, height, width});
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t z = 0; z < width; ++z) {
      const V rows = weights(a, y, h, height), columns = weights(a, z, w, width);
      double sum = 0;
      for (int64_t i = 0; i < h * w; ++i) {
        sum += x.get(i) * rows[static_cast<size_t>(i / w)] * columns[static_cast<size_t>(i % w)];
      }
      out.set(y * width + z, sum);
    }
  }
  return out;
}

Tensor resized(const Tensor& x, Ints sizes, Attributes a) {
  NetworkBuilder b("resize");
  const ValueId in = b.input("x", x.shape(), DType::kFloat32);
  const ValueId out = b.node("Resize", {in, {}, {}, b.integers("sizes", sizes)}, std::move(a));
  return run_graph(b.finish({{out, "y"}}), {x})[0];
}

TEST(Resize, IsItsDefinition) {
  const Tensor x = waves({1, 1, 4, 5});
  for (const std::string placing :
       {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"}) {
    for (const Ints& size : {Ints{8, 10}, Ints{7, 3}, Ints{1, 13}, Ints{4, 2}}) {
      Attributes a = {{"coordinate_transformation_mode", placing}};
      const auto check = [&] {
        SCOPED_TRACE(placing + " " + std::to_string(size[0]) + "x" + std::to_string(size[1]));
        expect_near(resized(x, {1, 1, size[0], size[1]}, a), naive_resize(x, a, size[0], size[1]));
      };
      a["mode"] = std::string("linear");
      check();
      a["mode"] = std::string("nearest");
      for (const char* rounding : {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"}) {
        a["nearest_mode"] = std::string(rounding);
        check();
      }
    }
  }
}

TEST(Resize, FiltersAsDefined) {
  const Tensor x = waves({1, 1, 7, 6});
  for (const char* mode : {"linear", "cubic"}) {
    for (const Ints& size : {Ints{14, 10}, Ints{3, 3}, Ints{7, 4}}) {
      for (int flags = 0; flags < 4; ++flags) {
        const Attributes a = {{"mode", std::string(mode)},
                              {"cubic_coeff_a", -0.5},
                              {"antialias", int64_t{(flags & 1) != 0}},
                              {"exclude_outside", int64_t{(flags & 2) != 0}}};
        SCOPED_TRACE(mode + std::to_string(size[0]) + " " + std::to_string(flags));
        expect_near(resized(x, {1, 1, size[0], size[1]}, a), naive_resize(x, a, size[0], size[1]));
      }
    }
  }
}

// A scale that makes no whole extent stays the scale: the places are 0.5 / 0.6 - 0.5 and
// 1.5 / 0.6 - 0.5, and with the corners aligned 3 / (2.4 - 1) apart.
TEST(Resize, KeepsTheScaleOfARoundedExtent) {
  const Tensor x = floats({4}, {1, 2, 3, 4});
  const Operand none = Operand::weight(floats({0}, {}));
  const Operand scale = Operand::weight(floats({1}, {0.6}));
  const auto resize = [&](const char* placing) {
    return run_op("Resize",
                  {x, none, scale},
                  {{"mode", std::string("linear")},
                   {"coordinate_transformation_mode", std::string(placing)}});
  };
  expect_near(resize("half_pixel"), floats({2}, {1 + 1.0 / 3, 3}));
  // Moved by 4 / 2 * (1 - 2 / 2.4): the outer places lie as far from both ends.
  expect_near(resize("half_pixel_symmetric"), floats({2}, {1 + 2.0 / 3, 3 + 1.0 / 3}));
  expect_near(resize("align_corners"), floats({2}, {1, 1 + 3 / 1.4}));
}

TEST(Resize, CropsARegion) {
  const Tensor x = floats({5}, {1, 2, 3, 4, 5});
  const Operand none = Operand::weight(floats({0}, {}));
  const auto crop = [&](std::vector<double> roi, Ints sizes) {
    return values_of(run_op("Resize",
                            {x, Operand::weight(floats({2}, std::move(roi))), none, sizes},
                            {{"mode", std::string("linear")},
                             {"coordinate_transformation_mode", std::string("tf_crop_and_resize")},
                             {"extrapolation_value", 9.0}}));
  };
  EXPECT_EQ(crop({0.25, 0.75}, {3}), (V{2, 3, 4}));
  EXPECT_EQ(crop({0.5, 1.5}, {3}), (V{3, 5, 9}));
  EXPECT_EQ(crop({-0.25, 0.5}, {4}), (V{9, 1, 2, 3}));
  EXPECT_EQ(crop({0, 1}, {1}), (V{3}));
}

TEST(Resize, KeepsTheAspectRatio) {
  const Tensor x = waves({4, 2});
  const Operand none = Operand::weight(floats({0}, {}));
  const auto shape = [&](const char* policy) {
    const Attributes a = {{"keep_aspect_ratio_policy", std::string(policy)}};
    return run_op("Resize", {x, none, none, Ints{7, 8}}, a).shape();
  };
  EXPECT_EQ(shape("not_larger"), (Ints{7, 4}));  // 3.5 rounded up
  EXPECT_EQ(shape("not_smaller"), (Ints{16, 8}));
  EXPECT_EQ(shape("stretch"), (Ints{7, 8}));
}

TEST(Resize, TakesScalesAndSomeAxes) {
  const Tensor x = floats({1, 1, 1, 2}, {1, 2});
  const Operand none = Operand::weight(floats({0}, {}));
  EXPECT_EQ(values_of(run_op("Resize", {x, none, Operand::weight(floats({4}, {1, 1, 2, 2}))})),
            (V{1, 1, 2, 2, 1, 1, 2, 2}));
  const Tensor wide = run_op("Resize",
                             {x, none, Operand::weight(floats({1}, {1.5}))},
                             {{"axes", Ints{-1}}, {"mode", std::string("linear")}});
  EXPECT_EQ(wide.shape(), (Ints{1, 1, 1, 3}));
  expect_near(wide, floats({1, 1, 1, 3}, {1, 1.5, 2}));
}

TEST(Resize, OfAConvolutionKeepsItsLayout) {
  NetworkBuilder b("sunk");
  const ValueId x = b.input("x", {1, 3, 4, 4}, DType::kFloat32);
  const ValueId small = b.conv("conv", x, {.channels = 5, .kernel = 3});
  const ValueId large = b.resize(small, 8, 6, true);
  const Graph graph = b.finish({{b.conv("next", large, {.channels = 2}), "y"}});
  EXPECT_EQ(operators(run_graph_passes(graph)), "Transpose Conv Resize Conv Transpose");
  run_graph(graph, {waves({1, 3, 4, 4})});
}

TEST(Resize, NamesWhatDoesNotFit) {
  const Tensor x = waves({1, 1, 4, 4});
  const Operand none = Operand::weight(floats({0}, {}));
  const auto refused = [&](Ints sizes, Attributes a) {
    return refusal("Resize", {x, none, none, sizes}, std::move(a));
  };
  EXPECT_THAT(refused({1, 1, 8, 8}, {{"mode", std::string("area")}}),
              HasSubstr("mode \"area\" is not supported; it is one of cubic, linear, nearest"));
  EXPECT_THAT(refused({1, 1, 8, 8},
                      {{"coordinate_transformation_mode", std::string("tf_crop_and_resize")}}),
              HasSubstr("tf_crop_and_resize needs a constant roi of 8 elements"));
  EXPECT_THAT(refused({8, 8}, {}), HasSubstr("sizes or scales for 2 dimensions, expected 4"));
  EXPECT_THAT(refused({1, 1, 0, 8}, {}), HasSubstr("a size or scale of 0"));
  EXPECT_THAT(refusal("Resize", {x, none, Operand::weight(floats({4}, {1, 1, 0.2, 1}))}),
              HasSubstr("the output would have an extent of 0"));
  EXPECT_THAT(refusal("Resize", {x}), HasSubstr("neither sizes nor scales are constants"));
}

}  // namespace
}  // namespace pruner
