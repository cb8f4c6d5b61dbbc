#include <functional>
#include <numeric>

#include "graph/small_graph.h"

namespace pruner {
namespace {

// The names of the groups of a network of one input.
std::vector<std::string> groups(std::vector<int64_t> shape,
                                ValueId (*build)(NetworkBuilder&, ValueId)) {
  NetworkBuilder b("fuse");
  const ValueId x = b.input("x", shape, DType::kFloat32);
  const Graph graph = b.finish({{build(b, x), "y"}});
  run_graph(graph, {waves(shape)});
  std::vector<std::string> names;
  const Result<Partition> cut = partition(graph, Target{});
  for (const Group& group : cut->groups) names.push_back(group.name);
  return names;
}

using Names = std::vector<std::string>;

ValueId linear(NetworkBuilder& b, ValueId x, int64_t out) {
  const ValueId y = b.node("MatMul", {x, b.random("w", {b.shape(x).back(), out}, 0, 1)});
  return b.node("Add", {y, b.random("b", {out}, 0, 1)});
}

TEST(Fuse, AnAnchorTakesWhatFollows) {
  EXPECT_EQ(groups({4, 8},
                   [](auto& b, ValueId x) {
                     return b.node("Relu", {b.node("Add", {linear(b, x, 8), x})});
                   }),
            (Names{"matmul 4x8 8x8 +bias +residual +relu ..."}));
}

TEST(Fuse, TakesADiamond) {
  EXPECT_EQ(groups({4, 8},
                   [](auto& b, ValueId x) {
                     const ValueId y = linear(b, x, 8);
                     return b.node("Mul", {y, b.node("Sigmoid", {y})});
                   }),
            (Names{"matmul 4x8 8x8 +bias +sigmoid +mul"}));
}

ValueId bottleneck(NetworkBuilder& b, ValueId x, bool main_first) {
  const ValueId main = linear(b, b.node("Relu", {linear(b, x, 16)}), 8), side = linear(b, x, 8);
  return main_first ? b.node("Add", {main, side}) : b.node("Add", {side, main});
}

TEST(Fuse, AContractionTakesWhatIsDoneToItsDataAlone) {
  EXPECT_EQ(groups({4, 8},
                   [](auto& b, ValueId x) {
                     const ValueId y = b.node("Mul", {x, b.random("scale", {8}, 1, 1)});
                     return linear(b, b.node("Relu", {y}), 6);
                   }),
            (Names{"mul+relu+matmul 4x8 8x6 +bias"}));
  EXPECT_EQ(groups({4, 8},
                   [](auto& b, ValueId x) {
                     const ValueId y = b.node("Relu", {x});
                     return b.node("Add", {linear(b, y, 8), y});
                   }),
            (Names{"relu 4x8", "matmul 4x8 8x8 +bias +residual ..."}));
}

TEST(Fuse, TheDeeperProductTakesTheSum) {
  const Names one = groups({4, 8}, [](auto& b, ValueId x) { return bottleneck(b, x, true); });
  const Names other = groups({4, 8}, [](auto& b, ValueId x) { return bottleneck(b, x, false); });
  EXPECT_EQ(one.back(), "matmul 4x16 16x8 +bias +residual ...");
  EXPECT_EQ(other, one);
}

TEST(Fuse, AValueOfSeveralGroupsEndsItsGroup) {
  EXPECT_EQ(groups({4, 8},
                   [](auto& b, ValueId x) {
                     const ValueId y = b.node("Relu", {linear(b, x, 8)});
                     return b.node("Add", {linear(b, y, 8), linear(b, y, 8)});
                   }),
            (Names{"matmul 4x8 8x8 +bias +relu ...",
                   "matmul 4x8 8x8 +bias ...",
                   "matmul 4x8 8x8 +bias +residual ..."}));
}

// MobileNet's inverted residual of [1, 4, 6, 6], with 24 channels between: 3,456 bytes. Its
// kernels.
Names inverted_residual(const Target& target,
                        Precision precision = Precision::kFloat32,
                        bool shows_wide = false) {
  NetworkBuilder b("residual");
  const auto conv = [&](ValueId x, int64_t in, int64_t out, int64_t k, int64_t groups) {
    return b.node("Conv",
                  {x, b.random("w", {out, in / groups, k, k}, 0, 1), b.random("b", {out}, 0, 1)},
                  {{"group", groups}, {"pads", Ints{k / 2, k / 2, k / 2, k / 2}}});
  };
  const ValueId x = b.input("x", {1, 4, 6, 6}, DType::kFloat32);
  const ValueId wide = b.node("Relu", {conv(x, 4, 24, 1, 1)});
  const ValueId y = conv(b.node("Relu", {conv(wide, 24, 24, 3, 24)}), 24, 4, 1, 1);
  std::vector<std::pair<ValueId, std::string>> outputs = {{b.node("Add", {x, y}), "y"}};
  if (shows_wide) outputs.emplace_back(wide, "wide");
  const Graph graph = b.finish(outputs);
  Names names;
  const Result<Partition> cut = partition(graph, target, precision);
  for (const Group& group : cut->groups) {
    if (group.complex) names.push_back(group.name);
  }
  return names;
}

TEST(Fuse, ADepthwiseConvolutionTakesTheOneBeforeItWhoseResultNoL2Holds) {
  const std::string wide = "conv2d 1x6x6x4 1x1 s1 -> 24 +bias +relu",
                    depthwise = "depthwise_conv2d 1x6x6x24 3x3 s1 p1 -> 24 +bias +relu",
                    narrow = "conv2d 1x6x6x24 1x1 s1 -> 4 +bias +residual";
  Target target;
  target.l2_bytes = 1728, target.threads = 2;
  EXPECT_EQ(inverted_residual(target), (Names{wide, depthwise, narrow}));
  target.threads = 1;
  EXPECT_EQ(inverted_residual(target), (Names{wide + " +" + depthwise, narrow}));
  EXPECT_EQ(inverted_residual(target, Precision::kFloat32, true), (Names{wide, depthwise, narrow}));
  target.dots.bfloat16 = 2;
  EXPECT_EQ(inverted_residual(target, Precision::kBFloat16).size(), 3u);
}

// 16 rows of heads of 4, turned: x's halves as RotaryEmbedding, or x and its halves exchanged as in
// HuggingFace's rotate_half.
ValueId turned_heads(NetworkBuilder& b, ValueId x, int64_t heads, bool exchanged) {
  const int64_t rows = b.shape(x)[1];
  const ValueId y =
      b.node("Reshape", {linear(b, x, heads * 4), b.integers("heads", {1, rows, heads, 4})});
  const int64_t width = exchanged ? 4 : 2;
  const ValueId cosine = b.random("cosine", {1, rows, 1, width}, 0, 1),
                sine = b.random("sine", {1, rows, 1, width}, 0, 1);
  const auto half = [&](int64_t start) {
    const auto integer = [&](int64_t i) { return b.integers("i", {i}); };
    return b.node("Slice", {y, integer(start), integer(start + 2), integer(-1)});
  };
  const ValueId one = half(0), other = half(2);
  const auto mul = [&](ValueId p, ValueId q) { return b.node("Mul", {p, q}); };
  const auto join = [&](ValueId p, ValueId q) {
    return b.node("Concat", {p, q}, {{"axis", int64_t{-1}}});
  };
  if (exchanged)
    return b.node("Add", {mul(y, cosine), mul(join(b.node("Neg", {other}), one), sine)});
  return join(b.node("Sub", {mul(one, cosine), mul(other, sine)}),
              b.node("Add", {mul(one, sine), mul(other, cosine)}));
}

template <int64_t heads, bool exchanged>
ValueId turned(NetworkBuilder& b, ValueId x) {
  return turned_heads(b, x, heads, exchanged);
}

TEST(Fuse, AProductTurnsItsColumns) {
  const std::string name = "matmul 1x16x8 8x12 +bias +rotary_embedding=4 ...";
  EXPECT_EQ(groups({1, 16, 8}, turned<3, false>), Names{name});
  EXPECT_EQ(groups({1, 16, 8}, turned<3, true>), Names{name});
  // A product of few rows is as fast as its weights are read, and best one with others.
  EXPECT_EQ(groups({1, 15, 8}, turned<3, false>).size(), 2u);
  // Queries and keys, beside values.
  EXPECT_EQ(groups({1, 16, 8},
                   [](auto& b, ValueId x) {
                     const ValueId q = turned_heads(b, x, 2, false),
                                   k = turned_heads(b, x, 2, true),
                                   v = b.node("Reshape",
                                              {linear(b, x, 8), b.integers("v", {1, 16, 2, 4})});
                     return b.node("Concat", {b.node("Add", {q, k}), v}, {{"axis", int64_t{1}}});
                   }),
            (Names{"matmul 1x16x8 8x8 +bias +rotary_embedding=4 ...",
                   "matmul 1x16x8 8x8 +bias +rotary_embedding=4 ...",
                   "matmul 1x16x8 8x8 +bias",
                   "add+concat 1x32x2x4"}));
}

TEST(Fuse, ChainsAreOneKernel) {
  EXPECT_EQ(groups({4, 6},
                   [](auto& b, ValueId x) {
                     const ValueId t = b.node("Transpose", {b.node("Exp", {x})});
                     return b.node("Relu", {b.node("Add", {t, b.scalar(1)})});
                   }),
            (Names{"exp+add+relu+transpose 6x4"}));
  EXPECT_EQ(groups({4, 6},
                   [](auto& b, ValueId x) {
                     return b.node("Concat",
                                   {b.node("Exp", {x}), b.node("Relu", {x})},
                                   {{"axis", int64_t{1}}});
                   }),
            (Names{"exp+relu+concat 4x12"}));  // the model's output: not joined in place
}

TEST(Fuse, AReductionTakesWhatComesBefore) {
  EXPECT_EQ(
      groups(
          {4, 6},
          [](auto& b, ValueId x) {
            const ValueId sum = b.node("ReduceSum", {b.node("Mul", {x, x}), b.integers("a", {1})});
            return b.node("Sqrt", {sum});
          }),
      (Names{"mul+sum 4x6 +sqrt"}));
}

// The indices that a kernel reads at are checked between two kernels.
TEST(Fuse, IndicesAreATensor) {
  NetworkBuilder b("indices");
  const ValueId x = b.input("x", {4, 8}, DType::kFloat32), ids = b.input("ids", {3}, DType::kInt64);
  const ValueId next = b.node("Add", {ids, b.constant("one", integers({}, {1}))});
  const ValueId rows = b.node("Gather", {b.node("Relu", {x}), next});
  const Graph graph = b.finish({{b.node("Neg", {rows}), "y"}});
  const Result<Partition> cut = partition(graph, Target{});
  ASSERT_TRUE(cut.ok());
  ASSERT_EQ(cut->groups.size(), 2u);
  const ComputeDag& gather = cut->groups[1].dag;
  std::vector<Ints> read_at;
  for (const StageId id : gather.inputs())
    if (!gather[id].read_at.empty()) read_at.push_back(gather[id].read_at);
  EXPECT_EQ(read_at, (std::vector<Ints>{{4}}));
}

TEST(Fuse, SoftmaxStaysAlone) {
  EXPECT_EQ(groups({4, 6},
                   [](auto& b, ValueId x) {
                     return b.node("Relu", {b.node("Softmax", {b.node("Exp", {x})})});
                   }),
            (Names{"exp 4x6", "softmax 4x6", "relu 4x6"}));
}

TEST(Fuse, DoesNotRepeatWork) {
  EXPECT_EQ(groups({4, 1},
                   [](auto& b, ValueId x) {
                     return b.node("Expand", {b.node("Exp", {x}), b.integers("s", {4, 100})});
                   }),
            (Names{"exp 4x1", "expand 4x100"}));
}

// The nodes of each group of a network that `build` makes of an input.
std::vector<int> group_sizes(const std::function<ValueId(NetworkBuilder&, ValueId)>& build) {
  NetworkBuilder b("fuse");
  const ValueId x = b.input("x", {4, 8}, DType::kFloat32);
  const Graph graph = run_graph_passes(b.finish({{build(b, x), "y"}}));
  std::map<int, int> sizes;
  for (const Node& node : graph.nodes) ++sizes[node.group];
  std::vector<int> result;
  for (const auto& [group, size] : sizes) result.push_back(size);
  return result;
}

TEST(Fuse, EndsAGroupOfManyNodes) {
  const auto chain = [](NetworkBuilder& b, ValueId x) {
    for (int i = 0; i < 300; ++i) x = b.node("Neg", {x});
    return x;
  };
  EXPECT_EQ(group_sizes(chain), (std::vector{44, 64, 64, 64, 64}));
  const auto epilogue = [&](NetworkBuilder& b, ValueId x) { return chain(b, linear(b, x, 8)); };
  EXPECT_EQ(group_sizes(epilogue), (std::vector{64, 46, 64, 64, 64}));
  const auto diamonds = [](NetworkBuilder& b, ValueId x) {
    for (int i = 0; i < 100; ++i) x = b.node("Add", {x, b.node("Mul", {x, b.node("Neg", {x})})});
    return x;
  };
  for (const int size : group_sizes(diamonds)) EXPECT_LE(size, 64);
  const auto wide = [](NetworkBuilder& b, ValueId x) {
    const ValueId y = b.node("Neg", {x});
    ValueId sum = y;
    for (int i = 0; i < 300; ++i) sum = b.node("Add", {sum, b.node("Exp", {y})});
    return sum;
  };
  for (const int size : group_sizes(wide)) EXPECT_LE(size, 64);
}

// Each node of the first half is read by one of the second, the first by the last: what lies
// between a node and its post-dominator is half of the network. No step may look at all of it.
TEST(Fuse, TakesLongNestedBranches) {
  const auto nested = [](NetworkBuilder& b, ValueId x) {
    std::vector<ValueId> first = {x};
    for (int i = 0; i < 20000; ++i) first.push_back(b.node("Neg", {first.back()}));
    ValueId y = first.back();
    for (; !first.empty(); first.pop_back()) y = b.node("Add", {y, first.back()});
    return y;
  };
  const std::vector<int> sizes = group_sizes(nested);
  EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), 0), 40001);
}

TEST(Fuse, TakesAllOfTheBuiltInNetworks) {
  NetworkOptions options;
  options.weights_as_inputs = true;
  for (const std::string& name : network_names()) {
    const Result<Graph> graph = build_network(name, options);
    ASSERT_TRUE(graph.ok()) << name;
    std::map<int, int> sizes;
    for (const Node& node : run_graph_passes(*graph).nodes) {
      if (node.group < 0) continue;
      EXPECT_LE(++sizes[node.group], 32) << name;
    }
  }
}

}  // namespace
}  // namespace pruner
