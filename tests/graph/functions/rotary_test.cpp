#include "graph/small_graph.h"

namespace pruner {
namespace {

using V = std::vector<double>;

// A quarter turn takes (a, b) to (-b, a).
const Tensor kCosine = floats({3, 2}, {1, 1, 0, 0, -1, -1});
const Tensor kSine = floats({3, 2}, {0, 0, 1, 1, 0, 0});

TEST(RotaryEmbedding, TurnsHalvesOrNeighbours) {
  const Tensor x = floats({1, 1, 1, 4}, {1, 2, 3, 4});
  const Tensor at = integers({1, 1}, {1});
  EXPECT_EQ(values_of(run_op("RotaryEmbedding", {x, kCosine, kSine, at})), (V{-3, -4, 1, 2}));
  EXPECT_EQ(
      values_of(run_op("RotaryEmbedding", {x, kCosine, kSine, at}, {{"interleaved", int64_t{1}}})),
      (V{-2, 1, -4, 3}));
}

TEST(RotaryEmbedding, LeavesWhatIsBehindTheTurnedPart) {
  const Tensor x = floats({1, 2, 6}, {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6});
  const Tensor at = integers({1, 2}, {2, 1});
  const Attributes attributes = {{"num_heads", int64_t{1}}, {"rotary_embedding_dim", int64_t{4}}};
  EXPECT_EQ(values_of(run_op("RotaryEmbedding", {x, kCosine, kSine, at}, attributes)),
            (V{-1, -2, -3, -4, 5, 6, -3, -4, 1, 2, 5, 6}));
}

TEST(RotaryEmbedding, HasAnAngleForEachHeadsPosition) {
  const Tensor x = floats({1, 2, 4}, {1, 2, 3, 4, 1, 2, 3, 4});  // two heads of two
  const Tensor cosine = floats({1, 2, 1}, {1, 0}), sine = floats({1, 2, 1}, {0, 1});
  EXPECT_EQ(values_of(run_op("RotaryEmbedding", {x, cosine, sine}, {{"num_heads", int64_t{2}}})),
            (V{1, 2, 3, 4, -2, 1, -4, 3}));
  EXPECT_EQ(refusal("RotaryEmbedding", {x, cosine, sine}),
            "node \"it\": num_heads is 0, which does not part data of 1x2x4");
}

TEST(RotaryEmbeddingOfOnnxRuntime, CountsFromOnePosition) {
  const Tensor x = floats({1, 2, 4}, {1, 2, 3, 4, 1, 2, 3, 4});
  EXPECT_EQ(
      values_of(run_op("com.microsoft::RotaryEmbedding", {x, integers({1}, {1}), kCosine, kSine})),
      (V{-3, -4, 1, 2, -1, -2, -3, -4}));
}

}  // namespace
}  // namespace pruner
