#include "graph/functions/plain_attention.h"

namespace pruner {
namespace {

Tensor truths(std::vector<int64_t> shape, Ints values) {
  return integers(std::move(shape), std::move(values), DType::kBool);
}

TEST(Attention, IsTheFormulaForHeadsThatAreApart) {
  const Tensor q = waves({2, 2, 3, 4}), k = waves({2, 2, 5, 4}, 1), v = waves({2, 2, 5, 6}, 2);
  expect_near(run_op("Attention", {q, k, v}), plain_attention(q, k, v));
  expect_near(run_op("Attention", {q, k, v}, {{"scale", 0.25}}), plain_attention(q, k, v, 0.25));
}

TEST(Attention, PartsHeadsAndSharesKeysAmongThem) {
  const Tensor q = waves({1, 3, 16}), k = waves({1, 5, 8}, 1), v = waves({1, 5, 12}, 2);
  const Tensor found =
      run_op("Attention", {q, k, v}, {{"q_num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}});
  expect_near(
      found,
      joined_heads(plain_attention(parted_heads(q, 4), parted_heads(k, 2), parted_heads(v, 2))));
}

TEST(Attention, CountsTheWindowFromThePast) {
  const Tensor q = waves({1, 2, 2, 4}), k = waves({1, 2, 2, 4}, 1), v = waves({1, 2, 2, 4}, 2);
  const Tensor past_k = waves({1, 2, 3, 4}, 3), past_v = waves({1, 2, 3, 4}, 4);
  const std::vector<Tensor> found =
      run_outputs("Attention",
                  {q, k, v, Operand::none(), past_k, past_v},
                  3,
                  {{"is_causal", int64_t{1}}, {"left_window_size", int64_t{2}}});
  const Tensor all_k = joined_positions(past_k, k), all_v = joined_positions(past_v, v);
  expect_near(found[1], all_k);
  expect_near(found[2], all_v);
  const auto rule = [](int64_t, int64_t, int64_t i, int64_t j, double score) {
    return j <= i + 3 && j >= i + 1 ? score : kHidden;
  };
  expect_near(found[0], plain_attention(q, all_k, all_v, 0, rule));
}

TEST(Attention, GivesZeroWhereAQuerySeesNothing) {
  const Tensor q = waves({1, 1, 2, 4}), k = waves({1, 1, 3, 4}, 1), v = waves({1, 1, 3, 4}, 2);
  const Tensor mask = truths({2, 3}, {0, 0, 0, 1, 0, 1});
  const std::vector<Tensor> found =
      run_outputs("Attention", {q, k, v, mask}, 4, {{"qk_matmul_output_mode", int64_t{3}}});
  const auto rule = [](int64_t, int64_t, int64_t i, int64_t j, double score) {
    return i == 1 && j != 1 ? score : kHidden;
  };
  expect_near(found[0], plain_attention(q, k, v, 0, rule));
  for (int64_t j = 0; j < 3; ++j) EXPECT_EQ(found[3].get(j), 0);
  EXPECT_NEAR(found[3].get(3) + found[3].get(5), 1, 1e-6);
}

TEST(Attention, AddsAMaskOfFloatsAndHidesTheKeysBehindIt) {
  const Tensor q = waves({1, 2, 2, 4}), k = waves({1, 2, 4, 4}, 1), v = waves({1, 2, 4, 4}, 2);
  const Tensor mask = waves({2, 3}, 5);
  const auto rule = [&](int64_t, int64_t, int64_t i, int64_t j, double score) {
    return j < 3 ? 2 * std::tanh(score / 2) + mask.get(i * 3 + j) : kHidden;
  };
  expect_near(run_op("Attention", {q, k, v, mask}, {{"softcap", 2.0}}),
              plain_attention(q, k, v, 0, rule));
}

TEST(Attention, KnowsHowManyKeysOfEachTextAreValid) {
  const Tensor q = waves({2, 1, 2, 4}), k = waves({2, 1, 4, 4}, 1), v = waves({2, 1, 4, 4}, 2);
  const Tensor valid = integers({2}, {4, 1});
  const auto rule = [&](int64_t b, int64_t, int64_t i, int64_t j, double score) {
    return j <= i + (b == 0 ? 4 : 1) - 2 ? score : kHidden;  // the second text's first query: none
  };
  const Operand none = Operand::none();
  expect_near(run_op("Attention", {q, k, v, none, none, none, valid}, {{"is_causal", int64_t{1}}}),
              plain_attention(q, k, v, 0, rule));
}

TEST(Attention, ShowsScoresOnTheWay) {
  const Tensor q = floats({1, 1, 1, 1}, {2}), k = floats({1, 1, 2, 1}, {1, 3});
  const auto scores = [&](int64_t mode) {
    return values_of(run_outputs("Attention",
                                 {q, k, k, truths({1, 2}, {1, 0})},
                                 4,
                                 {{"qk_matmul_output_mode", mode}, {"softcap", 4.0}})[3]);
  };
  EXPECT_EQ(scores(0), (std::vector<double>{2, 6}));
  EXPECT_NEAR(scores(1)[1], 4 * std::tanh(1.5), 1e-5);
  EXPECT_EQ(scores(2)[1], kHidden);
  EXPECT_EQ(scores(3), (std::vector<double>{1, 0}));
}

TEST(Attention, ScalesFactorsOfHalvesThatWouldOverflow) {
  Tensor q(DType::kFloat16, {1, 1, 1, 1}), k(DType::kFloat16, {1, 1, 2, 1});
  q.set(0, 1000);
  k.set(0, 1000);
  k.set(1, 0);
  EXPECT_EQ(values_of(run_op("Attention", {q, k, k}, {{"scale", 1e-3}})),
            (std::vector<double>{1000}));
}

TEST(Attention, SaysWhatDoesNotFit) {
  const Tensor q = waves({1, 2, 6}), x = waves({1, 2, 2, 4});
  EXPECT_EQ(refusal("Attention", {q, q, q}, {{"q_num_heads", int64_t{4}}}),
            "node \"it\": 4 heads do not part 1x2x6, [batch, positions, heads * width]");
  EXPECT_EQ(refusal("Attention", {x, x, x, Operand::none(), x}),
            "node \"it\": past_key and past_value go together");
  EXPECT_EQ(
      refusal("Attention", {x, x, q}),
      "node \"it\": query, key and value have 4, 4 and 3 dimensions, expected 3 or 4, all as many");
  EXPECT_EQ(refusal("Attention", {x, x, x}, {{"softmax_precision", int64_t{7}}}),
            "node \"it\": softmax_precision is 7, expected 1 (float), 10 (float16), 11 (double) or "
            "16 (bfloat16)");
}

// This is the plain form of attention that networks/transformer.cpp writes.
TEST(Attention, IsOneKernelWhereItIsPlain) {
  NetworkBuilder b("attention");
  std::vector<ValueId> ids;
  for (const char* name : {"q", "k", "v"})
    ids.push_back(b.input(name, {1, 2, 8, 4}, DType::kFloat32));
  const Graph graph = b.finish({{b.node("Attention", ids, {{"is_causal", int64_t{1}}}), "out"}});
  EXPECT_EQ(operators(run_graph_passes(graph)), "FusedAttention");
}

}  // namespace
}  // namespace pruner
