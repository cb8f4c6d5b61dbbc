#include "graph/small_graph.h"

namespace pruner {
namespace {

constexpr int64_t kChannels = 4;

ValueId batch_norm(NetworkBuilder& b, ValueId x) {
  const auto operand = [&](double mean, double spread) {
    return b.random("operand", {b.shape(x)[1]}, mean, spread);
  };
  return b.node("BatchNormalization",
                {x, operand(1, 0.5), operand(0, 1), operand(0, 1), operand(1, 0.5)});
}

// A network x -> build(x), folded; it has to compute the same.
std::string folded(ValueId (*build)(NetworkBuilder&, ValueId)) {
  NetworkBuilder b("bn");
  const ValueId x = b.input("x", {2, kChannels, 5, 5}, DType::kFloat32);
  const Graph graph = b.finish({{build(b, x), "y"}});
  run_graph(graph, {waves({2, kChannels, 5, 5})});
  return operators(fold_batch_norm(graph));
}

ValueId conv(NetworkBuilder& b, ValueId x, bool bias, int64_t group = 1) {
  std::vector<ValueId> inputs = {x, b.random("w", {kChannels, kChannels / group, 3, 3}, 0, 1)};
  if (bias) inputs.push_back(b.random("b", {kChannels}, 0, 1));
  return b.node("Conv", inputs, {{"group", group}});
}

TEST(FoldBatchNorm, GoesIntoTheConvolution) {
  EXPECT_EQ(folded([](auto& b, ValueId x) { return batch_norm(b, conv(b, x, false)); }), "Conv");
  EXPECT_EQ(folded([](auto& b, ValueId x) { return batch_norm(b, conv(b, x, true)); }), "Conv");
  EXPECT_EQ(folded([](auto& b, ValueId x) { return batch_norm(b, conv(b, x, true, 2)); }), "Conv");
  EXPECT_EQ(folded([](auto& b, ValueId x) { return batch_norm(b, conv(b, x, false, kChannels)); }),
            "Conv");
  EXPECT_EQ(folded([](auto& b, ValueId x) {
              return batch_norm(
                  b, b.node("ConvTranspose", {x, b.random("w", {kChannels, 3, 2, 2}, 0, 1)}));
            }),
            "ConvTranspose");
}

TEST(FoldBatchNorm, TakesAScaleLayerWithIt) {
  EXPECT_EQ(
      folded([](auto& b, ValueId x) {
        const ValueId scaled = b.node(
            "Mul", {batch_norm(b, conv(b, x, false)), b.random("s", {kChannels, 1, 1}, 1, 1)});
        return b.node("Relu", {b.node("Add", {b.random("t", {1, kChannels, 1, 1}, 0, 1), scaled})});
      }),
      "Conv Relu");
}

TEST(FoldBatchNorm, LeavesAConvolutionThatOthersRead) {
  EXPECT_EQ(folded([](auto& b, ValueId x) {
              const ValueId y = conv(b, x, false);
              return b.node("Add", {batch_norm(b, y), y});
            }),
            "Conv Mul Add Add");
}

TEST(FoldBatchNorm, IsOneMultiplyAndAddElsewhere) {
  EXPECT_EQ(folded([](auto& b, ValueId x) {
              const ValueId y = b.node("Mul", {batch_norm(b, b.node("Relu", {x})), b.scalar(3)});
              return b.node("Add", {y, b.random("t", {kChannels, 1, 1}, 0, 1)});
            }),
            "Relu Mul Add");
}

// (3 * (1 / 3) - 1) is 0, node by node; a ceiling of one fused factor may be 1.
TEST(FoldBatchNorm, LeavesARunThatAnOperatorThatJumpsReads) {
  EXPECT_EQ(folded([](auto& b, ValueId x) {
              const ValueId y = b.node("Mul", {b.node("Mul", {x, b.scalar(1.0 / 3)}), b.scalar(3)});
              return b.node("Ceil", {b.node("Relu", {y})});
            }),
            "Mul Mul Relu Ceil");
}

TEST(FoldBatchNorm, LeavesWhatDiffersInsideAChannel) {
  EXPECT_EQ(folded([](auto& b, ValueId x) {
              return b.node("Mul", {conv(b, x, false), b.random("s", {3}, 1, 1)});
            }),
            "Conv Mul");
}

}  // namespace
}  // namespace pruner
