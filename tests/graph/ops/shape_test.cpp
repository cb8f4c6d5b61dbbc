#include <gmock/gmock.h>

#include "graph/small_graph.h"

namespace pruner {
namespace {

using testing::HasSubstr;
using V = std::vector<double>;

TEST(Views, ChangeTheShapeAlone) {
  const Tensor x = waves({2, 3, 1, 4});
  const auto shape = [&](const std::string& op, std::vector<Operand> more, Attributes a = {}) {
    more.insert(more.begin(), x);
    const Tensor y = run_op(op, more, std::move(a));
    EXPECT_EQ(values_of(y), values_of(x)) << op;
    return y.shape();
  };
  EXPECT_EQ(shape("Reshape", {Ints{0, -1}}), (Ints{2, 12}));
  EXPECT_EQ(shape("Reshape", {Ints{4, 6}}), (Ints{4, 6}));
  EXPECT_EQ(shape("Flatten", {}), (Ints{2, 12}));
  EXPECT_EQ(shape("Flatten", {}, {{"axis", int64_t{0}}}), (Ints{1, 24}));
  EXPECT_EQ(shape("Squeeze", {}), (Ints{2, 3, 4}));
  EXPECT_EQ(shape("Squeeze", {Ints{-2}}), (Ints{2, 3, 4}));
  EXPECT_EQ(shape("Unsqueeze", {Ints{0, -1}}), (Ints{1, 2, 3, 1, 4, 1}));
  EXPECT_EQ(shape("Identity", {}), x.shape());
  EXPECT_EQ(shape("Dropout", {}), x.shape());
}

TEST(Views, NameWhatDoesNotFit) {
  const Tensor x = waves({2, 3});
  EXPECT_THAT(refusal("Reshape", {x, Ints{4, 2}}),
              HasSubstr("input 2x3 cannot be reshaped to 4x2"));
  EXPECT_THAT(refusal("Reshape", {x, Ints{-1, -1}}), HasSubstr("-1 twice"));
  EXPECT_THAT(refusal("Reshape", {x, integers({1}, {6})}),
              HasSubstr("shape is computed at run time"));
  EXPECT_THAT(refusal("Squeeze", {x, Ints{1}}), HasSubstr("axis 1 has extent 3, expected 1"));
}

// The value of a node that depends on nothing that is computed at run time.
Tensor known(const std::string& op, const std::vector<Operand>& operands, Attributes a = {}) {
  NetworkBuilder b("known");
  std::vector<ValueId> ids;
  for (const Operand& o : operands) {
    ids.push_back(o.constant ? b.constant("c", o.tensor)
                             : b.input("x", o.tensor.shape(), o.tensor.dtype()));
  }
  const ValueId out = b.node(op, ids, std::move(a));
  const Graph graph = b.finish({{out, "out"}});
  EXPECT_TRUE(graph[out].constant.has_value()) << op;
  return *graph[out].constant;
}

TEST(Constants, FollowFromShapesAndValues) {
  EXPECT_EQ(values_of(known("Shape", {waves({2, 3, 4})})), (V{2, 3, 4}));
  EXPECT_EQ(values_of(known("Shape", {waves({2, 3, 4})}, {{"start", int64_t{-2}}})), (V{3, 4}));
  EXPECT_EQ(values_of(known("Size", {waves({2, 3, 4})})), (V{24}));
  EXPECT_EQ(values_of(known("Constant", {}, {{"value", floats({2}, {1, 2})}})), (V{1, 2}));
  EXPECT_EQ(values_of(known("ConstantOfShape", {Ints{2, 2}}, {{"value", floats({1}, {7})}})),
            (V{7, 7, 7, 7}));
  EXPECT_EQ(known("ConstantOfShape", {Ints{3}}).dtype(), DType::kFloat32);
  const auto scalar = [](int64_t v) { return Operand::weight(integers({}, {v})); };
  EXPECT_EQ(values_of(known("Range", {scalar(7), scalar(1), scalar(-2)})), (V{7, 5, 3}));
}

}  // namespace
}  // namespace pruner
