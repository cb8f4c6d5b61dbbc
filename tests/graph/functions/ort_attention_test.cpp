#include "graph/functions/plain_attention.h"

namespace pruner {
namespace {

const Operand kNone = Operand::none();

Attributes heads(int64_t n) { return {{"num_heads", n}}; }

TEST(AttentionOfOnnxRuntime, ProjectsAndMasks) {
  const Tensor x = waves({2, 3, 4}), weights = waves({4, 24}, 1), bias = waves({24}, 2);
  const Tensor lengths = integers({2}, {3, 2}, DType::kInt32);
  const Tensor all = run_op("Add", {run_op("MatMul", {x, weights}), bias});
  const auto part = [&](int64_t i) {
    return parted_heads(run_op("Slice", {all, Ints{8 * i}, Ints{8 * i + 8}, Ints{2}}), 2);
  };
  const auto padded = [](int64_t b, int64_t, int64_t, int64_t j, double score) {
    return j < (b == 0 ? 3 : 2) ? score : score - 10000;
  };
  const Tensor expected = joined_heads(plain_attention(part(0), part(1), part(2), 0, padded));
  const auto found = [&](const Tensor& mask) {
    return run_op("com.microsoft::Attention", {x, weights, bias, mask}, heads(2));
  };
  expect_near(found(lengths), expected);
  expect_near(found(integers({2, 3}, {1, 1, 1, 1, 1, 0}, DType::kInt32)), expected);
  expect_near(found(integers({4}, {3, 2, 0, 0}, DType::kInt32)), expected);
  Attributes causally = heads(2);
  causally["unidirectional"] = int64_t{1};
  expect_near(run_op("com.microsoft::Attention", {x, weights, bias}, causally),
              joined_heads(plain_attention(part(0), part(1), part(2), 0, causal)));
}

TEST(AttentionOfOnnxRuntime, KeepsThePastOfKeysAndValuesInOne) {
  const Tensor x = waves({1, 1, 4}), weights = waves({4, 12}, 1), past = waves({2, 1, 2, 3, 2}, 2);
  const std::vector<Tensor> found =
      run_outputs("com.microsoft::Attention", {x, weights, kNone, kNone, past}, 2, heads(2));
  EXPECT_EQ(found[1].shape(), (Ints{2, 1, 2, 4, 2}));
  const Tensor both = found[1].reshaped({2, 2, 4, 2});
  const auto part = [&](int64_t i) {
    return run_op("Slice", {both, Ints{i}, Ints{i + 1}, Ints{0}});
  };
  const Tensor q = run_op("Slice", {run_op("MatMul", {x, weights}), Ints{0}, Ints{4}, Ints{2}});
  expect_near(found[0], joined_heads(plain_attention(parted_heads(q, 2), part(0), part(1))));
}

TEST(MultiHeadAttention, TakesInputsApartOrPacked) {
  const Tensor q = waves({1, 3, 8}), k = waves({1, 3, 8}, 1), v = waves({1, 3, 8}, 2);
  const Tensor expected =
      joined_heads(plain_attention(parted_heads(q, 2), parted_heads(k, 2), parted_heads(v, 2)));
  expect_near(run_op("com.microsoft::MultiHeadAttention", {q, k, v}, heads(2)), expected);
  const auto packed = [](const std::vector<Operand>& of) {
    std::vector<Operand> parts;
    for (const Operand& x : of) parts.emplace_back(x.tensor.reshaped({1, 3, 2, 1, 4}));
    return run_op("Concat", parts, {{"axis", int64_t{3}}});
  };
  expect_near(run_op("com.microsoft::MultiHeadAttention", {packed({q, k, v})}, heads(2)), expected);
  expect_near(run_op("com.microsoft::MultiHeadAttention", {q, packed({k, v})}, heads(2)), expected);
  expect_near(run_op("com.microsoft::MultiHeadAttention",
                     {q, parted_heads(k, 2), parted_heads(v, 2)},
                     heads(2)),
              expected);
}

TEST(MultiHeadAttention, AddsTheBiasOfItsProjection) {
  const Tensor q = waves({1, 2, 4}), k = waves({1, 3, 4}, 1), bias = waves({12}, 3),
               scores = waves({1, 1, 2, 3}, 4);
  const auto biased = [&](const Tensor& x, int64_t start) {
    const Tensor part = run_op("Slice", {bias, Ints{start}, Ints{start + 4}, Ints{0}});
    return parted_heads(run_op("Add", {x, part}), 2);
  };
  const auto rule = [&](int64_t, int64_t, int64_t i, int64_t j, double score) {
    return score + scores.get(i * 3 + j);
  };
  expect_near(run_op("com.microsoft::MultiHeadAttention", {q, k, k, bias, kNone, scores}, heads(2)),
              joined_heads(plain_attention(biased(q, 0), biased(k, 4), biased(k, 8), 0, rule)));
  EXPECT_EQ(refusal("com.microsoft::MultiHeadAttention",
                    {q, k, k, kNone, integers({5}, {1, 1, 1, 1, 1})},
                    heads(2)),
            "node \"it\": a mask of 5 for 1 texts, 2 queries and 3 keys is not supported");
}

class GroupQueryAttentionTest : public testing::Test {
 protected:
  static Attributes attributes() {
    return {{"num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}};
  }
  static Operand int32s(Ints values) {
    const auto n = static_cast<int64_t>(values.size());
    return Operand::weight(integers({n}, std::move(values), DType::kInt32));
  }
  static std::vector<Tensor> run(const std::vector<Operand>& operands, Attributes attributes) {
    return run_outputs("com.microsoft::GroupQueryAttention", operands, 3, std::move(attributes));
  }
  const Tensor q_ = waves({1, 3, 16}), k_ = waves({1, 3, 8}, 1), v_ = waves({1, 3, 8}, 2);
};

TEST_F(GroupQueryAttentionTest, BeginsWithAllTokens) {
  const std::vector<Tensor> found =
      run({q_, k_, v_, kNone, kNone, int32s({2}), int32s({3})}, attributes());
  expect_near(found[0],
              joined_heads(plain_attention(
                  parted_heads(q_, 4), parted_heads(k_, 2), parted_heads(v_, 2), 0, causal)));
  expect_near(found[1], parted_heads(k_, 2));
  const Tensor packed = run_op("Concat", {q_, k_, v_}, {{"axis", int64_t{2}}});
  expect_near(run({packed, kNone, kNone, kNone, kNone, int32s({2}), int32s({3})}, attributes())[0],
              found[0]);
}

TEST_F(GroupQueryAttentionTest, LooksBackAsFarAsItsWindow) {
  Attributes windowed = attributes();
  windowed["local_window_size"] = int64_t{2};
  const auto rule = [](int64_t, int64_t, int64_t i, int64_t j, double score) {
    return j <= i && j > i - 2 ? score : kHidden;
  };
  expect_near(run({q_, k_, v_, kNone, kNone, int32s({2}), int32s({3})}, windowed)[0],
              joined_heads(plain_attention(
                  parted_heads(q_, 4), parted_heads(k_, 2), parted_heads(v_, 2), 0, rule)));
}

TEST_F(GroupQueryAttentionTest, ATokenComesBehindThePast) {
  const Tensor q = waves({1, 1, 16}, 3), k = waves({1, 1, 8}, 4), v = waves({1, 1, 8}, 5);
  const Tensor past_k = parted_heads(k_, 2), past_v = parted_heads(v_, 2);
  const Tensor all_k = joined_positions(past_k, parted_heads(k, 2));
  const Tensor all_v = joined_positions(past_v, parted_heads(v, 2));
  const std::vector<Tensor> found =
      run({q, k, v, past_k, past_v, int32s({3}), int32s({4})}, attributes());
  expect_near(found[1], all_k);
  expect_near(found[2], all_v);
  expect_near(found[0], joined_heads(plain_attention(parted_heads(q, 4), all_k, all_v)));
}

// Two tokens of one text behind one, in a cache with room for six: its length comes at run time.
TEST_F(GroupQueryAttentionTest, ATextFillsACacheStepByStep) {
  const Tensor q = waves({1, 2, 16}, 3), k = waves({1, 2, 8}, 4), v = waves({1, 2, 8}, 5);
  const Tensor past_k = waves({1, 2, 6, 4}, 6), past_v = waves({1, 2, 6, 4}, 7);
  const std::vector<Tensor> found =
      run({q, k, v, past_k, past_v, integers({1}, {2}, DType::kInt32), int32s({6})}, attributes());
  Tensor all_k = past_k.clone(), all_v = past_v.clone();
  for (int64_t i = 0; i < 16; ++i) {  // two tokens of two heads of four
    const int64_t to = (i / 4 % 2 * 6 + 1 + i / 8) * 4 + i % 4;
    all_k.set(to, k.get(i));
    all_v.set(to, v.get(i));
  }
  expect_near(found[1], all_k);
  expect_near(found[2], all_v);
  const auto rule = [](int64_t, int64_t, int64_t i, int64_t j, double score) {
    return j <= 1 + i ? score : kHidden;
  };
  expect_near(found[0], joined_heads(plain_attention(parted_heads(q, 4), all_k, all_v, 0, rule)));
}

// Texts of 2 and 1 tokens in a cache with room for 3; lengths that come at run time.
TEST_F(GroupQueryAttentionTest, TextsOfOtherLengthsShareACache) {
  const Tensor q = waves({2, 1, 16}, 3), k = waves({2, 1, 8}, 4), v = waves({2, 1, 8}, 5);
  const Tensor past_k = waves({2, 2, 3, 4}, 6), past_v = waves({2, 2, 3, 4}, 7);
  const std::vector<Tensor> found = run(
      {q, k, v, past_k, past_v, integers({2}, {2, 1}, DType::kInt32), int32s({3})}, attributes());
  Tensor all_k = past_k.clone(), all_v = past_v.clone();
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t i = 0; i < 8; ++i) {  // two heads of four
      const int64_t to = ((b * 2 + i / 4) * 3 + 2 - b) * 4 + i % 4;
      all_k.set(to, k.get(b * 8 + i));
      all_v.set(to, v.get(b * 8 + i));
    }
  }
  expect_near(found[1], all_k);
  const auto rule = [](int64_t b, int64_t, int64_t, int64_t j, double score) {
    return j <= 2 - b ? score : kHidden;
  };
  expect_near(found[0], joined_heads(plain_attention(parted_heads(q, 4), all_k, all_v, 0, rule)));
}

TEST_F(GroupQueryAttentionTest, TurnsQueriesAndKeysByTheirPlaces) {
  const Tensor cosine = floats({4, 2}, {1, 1, 0, 0, -1, -1, 0, 0});
  const Tensor sine = floats({4, 2}, {0, 0, 1, 1, 0, 0, -1, -1});
  const Tensor q = waves({1, 1, 16}, 3), k = waves({1, 1, 8}, 4);
  const Tensor past = parted_heads(k_, 2);
  Attributes turned = attributes();
  turned["do_rotary"] = int64_t{1};
  const std::vector<Tensor> found =
      run({q, k, k, past, past, int32s({3}), int32s({4}), cosine, sine}, turned);
  const auto at_three = [&](const Tensor& x) {
    return run_op("com.microsoft::RotaryEmbedding", {x, integers({1}, {3}), cosine, sine});
  };
  const Tensor all_k = joined_positions(past, parted_heads(at_three(k), 2));
  expect_near(found[1], all_k);
  expect_near(
      found[0],
      joined_heads(plain_attention(
          parted_heads(at_three(q), 4), all_k, joined_positions(past, parted_heads(k, 2)))));
}

TEST_F(GroupQueryAttentionTest, ASinkTakesAPartOfTheWeights) {
  const Tensor q = floats({1, 1, 16}, std::vector<double>(16, 0)), k = waves({1, 1, 8}),
               v = waves({1, 1, 8}, 1);
  Attributes smooth = attributes();
  smooth["smooth_softmax"] = int64_t{1};
  const Tensor found = run({q, k, v, kNone, kNone, int32s({0}), int32s({1})}, smooth)[0];
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_NEAR(found.get(i), v.get(i) / 2, 1e-6);  // a score of 0 beside one
}

TEST_F(GroupQueryAttentionTest, SaysWhatHasToBeKnown) {
  EXPECT_EQ(refusal("com.microsoft::GroupQueryAttention",
                    {q_, k_, v_, kNone, kNone, int32s({2}), integers({}, {3}, DType::kInt32)},
                    attributes()),
            "node \"it\": total_sequence_length is computed at run time; it has to be a constant");
  EXPECT_EQ(refusal("com.microsoft::GroupQueryAttention", {q_, k_, v_}, attributes()),
            "node \"it\": input 5 (seqlens_k) is missing");
}

// Weights of 1 and 2 steps: queries, keys and values are multiples of the data.
TEST(QAttention, MultipliesBytes) {
  const Tensor x = integers({1, 2, 1}, {11, 12}, DType::kUInt8);
  const Operand w = Operand::weight(integers({1, 3}, {1, 1, 2}, DType::kInt8));
  const Operand bias = Operand::weight(floats({3}, {0, 0, 1}));
  const Operand scale = Operand::weight(floats({}, {0.5})), one = Operand::weight(floats({}, {1}));
  const Operand zero = Operand::weight(integers({}, {10}, DType::kUInt8));
  const Tensor found = run_op("com.microsoft::QAttention",
                              {x, w, bias, scale, one, kNone, zero},
                              {{"num_heads", int64_t{1}}, {"unidirectional", int64_t{1}}});
  // The data are 0.5 and 1, the values 2 and 3.
  const double second = 1 / (1 + std::exp(-(1 * 1 - 1 * 0.5)));
  expect_near(found, floats({1, 2, 1}, {2, 2 + second}));
  EXPECT_EQ(refusal("com.microsoft::QAttention",
                    {x, w, bias, scale, one},
                    {{"num_heads", int64_t{1}}, {"do_rotary", int64_t{1}}}),
            "node \"it\": do_rotary is not supported; use GroupQueryAttention or RotaryEmbedding");
}

// The cache has room for three positions, of which the first is written.
TEST(DecoderMaskedMultiHeadAttention, WritesBehindThePast) {
  const Attributes attributes = {{"num_heads", int64_t{1}},
                                 {"past_present_share_buffer", int64_t{1}}};
  const Tensor query = floats({1, 1, 1}, {1}), key = floats({1, 1, 1}, {0}),
               value = floats({1, 1, 1}, {4});
  const Tensor keys = floats({1, 1, 3, 1}, {std::log(3), 9, 9}),
               values = floats({1, 1, 3, 1}, {8, 9, 9});
  const Tensor past = integers({1}, {1}, DType::kInt32);
  for (const Operand& length : {Operand(past), Operand::weight(past)}) {
    const std::vector<Tensor> found =
        run_outputs("com.microsoft::DecoderMaskedMultiHeadAttention",
                    {query, key, value, kNone, kNone, keys, values, length},
                    3,
                    attributes);
    expect_near(found[0], floats({1, 1, 1}, {0.75 * 8 + 0.25 * 4}));
    expect_near(found[1], floats({1, 1, 3, 1}, {std::log(3), 0, 9}));
    expect_near(found[2], floats({1, 1, 3, 1}, {8, 4, 9}));
  }
  const Operand beams = integers({1, 1, 3}, {0, 0, 0}, DType::kInt32);
  EXPECT_EQ(refusal("com.microsoft::DecoderMaskedMultiHeadAttention",
                    {query, key, value, kNone, kNone, keys, values, past, kNone, beams},
                    attributes),
            "node \"it\": cache_indirection is not supported; export with beams that are put in "
            "order outside of the model");
}

TEST(DecoderMaskedMultiHeadAttention, ReadsAnotherText) {
  const Tensor query = floats({1, 1, 1}, {1}), keys = floats({1, 1, 2, 1}, {std::log(3), 0}),
               values = floats({1, 1, 2, 1}, {8, 4});
  expect_near(run_op("com.microsoft::DecoderMaskedMultiHeadAttention",
                     {query, keys, values},
                     {{"num_heads", int64_t{1}}}),
              floats({1, 1, 1}, {7}));
}

}  // namespace
}  // namespace pruner
