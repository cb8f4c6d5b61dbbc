#include "ansor/dag_text.h"

#include "golden.h"

namespace pruner::ansor {
namespace {

Result<ComputeDag> dag(const std::vector<std::string>& lines, std::vector<int64_t> shape) {
  return dag_from_text(lines, shape);
}

TEST(DagFromText, InfersTheExtentsThatTheTextLeavesOut) {
  const auto conv = dag(
      {"p0 = PLACEHOLDER [1, 2, 8, 8, 3]",
       "data_pad(i0, i1, i2, i3, i4) = tir.if_then_else(((((i2 >= 1) && (i2 < 9)) && (i3 >= 1)) && "
       "(i3 < 9)), p0[i0, i1, (i2 - 1), (i3 - 1), i4], 0f)",
       "p1 = PLACEHOLDER [4, 2, 3, 3, 3, 5]",
       "conv(n, oc, oh, ow, ob) += (data_pad[n, floordiv(ic, 3), (oh + kh), (ow + kw), "
       "floormod(ic, 3)]*p1[oc, floordiv(ic, 3), kh, kw, floormod(ic, 3), ob])",
       "T_add(a, b, c, d, e) = (conv[a, b, c, d, e] + 1f)",
       "T_add(a, b, c, d, e) = max(T_add[a, b, c, d, e], -3.40282e+38f)"},
      {1, 4, 8, 8, 5});
  ASSERT_TRUE(conv.ok()) << conv.error().message();
  EXPECT_EQ((*conv)[StageId{1}].shape(), (std::vector<int64_t>{1, 2, 10, 10, 3}));
  const Stage& stage = (*conv)[StageId{3}];
  EXPECT_EQ(stage.combiner, Combiner::kSum);
  ASSERT_EQ(stage.reduce_axes.size(), 3u);
  EXPECT_EQ(stage.reduce_axes[0].name, "ic");
  EXPECT_EQ(stage.reduce_axes[0].extent, 6);
  EXPECT_EQ(stage.reduce_axes[1].extent, 3);
  EXPECT_EQ((*conv)[StageId{5}].name, "T_add_1");
}

TEST(DagFromText, ReadsAWindowOverAnInput) {
  const auto pool = dag({"p0 = PLACEHOLDER [1, 7, 7]",
                         "sum(a, b, c) += p0[a, ((b*7) + rv0), ((c*7) + rv1)]",
                         "avg(a, b, c) = (sum[a, b, c]/float32((select((bool)1, 49, 50))))"},
                        {1, 1, 1});
  ASSERT_TRUE(pool.ok()) << pool.error().message();
  EXPECT_EQ((*pool)[StageId{1}].reduce_size(), 49);
}

TEST(DagFromText, SaysWhatItCannotTell) {
  EXPECT_ERROR(dag({"p0 = PLACEHOLDER [8, 8]",
                    "pad(a, b) = p0[a, b]",
                    "pool(a, b) max= pad[((a*2) + rv0), b]"},
                   {4, 8}),
               "pool: the text does not tell the extent of rv0");
  EXPECT_ERROR(dag({"p0 = PLACEHOLDER [8]", "B(i) = p0[j]"}, {8}), "unknown names");
  EXPECT_ERROR(dag({"p0 = PLACEHOLDER [8]", "B(i) p0[i]"}, {8}), "no = or reduction");
  EXPECT_ERROR(dag({"p0 = PLACEHOLDER [8]", "B.v0(i) = p0[i]"}, {8}), "more than one output");
  EXPECT_ERROR(dag({"p0 = PLACEHOLDER [8]", "B(i) = p0[i]"}, {8, 8}), "has other dims");
  EXPECT_ERROR(dag({"p0 = PLACEHOLDER [8]"}, {8}), "no output");
  EXPECT_ERROR(dag({"p0 = PLACEHOLDER [x]"}, {8}), "p0 = PLACEHOLDER");
  EXPECT_ERROR(dag({}, {8}), "no output");
}

}  // namespace
}  // namespace pruner::ansor
