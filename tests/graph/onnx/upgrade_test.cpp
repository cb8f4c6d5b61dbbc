#include "graph/onnx/onnx_model.h"
#include "graph/small_graph.h"

namespace pruner {
namespace {

// The output of a model of one node with attributes of an old opset.
Tensor run_old(int64_t opset,
               const Tensor& x,
               const char* op,
               const std::function<void(onnx::NodeProto&)>& attributes,
               const Tensor& second = Tensor()) {
  OnnxModel model(opset);
  model.input("x", x.shape()).output("y");
  const bool two = second.num_elements() > 0;
  if (two) model.input("z", second.shape());
  attributes(model.node(
      op, two ? std::vector<std::string>{"x", "z"} : std::vector<std::string>{"x"}, {"y"}));
  const Result<Graph> graph = import_model(model);
  EXPECT_TRUE(graph.ok()) << graph.error().message();
  return run_graph(*graph, two ? std::vector{x, second} : std::vector{x})[0];
}

// The nodes are forms of opsets before 18, and the values are ONNX Runtime's results.
TEST(Upgrade, FormsOfOldOpsetsAreRead) {
  using V = std::vector<double>;
  const Tensor x = floats({2, 3}, {0, 1, 2, 3, 0, 1});
  const V sums = values_of(run_old(17, x, "ReduceLogSumExp", [](auto& n) {
    set_ints(n, "axes", {1});
    set_int(n, "keepdims", 0);
  }));
  ASSERT_EQ(sums.size(), 2);
  EXPECT_NEAR(sums[0], std::log(1 + std::exp(1.0) + std::exp(2.0)), 1e-6);
  EXPECT_EQ(values_of(run_old(9, x, "TopK", [](auto& n) { set_int(n, "k", 2); })), (V{2, 1, 3, 1}));
}

TEST(Upgrade, FirstAttributesHadOtherNamesAndTypes) {
  using V = std::vector<double>;
  const Tensor x = floats({1, 1, 1, 2}, {3, 4});
  const auto padded = run_old(1, x, "Pad", [](auto& n) {
    set_ints(n, "paddings", {0, 0, 0, 1, 0, 0, 0, 0});
  });
  EXPECT_EQ(values_of(padded), (V{0, 3, 4}));
  const auto larger = run_old(1, x, "Upsample", [](auto& n) {
    set_float(n, "height_scale", 1);
    set_float(n, "width_scale", 2);
  });
  EXPECT_EQ(values_of(larger), (V{3, 3, 4, 4}));
  const auto length = run_old(1, x, "GlobalLpPool", [](auto& n) { set_float(n, "p", 2); });
  EXPECT_NEAR(length.get(0), 5, 1e-6);
}

TEST(Upgrade, AttributesBecomeInputs) {
  const Tensor x = floats({1, 4}, {-1, 2, -3, 4});
  using V = std::vector<double>;
  EXPECT_EQ(values_of(run_old(6, x, "Clip", [](auto& n) { set_float(n, "max", 3); })),
            (V{-1, 2, -3, 3}));
  EXPECT_EQ(run_old(11, x, "Squeeze", [](auto& n) { set_ints(n, "axes", {0}); }).shape(),
            (Ints{4}));
  EXPECT_EQ(run_old(11, x, "Unsqueeze", [](auto& n) { set_ints(n, "axes", {2}); }).shape(),
            (Ints{1, 4, 1}));
  EXPECT_EQ(values_of(run_old(9,
                              x,
                              "Slice",
                              [](auto& n) {
                                set_ints(n, "starts", {1});
                                set_ints(n, "ends", {3});
                                set_ints(n, "axes", {1});
                              })),
            (V{2, -3}));
  EXPECT_EQ(values_of(run_old(11, x, "ReduceSum", [](auto& n) { set_ints(n, "axes", {1}); })),
            (V{2}));
  EXPECT_EQ(values_of(run_old(13, x, "ReduceMean", [](auto& n) { set_ints(n, "axes", {1}); })),
            (V{0.5}));
  EXPECT_EQ(run_old(2,
                    x,
                    "Pad",
                    [](auto& n) {
                      set_ints(n, "pads", {0, 1, 0, 0});
                    })
                .shape(),
            (Ints{1, 5}));
  EXPECT_EQ(run_old(1,
                    x,
                    "Reshape",
                    [](auto& n) {
                      set_ints(n, "shape", {2, 2});
                    })
                .shape(),
            (Ints{2, 2}));
  EXPECT_EQ(values_of(run_old(7, x, "Dropout", [](auto& n) { set_float(n, "ratio", 0.5); })),
            values_of(x));
}

TEST(Upgrade, OldSoftmaxRanOverAllThatFollowsItsAxis) {
  const Tensor x = floats({1, 2, 2}, {0, 0, 0, std::log(5)});
  const auto axis = [](auto& n) { set_int(n, "axis", 1); };
  expect_near(run_old(11, x, "Softmax", axis), floats({1, 2, 2}, {0.125, 0.125, 0.125, 0.625}));
  expect_near(run_old(11, x, "Softmax", [](auto&) {}),
              floats({1, 2, 2}, {0.125, 0.125, 0.125, 0.625}));
  expect_near(run_old(13, x, "Softmax", axis), floats({1, 2, 2}, {0.5, 1.0 / 6, 0.5, 5.0 / 6}));
  expect_near(run_old(13, x, "Softmax", [](auto&) {}),
              floats({1, 2, 2}, {0.5, 0.5, 1.0 / 6, 5.0 / 6}));
}

TEST(Upgrade, OldOperandsStandFromTheirAxis) {
  const Tensor x = floats({1, 2, 2}, {1, 2, 3, 4}), z = floats({2}, {10, 20});
  EXPECT_EQ(values_of(run_old(
                6,
                x,
                "Add",
                [](auto& n) {
                  set_int(n, "broadcast", 1);
                  set_int(n, "axis", 1);
                },
                z)),
            (std::vector<double>{11, 12, 23, 24}));
  EXPECT_EQ(values_of(run_old(
                7, x, "Add", [](auto&) {}, z)),
            (std::vector<double>{11, 22, 13, 24}));
  for (const int64_t outside : {int64_t{4}, int64_t{-4}, INT64_MAX, -INT64_MAX, INT64_MIN})
    EXPECT_EQ(values_of(run_old(
                  6,
                  x,
                  "Add",
                  [&](auto& n) {
                    set_int(n, "broadcast", 1);
                    set_int(n, "axis", outside);
                  },
                  z)),
              (std::vector<double>{11, 22, 13, 24}))
        << outside;
}

TEST(Upgrade, ConstantsSayTheirValueInSeveralWays) {
  OnnxModel model;
  model.input("x", {2}).output("y");
  set_ints(model.node("Constant", {}, {"a"}), "value_ints", {2, 1});
  set_float(model.node("Constant", {}, {"b"}), "value_float", 3);
  model.node("Reshape", {"x", "a"}, {"r"});
  model.node("Mul", {"r", "b"}, {"y"});
  const Result<Graph> graph = import_model(model);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  const Tensor y = run_graph(*graph, {floats({2}, {1, 2})})[0];
  EXPECT_EQ(y.shape(), (Ints{2, 1}));
  EXPECT_EQ(values_of(y), (std::vector<double>{3, 6}));
  OnnxModel empty;
  empty.input("x", {2}).output("y").node("Constant", {}, {"y"});
  EXPECT_ERROR(import_model(empty), "node \"Constant_1\": has no value of numbers");
}

TEST(Upgrade, BatchNormalizationThatTrainsHasAnotherName) {
  OnnxModel model(15);
  model.input("x", {2, 1}).output("y").output("mean");
  for (const char* name : {"scale", "bias", "m", "v"})
    model.initializer(name, onnx::TensorProto::FLOAT, {1}).add_float_data(1);
  set_int(
      model.node("BatchNormalization", {"x", "scale", "bias", "m", "v"}, {"y", "mean", "variance"}),
      "training_mode",
      1);
  const Result<Graph> graph = import_model(model);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  const std::vector<Tensor> found = run_graph(*graph, {floats({2, 1}, {3, 5})});
  expect_near(found[0], floats({2, 1}, {0, 2}), 1e-4);
  expect_near(found[1], floats({1}, {1.3}));  // 0.9 * 1 + 0.1 * 4
}

TEST(Upgrade, ResizeOfOpset10RoundsDown) {
  OnnxModel model(10);
  model.input("x", {1, 2}).output("y");
  onnx::TensorProto& scales = model.initializer("scales", onnx::TensorProto::FLOAT, {2});
  scales.add_float_data(1);
  scales.add_float_data(2);
  model.node("Resize", {"x", "scales"}, {"y"});
  const Result<Graph> graph = import_model(model);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_EQ(values_of(run_graph(*graph, {floats({1, 2}, {3, 5})})[0]),
            (std::vector<double>{3, 3, 5, 5}));
}

}  // namespace
}  // namespace pruner
