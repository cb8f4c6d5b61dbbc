// label: codegen
// Faults that once made modules wrong in silence, put back one by one: both the check of kernels
// when a module is compiled and verify_module() find each of them.
#include "support/mend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "deploy/loaded_module.h"
#include "deploy/module.h"
#include "deploy/verify.h"
#include "golden.h"
#include "graph/evaluate.h"
#include "graph/networks/network_builder.h"
#include "graph/partition_range.h"
#include "support/temporary_folder.h"

namespace pruner {
namespace {

using GraphAt = std::function<Graph(const SymbolValues&)>;
using Ints = std::vector<int64_t>;

Tensor row(const Ints& values) {
  Tensor tensor(DType::kInt64, {std::ssize(values)});
  for (size_t i = 0; i < values.size(); ++i) tensor.set_int(static_cast<int64_t>(i), values[i]);
  return tensor;
}

/// Two products side by side in one tensor, 16 and 3 columns wide.
Graph joined_products(const SymbolValues&) {
  NetworkBuilder b("joined", NetworkOptions());
  const auto matrix = [&](const char* name, int64_t rows, int64_t columns) {
    return b.input(name, {rows, columns}, DType::kFloat32);
  };
  const ValueId wide = b.node("MatMul", {matrix("p", 16, 16), matrix("q", 16, 16)});
  const ValueId narrow = b.node("MatMul", {matrix("r", 16, 16), matrix("s", 16, 3)});
  return b.finish({{b.node("Concat", {wide, narrow}, {{"axis", int64_t{1}}}), "y"}});
}

/// The places of the greatest elements of padded windows.
Graph window_places(const SymbolValues&) {
  Graph graph;
  graph.name = "places";
  graph.values = {{"x", DType::kFloat32, {2, 3, 6, 5}, {}},
                  {"y", DType::kFloat32, {}, {}},
                  {"places", DType::kInt64, {}, {}}};
  graph.inputs = {ValueId{0}};
  graph.outputs = {ValueId{1}, ValueId{2}};
  graph.nodes = {
      {"MaxPool",
       "pool",
       {ValueId{0}},
       {ValueId{1}, ValueId{2}},
       {{"kernel_shape", Ints{2, 3}}, {"strides", Ints{2, 1}}, {"pads", Ints{0, 1, 1, 1}}}}};
  EXPECT_TRUE(infer_node(graph, graph.nodes.front()).ok());
  return graph;
}

/// The first layer of a network on sound: a window of 10 with a stride of 5.
Graph strided(const SymbolValues& n) {
  NetworkBuilder b("strided", NetworkOptions());
  const ValueId x = b.input("x", {1, 1, n[0]}, DType::kFloat32);
  const ValueId w = b.weight("w", {16, 1, 10}, 10, 1);
  return b.finish({{b.node("Conv", {x, w}, {{"strides", Ints{5}}}), "y"}});
}

/// The first columns of a table, as positions of so many words.
Graph positions(const SymbolValues& n) {
  NetworkBuilder b("positions", NetworkOptions());
  const ValueId x = b.input("x", {1, 8, n[0]}, DType::kFloat32);
  const ValueId table = b.weight("table", {1, 8, 600}, 8, 1);
  const ValueId part = b.node("Slice",
                              {table,
                               b.constant("start", row({0})),
                               b.constant("end", row({n[0]})),
                               b.constant("axes", row({2}))});
  return b.finish({{b.node("Add", {x, part}), "y"}});
}

/// A window of 3 with a stride of 2, whose rows are one fewer at even lengths.
Graph pooled(const SymbolValues& n) {
  NetworkBuilder b("pooled", NetworkOptions());
  const ValueId x = b.input("x", {1, 8, n[0]}, DType::kFloat32);
  return b.finish(
      {{b.node("MaxPool", {x}, {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}}), "y"}});
}

struct Fault {
  const char* name;
  Mend mend;
  GraphAt graph_at;
  std::vector<Symbol> symbols;
};

class Mends : public testing::TestWithParam<Fault> {
 protected:
  Result<Phase> phase() const {
    const Fault& fault = GetParam();
    Phase made{.name = "main", .partition = {}};
    made.graph_at = [at = fault.graph_at](const SymbolValues& values) -> Result<Graph> {
      return at(values);
    };
    const HintedPartitionAt cut = [at = fault.graph_at, target = target_](
                                      const SymbolValues& values,
                                      const std::shared_ptr<const RangeHints>& hints) {
      Graph graph = at(values);
      graph.hints = hints;
      return partition(std::move(graph), target);
    };
    if (fault.symbols.empty()) {
      TRY_ASSIGN(made.partition, cut({}, nullptr));
      return made;
    }
    TRY_ASSIGN(NetworkRanges ranges, partition_over(fault.symbols, cut));
    made.partition = ranges.ranges.front().largest;
    made.ranges = std::make_shared<const NetworkRanges>(std::move(ranges));
    return made;
  }

