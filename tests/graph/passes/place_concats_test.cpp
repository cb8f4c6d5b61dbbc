#include "graph/small_graph.h"
#include "tensor/task.h"

namespace pruner {
namespace {

using Names = std::vector<std::string>;

ValueId linear(NetworkBuilder& b, ValueId x, int64_t out) {
  return b.node("MatMul", {x, b.random("w", {b.shape(x).back(), out}, 0, 1)});
}

ValueId join(NetworkBuilder& b, std::vector<ValueId> parts, int64_t axis = 1) {
  return b.node("Concat", std::move(parts), {{"axis", axis}});
}

/// The network after the passes, which must compute the same, cut into groups.
Partition cut(const Graph& graph) {
  run_graph(graph, {waves(graph[graph.inputs[0]].shape)});
  Result<Partition> p = partition(graph, Target{});
  EXPECT_TRUE(p.ok());
  return *std::move(p);
}

Names group_names(const Partition& p) {
  Names names;
  for (const Group& group : p.groups) names.push_back(group.name);
  return names;
}

TEST(PlaceConcats, WhatIsJoinedLiesInTheResult) {
  NetworkBuilder b("join");
  const ValueId x = b.input("x", {4, 8}, DType::kFloat32);
  const ValueId all = join(b, {linear(b, x, 6), linear(b, x, 10)});
  const Partition p = cut(b.finish({{linear(b, all, 3), "y"}}));
  EXPECT_EQ(group_names(p),
            (Names{"matmul 4x8 8x6 ...", "matmul 4x8 8x10 ...", "matmul 4x16 16x3 ..."}));
  const ValueId whole = p.groups[2].inputs[0];
  for (const auto& [group, first] : {std::pair{0, 0}, {1, 6}}) {
    const Storage storage = p.storage_of(p.groups[static_cast<size_t>(group)].output);
    EXPECT_EQ(storage.owner, whole);
    EXPECT_EQ(storage.shape, (Ints{4, 16}));
    EXPECT_EQ(storage.first, first);
  }
  EXPECT_EQ(p.storage_of(whole).owner, whole);
}

// A cyclic shift, and one of changed parts that stand in another order.
TEST(PlaceConcats, WhatIsCutOutToBeJoinedIsOneKernel) {
  NetworkBuilder b("shift");
  const ValueId x = b.input("x", {4, 8}, DType::kFloat32), y = linear(b, x, 8);
  const auto part = [&](ValueId of, int64_t start, int64_t end) {
    return b.node(
        "Slice",
        {of, b.integers("start", {start}), b.integers("end", {end}), b.integers("axis", {1})});
  };
  const ValueId shifted = join(b, {part(y, 3, 8), part(y, 0, 3)});
  const ValueId z = linear(b, shifted, 8);
  const ValueId turned = join(b, {b.node("Neg", {part(z, 4, 8)}), part(z, 0, 4)});
  const Partition p = cut(b.finish({{b.node("Add", {z, turned}), "y"}}));
  EXPECT_EQ(group_names(p),
            (Names{"matmul 4x8 8x8 ...",
                   "slice+slice+concat 4x8",
                   "matmul 4x8 8x8 ...",
                   "slice+...+add 4x8"}));
}

// Another node reads one part of the Concat. The part is made once, and lies in the result.
TEST(PlaceConcats, APartThatIsReadElsewhereIsWrittenInPlace) {
  NetworkBuilder b("read");
  const ValueId x = b.input("x", {4, 8}, DType::kFloat32), y = linear(b, x, 8);
  const auto part = [&](int64_t start) {
    return b.node(
        "Slice",
        {y, b.integers("start", {start}), b.integers("end", {start + 4}), b.integers("axis", {1})});
  };
  const ValueId first = b.node("Tanh", {part(0)}), all = join(b, {part(4), first});
  const ValueId sum = b.node("Add", {linear(b, all, 4), linear(b, first, 4)});
  const Partition p = cut(b.finish({{sum, "y"}}));
  for (const Group& group : p.groups)
    EXPECT_EQ(group.name.find("concat"), std::string::npos) << group.name;
}

// DenseNet: each layer joins what all before it made.
TEST(PlaceConcats, ARowOfPartsIsReadInTheLargestResult) {
  NetworkBuilder b("dense");
  const ValueId x = b.input("x", {4, 8}, DType::kFloat32);
  const ValueId a = linear(b, x, 8), c = linear(b, a, 4);
  const ValueId two = join(b, {a, c}), d = linear(b, two, 4);
  const Partition p = cut(b.finish({{linear(b, join(b, {a, c, d}), 2), "y"}}));
  ASSERT_EQ(group_names(p),
            (Names{"matmul 4x8 8x8 ...",
                   "matmul 4x8 8x4 ...",
                   "matmul 4x12 12x4 ...",
                   "matmul 4x16 16x2 ..."}));
  const ValueId whole = p.groups[3].inputs[0];
  for (const ValueId part : {p.groups[0].output, p.groups[1].inputs[0], p.groups[2].inputs[0]}) {
    EXPECT_EQ(p.storage_of(part).owner, whole);
    EXPECT_EQ(p.storage_of(part).first, 0);
  }
  EXPECT_EQ(p[p.groups[2].inputs[0]].shape, (Ints{4, 12}));
  EXPECT_EQ(p.storage_of(p.groups[2].output).first, 12);
}

TEST(PlaceConcats, PartsMayHaveParts) {
  NetworkBuilder b("nested");
  const ValueId x = b.input("x", {2, 3, 8}, DType::kFloat32);
  const ValueId rows = join(b, {linear(b, x, 4), linear(b, x, 4)}, 1);
  const ValueId all = join(b, {join(b, {linear(b, x, 3), linear(b, x, 1)}, 2), rows}, 1);
  const Partition p = cut(b.finish({{linear(b, all, 2), "y"}}));
  const ValueId whole = p.groups.back().inputs[0];
  EXPECT_EQ(p[whole].shape, (Ints{2, 9, 4}));
  std::vector<int64_t> firsts;
  for (size_t g = 0; g + 1 < p.groups.size(); ++g) {
    const Storage storage = p.storage_of(p.groups[g].output);
    EXPECT_EQ(storage.owner, whole);
    EXPECT_EQ(storage.shape, (Ints{2, 9, 4}));
    firsts.push_back(storage.first);
  }
  std::ranges::sort(firsts);
  EXPECT_EQ(firsts, (Ints{0, 3, 12, 24}));
  EXPECT_EQ(extract_tasks(p, Target{}).size(), 4u);  // those before a Concat are not forgotten
}

TEST(PlaceConcats, OthersStayKernels) {
  const auto last_group = [](ValueId (*build)(NetworkBuilder&, ValueId)) {
    NetworkBuilder b("copied");
    const ValueId x = b.input("x", {4, 8}, DType::kFloat32);
    const Partition p = cut(b.finish({{build(b, x), "y"}}));
    Names names = group_names(p);
    std::erase_if(names,
                  [](const std::string& n) { return n.find("concat") == Names::value_type::npos; });
    return names.size();
  };
  // The model's output, its input, one value twice, a constant, a view of the model's output.
  EXPECT_EQ(last_group([](auto& b, ValueId x) {
              return join(b, {linear(b, x, 2), linear(b, x, 3)});
            }),
            1u);
  EXPECT_EQ(last_group([](auto& b, ValueId x) {
              return linear(b, join(b, {linear(b, x, 2), x}), 3);
            }),
            1u);
  EXPECT_EQ(last_group([](auto& b, ValueId x) {
              const ValueId y = linear(b, x, 2);
              return linear(b, join(b, {y, y}), 3);
            }),
            1u);
  EXPECT_EQ(last_group([](auto& b, ValueId x) {
              return linear(b, join(b, {linear(b, x, 2), b.random("c", {4, 3}, 0, 1)}), 3);
            }),
            1u);
  EXPECT_EQ(last_group([](auto& b, ValueId x) {
              const ValueId all = join(b, {linear(b, x, 2), linear(b, x, 4)});
              return b.node("Reshape", {all, b.integers("s", {6, 4})});
            }),
            1u);
  // A view that kernels read needs no copy.
  EXPECT_EQ(last_group([](auto& b, ValueId x) {
              const ValueId all = join(b, {linear(b, x, 2), linear(b, x, 4)});
              return linear(b, b.node("Reshape", {all, b.integers("s", {6, 4})}), 3);
            }),
            0u);
}

}  // namespace
}  // namespace pruner
