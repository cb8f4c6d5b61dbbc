#include "graph/small_graph.h"

namespace pruner {
namespace {

using V = std::vector<double>;

// 2 and 3 alone, then the pair (5, 6).
Attributes pool(const char* mode, int64_t longest, int64_t skips) {
  return {{"mode", std::string(mode)},
          {"min_gram_length", int64_t{1}},
          {"max_gram_length", longest},
          {"max_skip_count", skips},
          {"ngram_counts", Ints{0, 2}},
          {"ngram_indexes", Ints{2, 0, 1}},
          {"pool_int64s", Ints{2, 3, 5, 6}},
          {"weights", V{2, 3, 5}}};
}

TEST(TfIdfVectorizer, CountsAndWeighsNGrams) {
  const Tensor x = integers({6}, {2, 5, 6, 5, 3, 2});
  EXPECT_EQ(values_of(run_op("TfIdfVectorizer", {x}, pool("TF", 2, 0))), (V{1, 1, 2}));
  EXPECT_EQ(values_of(run_op("TfIdfVectorizer", {x}, pool("TF", 1, 0))), (V{1, 0, 2}));
  EXPECT_EQ(values_of(run_op("TfIdfVectorizer", {x}, pool("IDF", 2, 0))), (V{3, 5, 2}));
  EXPECT_EQ(values_of(run_op("TfIdfVectorizer", {x}, pool("TFIDF", 2, 0))), (V{3, 5, 4}));
  // With one token between them too.
  const Tensor rows = integers({2, 3}, {5, 1, 6, 5, 6, 6}, DType::kInt32);
  EXPECT_EQ(values_of(run_op("TfIdfVectorizer", {rows}, pool("TF", 2, 1))), (V{0, 1, 0, 0, 2, 0}));
}

TEST(TfIdfVectorizer, RefusesStrings) {
  EXPECT_EQ(refusal("TfIdfVectorizer",
                    {integers({1}, {1})},
                    {{"pool_strings", std::vector<std::string>{"a"}}}),
            "node \"it\": n-grams of strings are not supported; those of integers are");
}

}  // namespace
}  // namespace pruner
