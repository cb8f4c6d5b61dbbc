#include <gmock/gmock.h>

#include <limits>

#include "graph/evaluate.h"
#include "graph/ops/op.h"
#include "graph/small_graph.h"

namespace pruner {
namespace {

using testing::HasSubstr;
using V = std::vector<double>;

void expect_function(const std::string& op, double (*fn)(double), Attributes attributes = {}) {
  const Tensor x = floats({2, 5}, {-4, -2.5, -1, -0.25, 0, 0.125, 1, 1.5, 3, 7});
  const Tensor y = run_op(op, {x}, std::move(attributes));
  for (int64_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(y.get(i), fn(x.get(i)), 1e-5 * (1 + std::abs(fn(x.get(i)))))
        << op << " of " << x.get(i);
  }
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST(Elementwise, UnaryFunctionsAreOnnxs) {
  expect_function("Abs", [](double x) { return std::abs(x); });
  expect_function("Ceil", [](double x) { return std::ceil(x); });
  expect_function("Cos", [](double x) { return std::cos(x); });
  expect_function(
      "Elu", [](double x) { return x > 0 ? x : 2 * (std::exp(x) - 1); }, {{"alpha", 2.0}});
  expect_function("Erf", [](double x) { return std::erf(x); });
  expect_function("Exp", [](double x) { return std::exp(x); });
  expect_function("Floor", [](double x) { return std::floor(x); });
  expect_function("Gelu", [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); });
  expect_function("Gelu",
                  [](double x) {
                    return x / 2 *
                           (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
                  },
                  {{"approximate", std::string("tanh")}});
  expect_function("HardSigmoid", [](double x) { return std::clamp(0.2 * x + 0.5, 0.0, 1.0); });
  expect_function("HardSwish", [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); });
  expect_function("LeakyRelu", [](double x) { return x < 0 ? 0.1 * x : x; }, {{"alpha", 0.1}});
  expect_function("Mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); });
  expect_function("Neg", [](double x) { return -x; });
  expect_function("Relu", [](double x) { return std::max(x, 0.0); });
  expect_function("Round", [](double x) { return std::nearbyint(x); });
  expect_function("Selu", [](double x) {
    return 1.05070102214813 * (x > 0 ? x : 1.67326319217681 * (std::exp(x) - 1));
  });
  expect_function("Sigmoid", sigmoid);
  expect_function("Sign", [](double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0; });
  expect_function("Sin", [](double x) { return std::sin(x); });
  expect_function("Softplus", [](double x) { return std::log1p(std::exp(x)); });
  expect_function("Softsign", [](double x) { return x / (1 + std::abs(x)); });
  expect_function("Tanh", [](double x) { return std::tanh(x); });
}

// Relatively, since mish of -80 is about -1e-33; ONNX's test_mish has 10000 places from -10 to 10.
TEST(Elementwise, FunctionsOfAnglesAndHyperbolas) {
  expect_function("Asinh", [](double x) { return std::asinh(x); });
  expect_function("Atan", [](double x) { return std::atan(x); });
  expect_function("Cosh", [](double x) { return std::cosh(x); });
  expect_function("Sinh", [](double x) { return std::sinh(x); });
  expect_function("Tan", [](double x) { return std::tan(x); });
  const Tensor within = floats({4}, {-1, -0.25, 0.5, 1}), above = floats({3}, {1, 1.5, 1e10});
  for (int64_t i = 0; i < 4; ++i) {
    const double x = within.get(i);
    EXPECT_NEAR(run_op("Acos", {within}).get(i), std::acos(x), 1e-6);
    EXPECT_NEAR(run_op("Asin", {within}).get(i), std::asin(x), 1e-6);
    if (std::abs(x) == 1) continue;
    EXPECT_NEAR(run_op("Atanh", {within}).get(i), std::atanh(x), 1e-6);
  }
  expect_near(run_op("Acosh", {above}),
              floats({3}, {0, std::acosh(1.5), std::acosh(double{1e10f})}));
}

TEST(Elementwise, MishKeepsItsDigitsFarFromZero) {
  std::vector<double> places = {-80, -60, -30, -20, 19, 20, 21, 50, 100, 1e4, 3e38};
  for (int i = 0; i < 10000; i += 37) places.push_back(-10 + 20 * i / 9999.0);
  const Tensor x = floats({static_cast<int64_t>(places.size())}, places);
  const Tensor y = run_op("Mish", {x});
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    const double softplus = x.get(i) > 40 ? x.get(i) : std::log1p(std::exp(x.get(i)));
    const double expected = x.get(i) * std::tanh(softplus);
    EXPECT_NEAR(y.get(i), expected, 1e-6 * std::abs(expected)) << x.get(i);
  }
}

TEST(Elementwise, RootsAndLogarithmsOfPositives) {
  const Tensor x = floats({4}, {0.25, 1, 4, 9});
  expect_near(run_op("Sqrt", {x}), floats({4}, {0.5, 1, 2, 3}));
  expect_near(run_op("Reciprocal", {x}), floats({4}, {4, 1, 0.25, 1.0 / 9}));
  expect_near(run_op("Log", {x}), floats({4}, {std::log(0.25), 0, std::log(4), std::log(9)}));
  expect_near(run_op("Pow", {x, Operand::weight(floats({}, {0.5}))}), floats({4}, {0.5, 1, 2, 3}));
  expect_near(run_op("Pow", {x, floats({4}, {2, 3, 1, 0})}), floats({4}, {0.0625, 1, 4, 1}));
  expect_near(run_op("Pow", {floats({2}, {-2, 3}), Operand::weight(floats({}, {3}))}),
              floats({2}, {-8, 27}));
}

TEST(Elementwise, ZerosKeepTheirSigns) {
  const Tensor x = floats({2}, {0.0, -0.0});
  const V minus = {1, 0}, same = {0, 1};
  const auto signs = [&](const char* op, const std::vector<Operand>& operands, Attributes a = {}) {
    V found;
    for (const double value : values_of(run_op(op, operands, std::move(a))))
      found.push_back(std::signbit(value) ? 1 : 0);
    return found;
  };
  EXPECT_EQ(signs("Neg", {x}), minus);
  for (const char* op : {"Elu", "Expm1", "Gelu", "Log1p", "Selu", "Sin", "Tanh"})
    EXPECT_EQ(signs(op, {x}), same) << op;
  EXPECT_EQ(signs("Mod", {x, floats({}, {3})}, {{"fmod", int64_t{1}}}), same);
}

TEST(Elementwise, SignKeepsNan) {
  const Tensor y = run_op("Sign", {floats({3}, {-INFINITY, 0, 2})});
  EXPECT_EQ(values_of(y), (std::vector<double>{-1, 0, 1}));
  const Tensor x = floats({1}, {std::nan("")});
  NetworkBuilder b("sign");
  const Graph graph = b.finish({{b.node("Sign", {b.input("x", {1}, DType::kFloat32)}), "y"}});
  const Result<std::vector<Tensor>> found = interpret_graph(graph, std::vector{x});
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(std::isnan((*found)[0].get(0)));
}

TEST(Elementwise, RemaindersTakeTheSignThatFmodSays) {
  const Tensor x = floats({4}, {5.5, -5.5, 5.5, -5.5}), y = floats({4}, {3, 3, -3, -3});
  EXPECT_EQ(values_of(run_op("Mod", {x, y}, {{"fmod", int64_t{1}}})),
            (std::vector<double>{2.5, -2.5, 2.5, -2.5}));
  EXPECT_EQ(values_of(run_op("Mod", {x, y})), (std::vector<double>{2.5, 0.5, -0.5, -2.5}));
  EXPECT_EQ(
      values_of(run_op(
          "Mod", {floats({2}, {1e20, 1}), floats({2}, {3, INFINITY})}, {{"fmod", int64_t{1}}})),
      (std::vector<double>{2, 1}));
  const Tensor a = integers({4}, {5, -5, 5, -5}), b = integers({4}, {3, 3, -3, -3});
  EXPECT_EQ(values_of(run_op("Mod", {a, b})), (std::vector<double>{2, 1, -1, -2}));
  EXPECT_EQ(values_of(run_op("Mod", {a, b}, {{"fmod", int64_t{1}}})),
            (std::vector<double>{2, -2, 2, -2}));
  const auto doubles = [](double value) {
    Tensor tensor(DType::kFloat64, {});
    tensor.set(0, value);
    return tensor;
  };
  EXPECT_EQ(run_op("Mod", {doubles(-1e300), doubles(7)}).get(0), std::fmod(-1e300, 7) + 7);
}

TEST(Elementwise, PowersOfIntegersAreExact) {
  const Tensor x = integers({6}, {3, -3, 7, -1, 2, 1}), y = integers({6}, {33, 31, 20, 7, -1, -5});
  const Tensor found = run_op("Pow", {x, y});
  EXPECT_EQ(found.get_int(0), 5559060566555523);
  EXPECT_EQ(found.get_int(1), -617673396283947);
  EXPECT_EQ(found.get_int(2), 79792266297612001);
  EXPECT_EQ(found.get_int(3), -1);
  EXPECT_EQ(found.get_int(4), 0);
  EXPECT_EQ(found.get_int(5), 1);
}

TEST(Elementwise, ThePowerOfAHalfIsNoRootForMinusInfinity) {
  const Tensor found = run_op("Pow", {floats({2}, {4, 0}), Operand::weight(floats({}, {0.5}))});
  EXPECT_EQ(values_of(found), (std::vector<double>{2, 0}));
  NetworkBuilder b("pow");
  const ValueId x = b.input("x", {1}, DType::kFloat32);
  const Graph graph = b.finish({{b.node("Pow", {x, b.constant("half", floats({}, {0.5}))}), "y"}});
  const Result<std::vector<Tensor>> power =
      interpret_graph(graph, std::vector{floats({1}, {-INFINITY})});
  ASSERT_TRUE(power.ok());
  EXPECT_EQ((*power)[0].get(0), INFINITY);
}

TEST(Elementwise, BinaryOperatorsBroadcast) {
  const Tensor a = floats({2, 1, 2}, {1, 2, 3, 4}), b = floats({2, 1}, {10, 20});
  const Tensor sum = run_op("Add", {a, b});
  EXPECT_EQ(sum.shape(), (Ints{2, 2, 2}));
  EXPECT_EQ(values_of(sum), (std::vector<double>{11, 12, 21, 22, 13, 14, 23, 24}));
  EXPECT_EQ(values_of(run_op("Sub", {b, b})), (std::vector<double>{0, 0}));
  EXPECT_EQ(values_of(run_op("Mul", {a, b})),
            (std::vector<double>{10, 20, 20, 40, 30, 40, 60, 80}));
  EXPECT_EQ(values_of(run_op("Div", {b, floats({}, {4})})), (std::vector<double>{2.5, 5}));
  EXPECT_EQ(values_of(run_op("Max", {b, floats({1}, {15})})), (std::vector<double>{15, 20}));
}

TEST(Elementwise, ConstantsOfHigherRankKeepTheOutputsShape) {
  const Tensor y = run_op("Add", {floats({2}, {1, 2}), Operand::weight(floats({1, 1}, {5}))});
  EXPECT_EQ(y.shape(), (Ints{1, 2}));
  EXPECT_EQ(values_of(y), (std::vector<double>{6, 7}));
}

TEST(Elementwise, SumMinAndMaxTakeAnyNumber) {
  const Tensor a = floats({3}, {1, 5, 3}), b = floats({3}, {4, 2, 6}), c = floats({1}, {3});
  EXPECT_EQ(values_of(run_op("Sum", {a, b, c})), (std::vector<double>{8, 10, 12}));
  EXPECT_EQ(values_of(run_op("Min", {a, b, c})), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(values_of(run_op("Max", {a, b, c})), (std::vector<double>{4, 5, 6}));
  EXPECT_EQ(values_of(run_op("Max", {a})), values_of(a));
}

TEST(Elementwise, IntegersDivideTowardsZero) {
  const Tensor a = integers({4}, {7, -7, 7, -7}), b = integers({4}, {2, 2, -2, -2});
  EXPECT_EQ(values_of(run_op("Div", {a, b})), (std::vector<double>{3, -3, -3, 3}));
  EXPECT_EQ(values_of(run_op("Mod", {a, b})), (std::vector<double>{1, 1, -1, -1}));
  EXPECT_EQ(values_of(run_op("Mod", {a, b}, {{"fmod", int64_t{1}}})),
            (std::vector<double>{1, -1, 1, -1}));
}

TEST(Elementwise, ComparisonsGiveTruthValues) {
  const Tensor a = floats({3}, {1, 2, 3}), b = floats({3}, {2, 2, 2});
  EXPECT_EQ(run_op("Less", {a, b}).dtype(), DType::kBool);
  EXPECT_EQ(values_of(run_op("Less", {a, b})), (std::vector<double>{1, 0, 0}));
  EXPECT_EQ(values_of(run_op("LessOrEqual", {a, b})), (std::vector<double>{1, 1, 0}));
  EXPECT_EQ(values_of(run_op("Greater", {a, b})), (std::vector<double>{0, 0, 1}));
  EXPECT_EQ(values_of(run_op("GreaterOrEqual", {a, b})), (std::vector<double>{0, 1, 1}));
  EXPECT_EQ(values_of(run_op("Equal", {a, b})), (std::vector<double>{0, 1, 0}));
  const Tensor p = integers({4}, {0, 0, 1, 1}, DType::kBool),
               q = integers({4}, {0, 1, 0, 1}, DType::kBool);
  EXPECT_EQ(values_of(run_op("And", {p, q})), (std::vector<double>{0, 0, 0, 1}));
  EXPECT_EQ(values_of(run_op("Or", {p, q})), (std::vector<double>{0, 1, 1, 1}));
  EXPECT_EQ(values_of(run_op("Xor", {p, q})), (std::vector<double>{0, 1, 1, 0}));
  EXPECT_EQ(values_of(run_op("Not", {p})), (std::vector<double>{1, 1, 0, 0}));
  const Tensor c = integers({3}, {1, 0, 1}, DType::kBool);
  EXPECT_EQ(values_of(run_op("Where", {c, a, b})), (std::vector<double>{1, 2, 3}));
}

TEST(Elementwise, ClipsBetweenWhatIsGiven) {
  const Tensor x = floats({3}, {-5, 0.5, 5}), low = floats({}, {0}), high = floats({}, {1});
  EXPECT_EQ(values_of(run_op("Clip", {x, Operand::weight(low), Operand::weight(high)})),
            (std::vector<double>{0, 0.5, 1}));
  EXPECT_EQ(values_of(run_op("Clip", {x, low})), (std::vector<double>{0, 0.5, 5}));
  EXPECT_EQ(values_of(run_op("Clip", {x})), values_of(x));
}

TEST(Elementwise, PReluScalesNegatives) {
  const Tensor x = floats({1, 2, 1, 2}, {-1, 2, -3, 4});
  EXPECT_EQ(values_of(run_op("PRelu", {x, floats({2, 1, 1}, {0.5, 2})})),
            (std::vector<double>{-0.5, 2, -6, 4}));
}

TEST(Elementwise, CastTruncates) {
  const Tensor x = floats({4}, {-1.5, 0, 0.9, 2.5});
  const auto to = [&](const char* type) {
    return run_op("Cast", {x}, {{"to", std::string(type)}});
  };
  EXPECT_EQ(values_of(to("int32")), (std::vector<double>{-1, 0, 0, 2}));
  EXPECT_EQ(values_of(to("bool")), (std::vector<double>{1, 0, 1, 1}));
  EXPECT_EQ(to("float16").dtype(), DType::kFloat16);
}

TEST(Elementwise, NamesWhatDoesNotFit) {
  EXPECT_THAT(refusal("Add", {waves({2, 3}), waves({4})}),
              HasSubstr("shapes 2x3 and 4 do not broadcast"));
  EXPECT_THAT(refusal("Add", {waves({2}), integers({2}, {1, 2})}),
              HasSubstr("inputs are float32 and int64, expected one type"));
  EXPECT_THAT(refusal("Exp", {integers({2}, {1, 2})}), HasSubstr("Exp of int64"));
  EXPECT_THAT(refusal("Relu", {}), HasSubstr("Relu takes 1 to 1 inputs, found 0"));
  EXPECT_THAT(refusal("LeakyRelu", {waves({2})}, {{"alpha", int64_t{1}}}),
              HasSubstr("attribute \"alpha\" has a value of the wrong type"));
}

TEST(Elementwise, TellsWhatIsNoNumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    Tensor x(dtype, {4});
    const double values[] = {1, nan, infinity, -infinity};
    for (int64_t i = 0; i < 4; ++i) x.set(i, values[i]);
    const auto is_inf = [&](int64_t negative, int64_t positive) {
      const Attributes a = {{"detect_negative", negative}, {"detect_positive", positive}};
      return values_of(run_op("IsInf", {x}, a));
    };
    EXPECT_EQ(values_of(run_op("IsNaN", {x})), (V{0, 1, 0, 0}));
    EXPECT_EQ(is_inf(1, 1), (V{0, 0, 1, 1}));
    EXPECT_EQ(is_inf(0, 1), (V{0, 0, 1, 0}));
    EXPECT_EQ(is_inf(1, 0), (V{0, 0, 0, 1}));
    EXPECT_EQ(is_inf(0, 0), (V{0, 0, 0, 0}));
  }
}

TEST(Bits, CombineAndShift) {
  const Tensor x = integers({2, 2}, {12, -1, 5, 0}, DType::kInt32);
  const Tensor y = integers({2}, {10, 7}, DType::kInt32);
  EXPECT_EQ(values_of(run_op("BitwiseAnd", {x, y})), (V{8, 7, 0, 0}));
  EXPECT_EQ(values_of(run_op("BitwiseOr", {x, y})), (V{14, -1, 15, 7}));
  EXPECT_EQ(values_of(run_op("BitwiseXor", {x, y})), (V{6, -8, 15, 7}));
  EXPECT_EQ(values_of(run_op("BitwiseNot", {x})), (V{-13, 0, -6, -1}));
  const Tensor bytes = integers({2}, {200, 3}, DType::kUInt8);
  const Tensor by = integers({2}, {1, 2}, DType::kUInt8);
  const auto shift = [&](const char* direction) {
    return values_of(run_op("BitShift", {bytes, by}, {{"direction", std::string(direction)}}));
  };
  EXPECT_EQ(shift("LEFT"), (V{144, 12}));
  EXPECT_EQ(shift("RIGHT"), (V{100, 0}));
  EXPECT_EQ(values_of(run_op("BitwiseNot", {bytes})), (V{55, 252}));
  const Tensor below = integers({3}, {-8, -8, 7}, DType::kInt8);
  const Tensor places = integers({3}, {1, 9, 9}, DType::kInt8);
  EXPECT_EQ(values_of(run_op("BitShift", {below, places}, {{"direction", std::string("RIGHT")}})),
            (V{-4, -1, 0}));
}

TEST(GraphOps, AreSortedByName) {
  const auto less = [](const GraphOp& a, const GraphOp& b) { return a.name < b.name; };
  EXPECT_TRUE(std::is_sorted(graph_ops().begin(), graph_ops().end(), less));
  for (const GraphOp& op : graph_ops()) {
    EXPECT_EQ(find_graph_op(op.name), &op);
    // An alias may have a meaning within a kernel. What a pipeline does between stages has none.
    const bool between = is_of_pipeline({std::string(op.name), "", {}, {}, {}});
    const bool runs = op.fusion != Fusion::kAlias && op.fusion != Fusion::kConstant && !between;
    if (op.fusion != Fusion::kAlias || op.routine != nullptr) {
      EXPECT_EQ(op.lower != nullptr || op.routine != nullptr, runs) << op.name;
    }
    EXPECT_FALSE(op.lower != nullptr && op.routine != nullptr) << op.name;
  }
  EXPECT_EQ(find_graph_op("NoSuchOp"), nullptr);
}

}  // namespace
}  // namespace pruner
