#include <gmock/gmock.h>

#include "golden.h"
#include "graph/small_graph.h"

namespace pruner {
namespace {

using testing::HasSubstr;
using V = std::vector<double>;

// Computes CumSum or CumProd along the middle dimension by its definition.
Tensor naive_scan(const Tensor& x, bool product, bool exclusive, bool reverse) {
  const int64_t n = x.shape()[1], inner = x.shape()[2];
  Tensor out(x.dtype(), x.shape());
  for (int64_t row = 0; row < x.num_elements() / n; ++row) {
    const int64_t first = row / inner * n * inner + row % inner;
    double sum = product ? 1 : 0;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = first + (reverse ? n - 1 - i : i) * inner;
      if (exclusive) out.set(at, sum);
      sum = product ? sum * x.get(at) : sum + x.get(at);
      if (!exclusive) out.set(at, sum);
    }
  }
  return out;
}

// Lengths on both sides of a block, of a block of blocks, and of neither.
TEST(Scan, IsItsDefinition) {
  for (const int64_t n : {1, 2, 63, 64, 65, 96, 100, 2049, 2100}) {
    Tensor x = waves({2, n, 3});
    for (int64_t i = 0; i < x.num_elements(); ++i) x.set(i, 1 + 0.02 * x.get(i));
    for (int flags = 0; flags < 8; ++flags) {
      const bool product = flags & 1, exclusive = flags & 2, reverse = flags & 4;
      if (product && n > 200) continue;
      SCOPED_TRACE(std::to_string(n) + " " + std::to_string(flags));
      expect_near(run_op(product ? "CumProd" : "CumSum",
                         {x, Operand::weight(integers({}, {-2}))},
                         {{"exclusive", int64_t{exclusive}}, {"reverse", int64_t{reverse}}}),
                  naive_scan(x, product, exclusive, reverse),
                  1e-4);
    }
  }
}

TEST(Scan, OfIntegersIsExact) {
  const Tensor x = integers({5}, {1, -2, 3, 1 << 30, 1 << 30}, DType::kInt32);
  EXPECT_EQ(values_of(run_op("CumSum", {x, Ints{0}})), (V{1, -1, 2, (1 << 30) + 2, -2147483646.0}));
}

TEST(Scan, TakesItsAxisAtRunTime) {
  const Tensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  for (const char* op : {"CumSum", "CumProd"}) {
    for (const int64_t axis : {-2, -1, 0, 1})
      EXPECT_EQ(values_of(run_op(op, {x, integers({}, {axis})})),
                values_of(run_op(op, {x, Operand::weight(integers({}, {axis}))})));
  }
  EXPECT_EQ(values_of(run_op("CumSum", {floats({2}, {1, 2}), integers({1}, {-1})})), (V{1, 3}));
}

TEST(Scan, NamesWhatDoesNotFit) {
  const Tensor x = floats({2}, {1, 2});
  EXPECT_THAT(refusal("CumSum", {x, Ints{1}}), HasSubstr("axis 1 is not one of"));
  EXPECT_THAT(refusal("CumSum", {x, integers({2}, {0, 0})}), HasSubstr("axis has 2 elements"));
  EXPECT_THAT(refusal("CumSum", {floats({}, {1}), integers({}, {0})}),
              HasSubstr("axis 0 is not one of the input's 0 dimensions"));
  NetworkBuilder b("scan");
  const ValueId data = b.input("x", {2, 2}, DType::kFloat32);
  const ValueId axis = b.input("axis", {}, DType::kInt64);
  const Graph graph = b.finish({{b.node("CumSum", {data, axis}), "y"}});
  const Result<std::vector<Tensor>> made =
      interpret_graph(graph, std::vector{floats({2, 2}, {1, 2, 3, 4}), integers({}, {2})});
  EXPECT_ERROR(made, "\"axis\" holds the index 2, expected one in [-2, 1]");
}

}  // namespace
}  // namespace pruner
