#include "graph/small_graph.h"

namespace pruner {
namespace {

// Returns the operators after channels_last and sink_transposes; the network computes the same.
std::string arranged(std::vector<int64_t> shape, ValueId (*build)(NetworkBuilder&, ValueId)) {
  NetworkBuilder b("layout");
  const ValueId x = b.input("x", shape, DType::kFloat32);
  const Graph graph = b.finish({{build(b, x), "y"}});
  run_graph(graph, {waves(shape)});
  return operators(sink_transposes(channels_last(fold_batch_norm(simplify(graph)), {})));
}

ValueId conv(NetworkBuilder& b, ValueId x, int64_t out, int64_t group = 1, int64_t kernel = 1) {
  const ValueId w = b.random("w", {out, b.shape(x)[1] / group, kernel, kernel}, 0, 1);
  const int64_t pad = kernel / 2;
  return b.node("Conv", {x, w}, {{"group", group}, {"pads", Ints{pad, pad, pad, pad}}});
}

ValueId scalar_per_channel(NetworkBuilder& b, ValueId x) {
  return b.random("c", {b.shape(x)[1], 1, 1}, 1, 1);
}

TEST(SinkTransposes, LeavesOneAtTheBorderOfAClassifier) {
  EXPECT_EQ(
      arranged({1, 3, 8, 8},
               [](auto& b, ValueId x) {
                 const ValueId y = b.node("Relu", {conv(b, x, 4, 1, 3)});
                 const ValueId z = b.node("Add", {conv(b, y, 4), y});
                 const ValueId p = b.node("MaxPool", {z}, {{"kernel_shape", Ints{2, 2}}});
                 const ValueId both = b.node("Concat", {p, conv(b, p, 5)}, {{"axis", int64_t{1}}});
                 return b.classifier("fc", both, 10);
               }),
      "Transpose Conv Relu Conv Add MaxPool Conv Concat GlobalAveragePool Reshape Gemm");
}

TEST(SinkTransposes, PassesBroadcastsAndReductions) {
  EXPECT_EQ(
      arranged(
          {2, 4, 6, 6},
          [](auto& b, ValueId x) {
            ValueId y = conv(b, x, 4);
            y = b.node("PRelu", {y, scalar_per_channel(b, y)});
            y = b.node("Softmax", {y}, {{"axis", int64_t{1}}});
            y = b.node("Pad", {y, b.integers("p", {0, 1, 2, 0, 0, 0, 0, 3})});
            y = b.node("Slice",
                       {y, b.integers("s", {1}), b.integers("e", {4}), b.integers("a", {1})});
            return b.node("ReduceMean", {y, b.integers("hw", {2, 3})}, {{"keepdims", int64_t{0}}});
          }),
      "Transpose Conv PRelu Softmax Pad Slice ReduceMean");
}

TEST(SinkTransposes, RepeatsWhatIsNotTransposed) {
  EXPECT_EQ(arranged({1, 4, 6, 6},
                     [](auto& b, ValueId x) {
                       const ValueId y = conv(b, x, 4);
                       const ValueId mean = b.node("ReduceMean", {y, b.integers("w", {3})});
                       const ValueId shape = b.integers("shape", {1, 4, 6, 5});
                       return b.node("ReduceMax",
                                     {b.node("Expand", {mean, shape}), b.integers("c", {1})},
                                     {{"keepdims", int64_t{0}}});
                     }),
            "Transpose Conv ReduceMean Expand ReduceMax");
}

// Squeeze and excitation: the small branch has extents of one to move, which costs nothing.
TEST(SinkTransposes, MovesExtentsOfOneForFree) {
  EXPECT_EQ(arranged({1, 4, 6, 6},
                     [](auto& b, ValueId x) {
                       const ValueId y = conv(b, x, 4);
                       const ValueId s =
                           b.node("Sigmoid", {conv(b, b.node("GlobalAveragePool", {y}), 4)});
                       return b.node("GlobalMaxPool", {b.node("Mul", {y, s})});
                     }),
            "Transpose Conv GlobalAveragePool Conv Sigmoid Mul GlobalMaxPool Reshape");
}

// ShuffleNet's channel shuffle: one transpose of its own, none around it.
TEST(SinkTransposes, ShufflesChannelsWithOneTranspose) {
  for (const int64_t batch : {1, 2}) {
    const auto shuffle = [](NetworkBuilder& b, ValueId x) {
      const ValueId y = conv(b, x, 6);
      const int64_t n = b.shape(y)[0], h = b.shape(y)[2], w = b.shape(y)[3];
      ValueId z = b.node("Reshape", {y, b.integers("split", {n, 2, 3, h, w})});
      z = b.node("Transpose", {z}, {{"perm", Ints{0, 2, 1, 3, 4}}});
      z = b.node("Reshape", {z, b.integers("join", {n, 6, h, w})});
      return b.node("GlobalMaxPool", {conv(b, z, 6, 6, 3)});
    };
    EXPECT_EQ(arranged({batch, 3, 4, 5}, shuffle),
              "Transpose Conv Reshape Transpose Reshape Conv GlobalMaxPool Reshape");
  }
}

TEST(SinkTransposes, KeepsTheOrderThatAFlattenNeeds) {
  EXPECT_EQ(arranged({1, 3, 4, 4},
                     [](auto& b, ValueId x) {
                       const ValueId flat = b.node("Flatten", {b.node("Relu", {conv(b, x, 2)})});
                       return b.node("MatMul", {flat, b.random("w", {32, 3}, 0, 1)});
                     }),
            "Transpose Conv Relu Transpose Reshape MatMul");
}

TEST(SinkTransposes, LeavesAnOperandThatIsLarger) {
  EXPECT_EQ(
      arranged({4, 5, 6},
               [](auto& b, ValueId x) {
                 const ValueId small = b.node("ReduceMean", {x, b.integers("a", {0})});
                 const ValueId t =
                     b.node("Transpose", {b.node("Exp", {small})}, {{"perm", Ints{0, 2, 1}}});
                 return b.node(
                     "MatMul",
                     {x, b.node("Add", {t, b.node("Transpose", {x}, {{"perm", Ints{0, 2, 1}}})})});
               }),
      "ReduceMean Exp Add MatMul");
}

TEST(SinkTransposes, MakesATransposedOperandAFlag) {
  EXPECT_EQ(arranged({2, 3, 4, 5},
                     [](auto& b, ValueId x) {
                       const ValueId k = b.node("Transpose", {x}, {{"perm", Ints{0, 2, 3, 1}}});
                       const ValueId q = b.node("Transpose", {x}, {{"perm", Ints{0, 2, 1, 3}}});
                       return b.node("MatMul", {q, k});
                     }),
            "Transpose MatMul");
}

TEST(SinkTransposes, PassesASliceWhoseBoundsAreScalars) {
  EXPECT_EQ(
      arranged({2, 3, 4},
               [](auto& b, ValueId x) {
                 const ValueId t = b.node("Transpose", {x}, {{"perm", Ints{0, 2, 1}}});
                 const auto scalar = [&](const char* name, int64_t value) {
                   return b.constant(name, integers({}, {value}));
                 };
                 return b.node("Slice", {t, scalar("from", 0), scalar("to", 2), scalar("axis", 1)});
               }),
      "Slice Transpose");
}

TEST(ChannelsLast, ArrangesEveryWeight) {
  EXPECT_EQ(arranged({1, 4, 5, 5},
                     [](auto& b, ValueId x) {
                       const ValueId y = conv(b, conv(b, x, 8, 4, 3), 6, 2, 3);
                       const ValueId w = b.random("w", {6, 2, 2, 2}, 0, 1);
                       const ValueId up = b.node("ConvTranspose",
                                                 {y, w},
                                                 {{"group", int64_t{3}}, {"strides", Ints{2, 2}}});
                       return b.node("LRN", {up}, {{"size", int64_t{3}}});
                     }),
            "Transpose Conv Conv ConvTranspose LRN Transpose");
}

}  // namespace
}  // namespace pruner