  /// An error, or a module whose summary says whether kernels were replaced.
  Result<ModuleSummary> build(bool check) const {
    TRY_ASSIGN(const Phase made, phase());
    return build_module(
        std::span(&made, 1), target_, nullptr, {.work_dir = "", .check = check}, path_);
  }
  Result<Agreement> verify() const {
    TRY_ASSIGN(const Phase made, phase());
    return verify_module(path_, std::span(&made, 1), target_, 2);
  }

  // Every machine makes the same modules of it.
  const Target target_ = *parse_target("llvm -mcpu=haswell", 2);
  const TemporaryFolder folder_ = *TemporaryFolder::make("");
  const std::string path_ = folder_.path("module.so");
};

TEST_P(Mends, WithAllOfThemModulesAreRight) {
  const Result<ModuleSummary> built = build(true);
  ASSERT_TRUE(built.ok()) << built.error().message();
  EXPECT_EQ(built->replaced_kernels, 0);
  EXPECT_GT(built->checked_kernels, 0);
  const Result<Agreement> found = verify();
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_TRUE(found->ok()) << found->wrong << " " << found->error << " " << found->where;
}

TEST_P(Mends, WhatIsWrongWithoutOneIsFoundByVerifying) {
  {
    const WithoutMend fault(GetParam().mend);
    const Result<ModuleSummary> built = build(false);
    ASSERT_TRUE(built.ok()) << built.error().message();
  }
  const Result<Agreement> found = verify();
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_FALSE(found->ok()) << found->error;
}

// The verifier knows nothing of how the module was made: the fault is in it, too.
TEST_P(Mends, WhatIsWrongWithoutOneIsFoundByVerifyingWithTheFaultInIt) {
  const WithoutMend fault(GetParam().mend);
  const Result<ModuleSummary> built = build(false);
  ASSERT_TRUE(built.ok()) << built.error().message();
  const Result<Agreement> found = verify();
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_FALSE(found->ok()) << found->error;
}

TEST_P(Mends, WhatIsWrongWithoutOneIsFoundWhenItIsCompiled) {
  {
    const WithoutMend fault(GetParam().mend);
    const Result<ModuleSummary> built = build(true);
    if (!built.ok()) {
      EXPECT_THAT(built.error().message(), testing::HasSubstr("kernel \""))
          << "it names the kernel";
      return;
    }
    // Kernels for a range may be made anew from more shapes instead.
    if (GetParam().symbols.empty()) {
      EXPECT_GT(built->replaced_kernels, 0);
    }
  }
  const Result<Agreement> found = verify();
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_TRUE(found->ok()) << found->wrong << " " << found->error << " " << found->where;
}

INSTANTIATE_TEST_SUITE_P(
    Faults,
    Mends,
    testing::Values(Fault{"PaddedTileStart", Mend::kPaddedTileStart, joined_products, {}},
                    Fault{"OuterGuards", Mend::kOuterGuards, window_places, {}},
                    Fault{"KnownExtents", Mend::kKnownExtents, strided, {{"n", 301, 1500, {}}}},
                    Fault{
                        "BoxesOfConstants", Mend::kBoxesOfConstants, positions, {{"n", 1, 64, {}}}},
                    Fault{"CheckedExtents", Mend::kCheckedExtents, pooled, {{"n", 63, 191, {}}}}),
    [](const auto& fault) { return fault.param.name; });

}  // namespace
}  // namespace pruner
