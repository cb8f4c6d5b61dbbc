#include <gmock/gmock.h>

#include "graph/small_graph.h"

namespace pruner {
namespace {

using testing::HasSubstr;
using V = std::vector<double>;

// Where output o lies in the input, as ONNX's reference writes it.
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
  const auto low = static_cast<int64_t>(std::floor(x));
  at(low) += 1 - (x - static_cast<double>(low));
  at(low + 1) += x - static_cast<double>(low);
  return result;
}

// Of [1, 1, h, w].
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
  EXPECT_THAT(refused({1, 1, 8, 8}, {{"mode", std::string("cubic")}}),
              HasSubstr("mode \"cubic\" is not supported; it is one of linear, nearest"));
  EXPECT_THAT(refused({1, 1, 8, 8}, {{"antialias", int64_t{1}}}), HasSubstr("antialias"));
  EXPECT_THAT(refused({8, 8}, {}), HasSubstr("sizes or scales for 2 dimensions, expected 4"));
  EXPECT_THAT(refused({1, 1, 0, 8}, {}), HasSubstr("the output would have an extent of 0"));
  EXPECT_THAT(refusal("Resize", {x, none, Operand::weight(floats({4}, {1, 1, 1.3, 1}))}),
              HasSubstr("a scale of 1.3 makes no whole extent of 4"));
  EXPECT_THAT(refusal("Resize", {x}), HasSubstr("neither sizes nor scales are constants"));
}

}  // namespace
}  // namespace pruner
