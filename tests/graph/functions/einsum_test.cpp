#include "graph/small_graph.h"

namespace pruner {
namespace {

using V = std::vector<double>;

Tensor einsum(const std::string& equation, const std::vector<Operand>& operands) {
  return run_op("Einsum", operands, {{"equation", equation}});
}

const Tensor kA = floats({2, 3}, {1, 2, 3, 4, 5, 6});
const Tensor kSquare = floats({2, 2}, {1, 2, 3, 4});

TEST(Einsum, OfOneOperandTransposesSumsAndTakesDiagonals) {
  EXPECT_EQ(values_of(einsum("ij->ji", {kA})), (V{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(values_of(einsum("ij -> i", {kA})), (V{6, 15}));
  EXPECT_EQ(values_of(einsum("ij->", {kA})), (V{21}));
  EXPECT_EQ(values_of(einsum("ii->i", {kSquare})), (V{1, 4}));
  EXPECT_EQ(values_of(einsum("ii", {kSquare})), (V{5}));
  EXPECT_EQ(values_of(einsum("b a", {kA})), (V{1, 4, 2, 5, 3, 6}));  // alphabetical
  const Tensor cube = floats({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(values_of(einsum("iii->i", {cube})), (V{1, 8}));
  EXPECT_EQ(values_of(einsum("...ii->...i", {cube})), (V{1, 4, 5, 8}));
}

TEST(Einsum, OfTwoOperandsIsAMatmul) {
  EXPECT_EQ(values_of(einsum("ij,jk", {kSquare, kA})), (V{9, 12, 15, 19, 26, 33}));
  EXPECT_EQ(values_of(einsum("i,i->", {floats({2}, {1, 2}), floats({2}, {3, 5})})), (V{13}));
  EXPECT_EQ(values_of(einsum("i,j->ij", {floats({2}, {1, 2}), floats({2}, {3, 5})})),
            (V{3, 5, 6, 10}));
  EXPECT_EQ(values_of(einsum("ij,ij->ij", {kA, kA})), (V{1, 4, 9, 16, 25, 36}));
  // A sum over what only one has; a dimension of one element broadcasts.
  EXPECT_EQ(values_of(einsum("ij,k->i", {kA, floats({2}, {1, 2})})), (V{18, 45}));
  EXPECT_EQ(values_of(einsum("ij,ij->i", {kA, floats({1, 3}, {1, 0, 2})})), (V{7, 16}));
  NetworkBuilder b("attention");
  const ValueId q = b.input("q", {2, 5, 3, 4}, DType::kFloat32);
  const ValueId k = b.input("k", {2, 6, 3, 4}, DType::kFloat32);
  const ValueId y = b.node("Einsum", {q, k}, {{"equation", std::string("bqhd,bkhd->bhqk")}});
  const Graph graph = b.finish({{y, "y"}});
  EXPECT_EQ(graph[y].shape, (Ints{2, 3, 5, 6}));
  EXPECT_NE(operators(graph).find("MatMul"), std::string::npos);
}

TEST(Einsum, EllipsesBroadcastFromTheLast) {
  const Tensor x = floats({2, 1, 2}, {1, 2, 3, 4}), y = floats({2, 2}, {1, 10, 100, 1000});
  EXPECT_EQ(values_of(einsum("...j,...j->...", {x, y})), (V{21, 2100, 43, 4300}));
  EXPECT_EQ(values_of(einsum("...j,...j", {x, y})), (V{21, 2100, 43, 4300}));
}

TEST(Einsum, OfMoreOperandsGoesTwoByTwo) {
  EXPECT_EQ(values_of(einsum("i,ij,j->", {floats({2}, {1, 2}), kA, floats({3}, {1, 0, 1})})),
            (V{24}));
}

TEST(Einsum, RefusesWhatDoesNotFit) {
  EXPECT_EQ(refusal("Einsum", {kA}, {{"equation", std::string("ijk->i")}}),
            "node \"it\": the term \"ijk\" does not fit 2x3");
  EXPECT_EQ(refusal("Einsum", {kA}, {{"equation", std::string("ij->k")}}),
            "node \"it\": dimension k of the result is in no operand, or twice there");
  EXPECT_EQ(
      refusal("Einsum", {kA}, {{"equation", std::string("i1->i")}}),
      "node \"it\": the term \"i1\" of the equation is made of more than letters and one ...");
  EXPECT_EQ(refusal("Einsum", {kA, kA}, {{"equation", std::string("ij,jk->ik")}}),
            "node \"it\": dimension j is 3 and 2");
}

}  // namespace
}  // namespace pruner
