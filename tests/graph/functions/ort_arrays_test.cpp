#include "graph/small_graph.h"

namespace pruner {
namespace {

using V = std::vector<double>;

const double kInfinity = std::numeric_limits<double>::infinity();

Tensor run(const std::string& op,
           const std::vector<Operand>& operands,
           Attributes attributes = {}) {
  return run_op("com.microsoft::" + op, operands, std::move(attributes));
}

TEST(OrtTrilu, KeepsTheUpperPartUnlessToldOtherwise) {
  const Tensor x = floats({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(values_of(run("Trilu", {x})), (V{1, 2, 0, 4}));
  EXPECT_EQ(
      values_of(run("Trilu", {x, Operand::weight(integers({}, {-1}))}, {{"upper", int64_t{0}}})),
      (V{0, 0, 3, 0}));
}

// The value may come at run time.
TEST(OrtPad, TakesARowOfPadsAndAnyValue) {
  const Tensor x = floats({2}, {1, 2});
  const Operand pads = Operand::weight(integers({1, 2}, {-1, 1}));
  for (const Operand& value : {Operand(floats({1}, {7})), Operand::weight(floats({}, {7}))})
    EXPECT_EQ(values_of(run("Pad", {x, pads, value})), (V{2, 7}));
  EXPECT_EQ(values_of(run("Pad", {x, Ints{1, 1}}, {{"mode", std::string("reflect")}})),
            (V{2, 1, 2, 1}));
  EXPECT_EQ(refusal("com.microsoft::Pad", {x, Ints{1, 1}}, {{"mode", std::string("wrap")}}),
            "node \"it\": mode is \"wrap\", expected constant, edge or reflect");
  EXPECT_EQ(refusal("com.microsoft::Pad", {x, integers({2}, {1, 1})}),
            "node \"it\": pads is computed at run time; it has to be a constant");
}

TEST(ExpandDims, CountsTheAxisOfTheResult) {
  const Tensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto shape = [&](int64_t axis) {
    return run("ExpandDims", {x, Operand::weight(integers({}, {axis}, DType::kInt32))}).shape();
  };
  EXPECT_EQ(shape(0), (Ints{1, 2, 3}));
  EXPECT_EQ(shape(-1), (Ints{2, 3, 1}));
}

TEST(CDist, IsOfEachRowToEachRow) {
  const Tensor a = floats({2, 2}, {0, 0, 3, 4}), b = floats({1, 2}, {3, 4});
  EXPECT_EQ(values_of(run("CDist", {a, b})), (V{25, 0}));
  EXPECT_EQ(values_of(run("CDist", {a, b}, {{"metric", std::string("euclidean")}})), (V{5, 0}));
  EXPECT_EQ(refusal("com.microsoft::CDist", {a, b}, {{"metric", std::string("cosine")}}),
            "node \"it\": metric is \"cosine\", expected euclidean or sqeuclidean");
}

TEST(NGramRepeatBlock, BlocksWhatWouldRepeatTokens) {
  const Tensor ids = integers({2, 5}, {1, 2, 3, 1, 2, 0, 0, 0, 0, 0}),
               scores = floats({2, 4}, V(8, 1));
  const auto blocked = [&](int64_t n) {
    return values_of(run("NGramRepeatBlock", {ids, scores}, {{"ngram_size", n}}));
  };
  EXPECT_EQ(blocked(1), (V{1, -kInfinity, -kInfinity, -kInfinity, -kInfinity, 1, 1, 1}));
  EXPECT_EQ(blocked(3), (V{1, 1, 1, -kInfinity, -kInfinity, 1, 1, 1}));
  EXPECT_EQ(blocked(6), V(8, 1));
  EXPECT_EQ(refusal("com.microsoft::NGramRepeatBlock", {ids, scores}),
            "node \"it\": ngram_size is 0, expected 1 or more");
}

TEST(OrtUnique, KeepsTheOrderOfValues) {
  const std::vector<Tensor> found =
      run_outputs("com.microsoft::Unique", {Operand::weight(floats({6}, {2, 1, 1, 3, 4, 3}))}, 3);
  EXPECT_EQ(values_of(found[0]), (V{2, 1, 3, 4}));
  EXPECT_EQ(values_of(found[1]), (V{0, 1, 1, 2, 3, 2}));
  EXPECT_EQ(values_of(found[2]), (V{1, 2, 2, 1}));
}

}  // namespace
}  // namespace pruner
