#include "tensor/constant_part.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "support/rng.h"
#include "tensor/interpreter.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

using Parts = std::map<std::string, ConstantPart>;

Parts parts_of(const ComputeDag& dag) {
  const ConstantParts parts = constant_parts(dag);
  Parts named;
  for (size_t i = 0; i < parts.size(); ++i)
    if (parts.at(i)) named[dag.stages[i].name] = *parts.at(i);
  return named;
}

Parts parts_of_operator(const std::string& op) {
  const Result<ComputeDag> dag = parse_operator(op);
  EXPECT_TRUE(dag.ok()) << op;
  return dag.ok() ? parts_of(*dag) : Parts();
}

// A stage of 8 x 8 over a tensor "x" of as many, with the body that `body` makes of i, j and x[i,
// j].
template <typename Body>
Parts parts_of_body(const Body& body) {
  ComputeDag dag;
  dag.stages.resize(2);
  Stage& x = dag.stages[0];
  x.name = "x";
  x.axes = {{"i", 8}, {"j", 8}};
  Stage& y = dag.stages[1];
  y.name = "y";
  y.axes = x.axes;
  const Expr i = make_var(VarId{0}, "i"), j = make_var(VarId{1}, "j");
  y.body = body(i, j, load(StageId{0}, {i, j}, DType::kFloat32));
  return parts_of(dag);
}

// i and j in which the part lies.
Affine beyond(int64_t of_i, int64_t of_j, int64_t constant) {
  Affine form{{}, constant};
  if (of_i != 0) form.terms.emplace_back(VarId{0}, of_i);
  if (of_j != 0) form.terms.emplace_back(VarId{1}, of_j);
  return form;
}

TEST(ConstantPart, IsHalfOfWhatCausalAttentionMakesOfScores) {
  // 40 keys, 33 queries: query m sees keys up to m + 7. Iterators: batch, head, m, n.
  const Parts parts = parts_of_operator("attention 1 2 33 40 8 causal=1");
  const Affine hidden{{{VarId{2}, -1}, {VarId{3}, 1}}, -7};
  for (const auto& [name, value] : std::map<std::string, double>{{"T_masked", -HUGE_VAL},
                                                                 {"T_softmax_maxelem", -HUGE_VAL},
                                                                 {"T_softmax_exp", 0},
                                                                 {"T_softmax_expsum", 0}}) {
    ASSERT_TRUE(parts.contains(name)) << name;
    EXPECT_EQ(parts.at(name).beyond, hidden) << name;
    EXPECT_EQ(parts.at(name).value, value) << name;
  }
  // The product's iterators: batch, head, m, element, and n, over which it sums.
  ASSERT_TRUE(parts.contains("T_weighed"));
  EXPECT_EQ(parts.at("T_weighed").beyond, (Affine{{{VarId{2}, -1}, {VarId{4}, 1}}, -7}));
  EXPECT_FALSE(parts.contains("T_scores"));     // computed from what is there
  EXPECT_FALSE(parts.contains("T_attention"));  // no row of it is hidden
  EXPECT_TRUE(parts_of_operator("attention 1 2 33 40 8").empty());
}

TEST(ConstantPart, ReadsEveryComparison) {
  const Expr zero = float_imm(0);
  const auto masked = [&](BinaryOp op, bool shown_first) {
    return parts_of_body([&](const Expr& i, const Expr& j, const Expr& x) {
      const Expr condition = binary(op, j, i);
      return shown_first ? select(condition, x, zero) : select(condition, zero, x);
    });
  };
  const auto expect = [&](BinaryOp op, bool shown_first, const Affine& form) {
    const Parts parts = masked(op, shown_first);
    ASSERT_TRUE(parts.contains("y"));
    EXPECT_EQ(parts.at("y").beyond, form);
    EXPECT_EQ(parts.at("y").value, 0);
  };
  expect(BinaryOp::kLe, true, beyond(-1, 1, 0));
  expect(BinaryOp::kLt, true, beyond(-1, 1, 1));
  expect(BinaryOp::kGe, true, beyond(1, -1, 0));
  expect(BinaryOp::kGt, true, beyond(1, -1, 1));
  expect(BinaryOp::kGt, false, beyond(-1, 1, 0));
  expect(BinaryOp::kGe, false, beyond(-1, 1, 1));
  EXPECT_TRUE(masked(BinaryOp::kEq, true).empty());
}

TEST(ConstantPart, IsWhatStaysKnownBesideAnyOtherValue) {
  const Expr infinity = float_imm(HUGE_VAL);
  const auto of = [&](const Expr& hidden, const auto& made) {
    return parts_of_body([&](const Expr& i, const Expr& j, const Expr& x) {
      return made(select(i >= j, x, hidden), x);
    });
  };
  const auto value = [&](const Parts& parts) { return parts.empty() ? NAN : parts.at("y").value; };
  const auto sum = [](const Expr& a, const Expr& x) { return a + x; };
  const auto difference = [](const Expr& a, const Expr& x) { return x - a; };
  const auto product = [](const Expr& a, const Expr& x) { return x * a; };
  EXPECT_EQ(value(of(infinity, sum)), HUGE_VAL);
  EXPECT_EQ(value(of(infinity, difference)), -HUGE_VAL);
  EXPECT_EQ(value(of(float_imm(0), product)), 0);
  EXPECT_EQ(value(of(float_imm(3), [](const Expr& a, const Expr&) { return a * a - a; })), 6);
  EXPECT_TRUE(of(float_imm(0), sum).empty());
  EXPECT_TRUE(of(float_imm(1), product).empty());
  EXPECT_TRUE(of(infinity, product).empty());
}

// A product's terms beyond a select for bounds are zeros; of a maximum, zeros are no neutral ones.
TEST(ConstantPart, OfAReductionIsItsNeutralElement) {
  for (const Combiner combiner : {Combiner::kSum, Combiner::kMax}) {
    ComputeDag dag;
    dag.stages.resize(2);
    dag.stages[0].name = "x";
    dag.stages[0].axes = {{"k", 8}};
    Stage& y = dag.stages[1];
    y.name = "y";
    y.axes = {{"i", 8}};
    y.reduce_axes = {{"k", 8}};
    y.combiner = combiner;
    const Expr i = make_var(VarId{0}, "i"), k = make_var(VarId{1}, "k");
    y.body = select(k < i, load(StageId{0}, {k}, DType::kFloat32), float_imm(0));
    EXPECT_EQ(parts_of(dag).contains("y"), combiner == Combiner::kSum);
  }
}

}  // namespace
}  // namespace pruner
