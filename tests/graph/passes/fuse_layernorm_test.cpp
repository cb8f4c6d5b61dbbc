#include "graph/small_graph.h"

namespace pruner {
namespace {

struct Spelling {
  bool square_by_mul = false, two_differences = false, swapped = false, other_axis = false;
};

Graph layer_norm(const Spelling& s) {
  NetworkBuilder b("layernorm");
  const ValueId x = b.input("x", {2, 3, 8}, DType::kFloat32);
  const auto mean = [&](ValueId v) {
    return b.node("ReduceMean", {v, b.integers("axes", {s.other_axis ? 1 : -1})});
  };
  const ValueId d = b.node("Sub", {x, mean(x)});
  const ValueId e = s.two_differences ? b.node("Sub", {x, mean(x)}) : d;
  const ValueId square = s.square_by_mul ? b.node("Mul", {e, e}) : b.node("Pow", {e, b.scalar(2)});
  const ValueId variance = b.node("Add", {mean(square), b.scalar(1e-3)});
  const ValueId unit = b.node("Div", {d, b.node("Sqrt", {variance})});
  const ValueId scale = b.random("scale", {8}, 1, 0.5), bias = b.random("bias", {8}, 0, 1);
  const ValueId scaled = s.swapped ? b.node("Mul", {scale, unit}) : b.node("Mul", {unit, scale});
  return b.finish(
      {{s.swapped ? b.node("Add", {bias, scaled}) : b.node("Add", {scaled, bias}), "y"}});
}

TEST(FuseLayernorm, KnowsItsSpellings) {
  for (const Spelling& s : {Spelling{},
                            Spelling{.square_by_mul = true},
                            Spelling{.two_differences = true},
                            Spelling{.swapped = true}}) {
    const Graph graph = layer_norm(s);
    EXPECT_EQ(operators(fuse_layernorm(graph)), "LayerNormalization");
    run_graph(graph, {waves({2, 3, 8})});
  }
}

enum class Inverse { kDiv, kReciprocal, kOneOver };

Graph rms_norm(Inverse inverse, bool swapped) {
  NetworkBuilder b("rms_norm");
  const ValueId x = b.input("x", {2, 3, 8}, DType::kFloat32);
  const ValueId mean = b.node("ReduceMean", {b.node("Mul", {x, x}), b.integers("axes", {-1})});
  const ValueId root = b.node("Sqrt", {b.node("Add", {mean, b.scalar(1e-3)})});
  const auto unit = [&] {
    if (inverse == Inverse::kDiv) return b.node("Div", {x, root});
    const ValueId factor = inverse == Inverse::kReciprocal ? b.node("Reciprocal", {root})
                                                           : b.node("Div", {b.scalar(1), root});
    return swapped ? b.node("Mul", {factor, x}) : b.node("Mul", {x, factor});
  }();
  const ValueId scale = b.random("scale", {8}, 1, 0.5);
  return b.finish({{swapped ? b.node("Mul", {scale, unit}) : b.node("Mul", {unit, scale}), "y"}});
}

TEST(FuseLayernorm, KnowsRmsNormsSpellings) {
  for (const Inverse inverse : {Inverse::kDiv, Inverse::kReciprocal, Inverse::kOneOver}) {
    for (const bool swapped : {false, true}) {
      const Graph graph = rms_norm(inverse, swapped);
      EXPECT_EQ(operators(fuse_layernorm(graph)), "RMSNormalization");
      run_graph(graph, {waves({2, 3, 8})});
    }
  }
}

TEST(FuseLayernorm, LeavesOtherAxesAlone) {
  const Graph graph = layer_norm({.other_axis = true});
  EXPECT_EQ(operators(fuse_layernorm(graph)), operators(graph));
  run_graph(graph, {waves({2, 3, 8})});
}

}  // namespace
}  // namespace pruner
