// The attention of ONNX Runtime's optimizer and of models for its GenAI.
#include <algorithm>

#include "graph/functions/attention.h"
#include "graph/functions/quantized.h"
#include "graph/functions/rotary.h"

namespace pruner {

// Adds the call's mask of keys: what it hides gets mask_filter_value more. One element says how
// many keys of a text there are, or the ends and then the starts of all; else an element above 0
// shows a key to all queries, [batch, keys], or to one, [batch, queries, keys] or the last
// `queries` of [batch, 1, positions, positions].
static void add_mask(AttentionTerms& a, Term mask) {
  Body& b = *mask.body;
  const int64_t batch = a.query.extent(0), queries = a.query.extent(2), keys = a.key.extent(2);
  Term visible;
  if (mask.rank() == 1 && (mask.extent(0) == batch || mask.extent(0) == 2 * batch)) {
    const Term at = b.cast(positions(b, keys), mask.dtype());
    const auto limit = [&](int64_t i) {
      return b.reshape(b.slice(mask, 0, i * batch, (i + 1) * batch), {batch, 1, 1, 1});
    };
    visible = b.add("Less", {at, limit(0)});
    if (mask.extent(0) > batch) visible = both(visible, b.add("GreaterOrEqual", {at, limit(1)}));
  } else {
    std::vector<int64_t> shape = mask.shape();
    if (shape.size() == 4 && shape[1] == 1 && shape[2] >= keys && shape[3] >= keys) {
      mask = b.slice(b.slice(mask, 2, keys - queries, keys), 3, 0, keys);
      shape = mask.shape();
    } else if (shape.size() == 3) {
      shape.insert(shape.begin() + 1, 1);
    } else if (shape.size() == 2) {
      shape.insert(shape.begin() + 1, {1, 1});
    }
    const std::vector<int64_t> scores = {batch, 1, queries, keys};
    const Result<std::vector<int64_t>> fits = broadcast_shapes(shape, scores);
    if (shape.size() != 4 || !fits.ok() || *fits != scores) {
      return b.fail(Error("a mask of ",
                          print_shape(mask.shape()),
                          " for ",
                          batch,
                          " texts, ",
                          queries,
                          " queries and ",
                          keys,
                          " keys is not supported"));
    }
    visible = b.add("Greater", {b.reshape(mask, shape), b.scalar(0, mask.dtype())});
  }
  const DType dtype = a.query.dtype();
  const double hidden = b.call().number("mask_filter_value", -10000);
  a.bias = sum(a.bias, b.add("Where", {visible, b.scalar(0, dtype), b.scalar(hidden, dtype)}));
}

// Hides the keys that come after a query; the queries stand at the end of the keys.
static void add_causal_mask(AttentionTerms& a) {
  Body& b = *a.query.body;
  const int64_t queries = a.query.extent(2), before = a.key.extent(2) - queries;
  const Term at = b.reshape(positions(b, queries), {queries, 1}) + static_cast<double>(before);
  a.visible = in_window(at, a.key.extent(2), -1, 0);
}

// Returns x as parts of these extents along the last axis.
static std::vector<Term> parted(Term x, std::span<const int64_t> extents) {
  Body& b = *x.body;
  return b.add_many("Split", {x, b.integers(extents)}, extents.size(), {{"axis", int64_t{-1}}});
}

namespace {

/// The numbers of the call's inputs that Attention and QAttention share.
struct AttentionInputs {
  size_t mask, past, bias;  // the bias is added to the scores
};

}  // namespace

static constexpr size_t kNoInput = 100;

// Writes attention of queries, keys and values that lie side by side, [batch, positions, widths of
// all]; the past of keys and values is one tensor.
static void attend_to_projected(Body& b, Term projected, const AttentionInputs& inputs) {
  const OpCall& call = b.call();
  if (call.integer("do_rotary", 0) != 0)
    return b.fail(Error("do_rotary is not supported; use GroupQueryAttention or RotaryEmbedding"));
  if (call.integer("past_present_share_buffer", 0) != 0) {
    return b.fail(
        Error("past and present in one buffer (past_present_share_buffer) are not supported; "
              "export with a past of its own length"));
  }
  std::vector<int64_t> sizes = call.integers("qkv_hidden_sizes");
  if (sizes.empty()) sizes.assign(3, projected.extent(2) / 3);
  if (sizes.size() != 3)
    return b.fail(Error("qkv_hidden_sizes has ", sizes.size(), " elements, expected 3"));
  const std::vector<Term> parts = parted(projected, sizes);
  const auto heads = [&](size_t i) { return split_heads(parts[i], call.integer("num_heads", 0)); };
  AttentionTerms a{heads(0), heads(1), heads(2)};
  if (b.has(inputs.past)) {
    const Term pasts = b.input(inputs.past);
    const auto past = [&](int64_t i) {
      std::vector<int64_t> shape = pasts.shape();
      shape.erase(shape.begin());
      return b.reshape(b.slice(pasts, 0, i, i + 1), shape);
    };
    if (pasts.rank() != 5)
      return b.fail(Error("past is ",
                          print_shape(pasts.shape()),
                          ", expected [2, batch, heads, positions, width]"));
    a.key = b.concat({past(0), a.key}, 2);
    a.value = b.concat({past(1), a.value}, 2);
  }
  a.scale = call.number("scale", 0);
  if (b.has(inputs.bias)) a.bias = b.input(inputs.bias);
  if (b.has(inputs.mask)) add_mask(a, b.input(inputs.mask));
  if (call.integer("unidirectional", 0) != 0) add_causal_mask(a);
  b.output(0, join_heads(attend(a).result));
  if (b.wants(1)) b.output(1, b.concat({b.unsqueeze(a.key, 0), b.unsqueeze(a.value, 0)}, 0));
}

// Queries, keys and values are products with parts of one matrix.
static void attention(Body& b) {
  if (b.has(6))
    return b.fail(
        Error("past and present in one buffer (past_sequence_length) are not supported; export "
              "with a past of its own length"));
  const Term projected = b.add("MatMul", {b.input(0), b.input(1)});
  attend_to_projected(b, sum(projected, b.input(2)), {3, 4, 5});
}

// Like Attention, with data and weights of whole numbers; the rest computes in reals.
static void q_attention(Body& b) {
  const Term projected = quantized_product({b.input(0), scale_input(b, 3), b.input(6)},
                                           {b.input(1), scale_input(b, 4), b.input(7)});
  attend_to_projected(b, b.cast(projected, b.input(2).dtype()) + b.input(2), {5, 8, kNoInput});
}

// Returns MultiHeadAttention's input i plus the part of the bias that begins at `start`: [batch,
// positions, heads * width]. A packed input, [batch, positions, heads, parts, width], holds it as
// part `part`.
static Term with_bias(Body& b, size_t i, int64_t part, int64_t start) {
  Term x = b.input(i);
  if (x.rank() == 5) {
    x = b.reshape(b.slice(x, 3, part, part + 1),
                  {x.extent(0), x.extent(1), x.extent(2) * x.extent(4)});
  }
  return b.has(3) ? x + b.slice(b.input(3), 0, start, start + x.extent(-1)) : x;
}

static void multi_head_attention(Body& b) {
  const OpCall& call = b.call();
  if (b.has(8) || b.has(9)) {
    return b.fail(
        Error("past_sequence_length and cache_indirection are not supported; export with a past of "
              "its own length"));
  }
  if (b.has(6) != b.has(7)) return b.fail(Error("past_key and past_value go together"));
  const int64_t heads = call.integer("num_heads", 0);
  const bool packed = !b.has(1);            // query, key and value in one
  const bool half = b.has(1) && !b.has(2);  // key and value in one
  const Term query = with_bias(b, 0, 0, 0);
  const int64_t width = query.extent(2);
  AttentionTerms a{split_heads(query, heads), {}, {}};
  if (b.has(2) && b.input(1).rank() == 4) {  // cross attention: heads parted when they were kept
    a.key = b.input(1);
    a.value = b.input(2);
  } else {
    const size_t from = packed ? 0 : 1;
    if ((packed || half) && b.input(from).rank() != 5) {
      return b.fail(Error("input ",
                          from,
                          " is ",
                          print_shape(b.input(from).shape()),
                          ", which does not hold key and value, too"));
    }
    a.key = split_heads(with_bias(b, from, packed ? 1 : 0, width), heads);
    a.value =
        split_heads(with_bias(b, packed || half ? from : 2, packed ? 2 : 1, 2 * width), heads);
  }
  if (b.has(6)) {
    a.key = b.concat({b.input(6), a.key}, 2);
    a.value = b.concat({b.input(7), a.value}, 2);
  }
  a.scale = call.number("scale", 0);
  if (b.has(5)) a.bias = b.input(5);
  if (b.has(4)) add_mask(a, b.input(4));
  if (call.integer("unidirectional", 0) != 0) add_causal_mask(a);
  b.output(0, join_heads(attend(a).result));
  b.output(1, a.key);
  b.output(2, a.value);
}

// Returns x plus a part of a decoder's attention bias: the query's (0), the key's or the value's.
static Term with_part_of_bias(Body& b, Term x, int64_t part) {
  if (!b.has(10)) return x;
  const int64_t begin = part * b.input(0).extent(-1);
  return x + b.slice(b.input(10), 0, begin, begin + x.extent(-1));
}

static Result<Unit> check_decoder(const OpCall& call) {
  if (call.has(9))
    return Error(
        "cache_indirection is not supported; export with beams that are put in order "
        "outside of the model");
  if (call.has(5) != call.has(6)) return Error("past_key and past_value go together");
  if (call.has(1) != call.has(2)) return Error("key and value go together");
  const bool shared = call.integer("past_present_share_buffer", 0) != 0;
  if (call.has(5) && shared && !call.has(7))
    return Error("input 7 (past_sequence_length) is missing");
  if (call.rank(0) != 3 || call.shape(0)[1] != 1)
    return Error("query is ", print_shape(call.shape(0)), ", expected [batch, 1, heads * width]");
  if (call.has(5) || (call.has(1) && call.rank(1) == 4)) return Unit{};
  return Error("past_key is missing, and key is not [batch, heads, positions, width]");
}

// Returns how many keys a decoder's query has: the mask or the bias says it, or the past if it is
// known; 0 if the past says it at run time.
static int64_t total_keys(Body& b) {
  for (const size_t i : {size_t{3}, size_t{4}})
    if (b.has(i)) return b.input(i).extent(-1);
  const std::optional<double> past = b.has(7) ? b.call().scalar(7) : std::nullopt;
  return past ? static_cast<int64_t>(*past) + 1 : 0;
}

// Returns the keys and values of a decoder that keeps them: new ones are written behind the past.
static AttentionTerms with_past(Body& b, Term query, Term key, Term value) {
  if (b.call().integer("past_present_share_buffer", 0) == 0)
    return {query, b.concat({b.input(5), key}, 2), b.concat({b.input(6), value}, 2)};
  const Term past = b.reshape(b.cast(b.input(7), DType::kInt64), {1});
  const Term first = b.add("Expand", {past, b.integers({{key.extent(0)}})});
  const auto cache = [&](size_t i, Term fresh) {
    return b.add("TensorScatter", {b.input(i), fresh, first}, {{"axis", int64_t{2}}});
  };
  AttentionTerms a{query, cache(5, key), cache(6, value)};
  if (total_keys(b) == 0) a.visible = in_window(b.reshape(past, {1, 1}), a.key.extent(2), -1, 0);
  return a;
}

// Writes attention of a query of one position over the keys and values of another text, or of the
// positions before the query.
static void decoder_masked_attention(Body& b) {
  const OpCall& call = b.call();
  if (const Result<Unit> checked = check_decoder(call); !checked.ok())
    return b.fail(checked.error());
  const int64_t heads = call.integer("num_heads", 0);
  std::vector<Term> parts = {b.input(0), b.input(1), b.input(2)};
  if (!b.has(1)) {
    const int64_t width = b.input(0).extent(2) / 3;
    parts = parted(b.input(0), {{width, width, width}});
  }
  const auto part = [&](size_t i) {
    return split_heads(with_part_of_bias(b, parts[i], static_cast<int64_t>(i)), heads);
  };
  AttentionTerms a{part(0), parts[1], parts[2]};
  if (b.has(5)) a = with_past(b, a.query, part(1), part(2));
  const AttentionTerms kept = a;
  if (const int64_t total = total_keys(b); b.has(5) && total > 0) {
    if (total > a.key.extent(2))
      return b.fail(Error("mask or bias are of ", total, " keys, past_key has ", a.key.extent(2)));
    a.key = b.slice(a.key, 2, 0, total);
    a.value = b.slice(a.value, 2, 0, total);
  }
  a.scale = call.number("scale", 0);
  if (b.has(4)) a.bias = b.input(4);
  if (b.has(3)) add_mask(a, b.input(3));
  const bool shows = b.wants(3);
  if (shows && a.visible.valid())
    return b.fail(computed_at_run_time(call.graph, call.node.inputs[7], "past_sequence_length"));
  const Attended out = attend(a);
  b.output(0, join_heads(out.result));
  b.output(1, kept.key);
  b.output(2, kept.value);
  if (shows) b.output(3, out.masked);
}

namespace {

// The places of a GroupQueryAttention's tokens.
struct Places {
  int64_t total;  // positions of the longest text
  Term first;     // place of the call's first token, [1 or batch]
  Term all;       // place of each token, [1 or batch, tokens]
};

}  // namespace

static Result<Unit> check_group_query_attention(const OpCall& call) {
  for (const size_t i : {size_t{5}, size_t{6}}) {
    if (!call.has(i))
      return Error(
          "input ", i, " (", i == 5 ? "seqlens_k" : "total_sequence_length", ") is missing");
  }
  if (call.has(1) != call.has(2)) return Error("key and value go together");
  if (call.has(3) != call.has(4)) return Error("past_key and past_value go together");
  if (call.has(12) || call.has(13) || (call.has(3) && call.input(3).dtype != call.input(0).dtype)) {
    return Error("a quantized cache is not supported; export with one of the query's type");
  }
  if (call.has(14) != call.has(15)) return Error("q_norm_weight and k_norm_weight go together");
  if (call.integer("sliding_window_cache", 0) != 0)
    return Error("sliding_window_cache is not supported; export with a cache of all positions");
  if (call.integer("do_rotary", 0) != 0 && !(call.has(7) && call.has(8)))
    return Error("do_rotary needs cos_cache and sin_cache");
  if (!call.scalar(6))
    return computed_at_run_time(call.graph, call.node.inputs[6], "total_sequence_length");
  return Unit{};
}

// Returns the tokens' places. seqlens_k has the last token's place in each text; every text begins
// with a call that brings all tokens.
static Places places_of(Body& b, int64_t tokens) {
  const auto total = static_cast<int64_t>(*b.call().scalar(6));
  Places p{total, b.integers({{total - tokens}}), {}};
  if (tokens != total)
    p.first = b.reshape(b.cast(b.input(5), DType::kInt64), {-1}) - static_cast<double>(tokens - 1);
  p.all = b.reshape(p.first, {-1, 1}) + positions(b, tokens);
  return p;
}

// Returns the cache in input i with new positions; positions without room in the cache come behind
// it.
static Term cached(Body& b, size_t i, Term fresh, const Places& p) {
  if (!b.has(i)) return fresh;
  Term past = b.input(i);
  const int64_t room = past.extent(2);
  if (p.first.extent(0) == 1 && p.total == room + fresh.extent(2))
    return b.concat({past, fresh}, 2);
  if (p.total > room) {
    std::vector<int64_t> shape = past.shape();
    shape[2] = p.total - room;
    past = b.concat({past, b.constant(Tensor(past.dtype(), shape))}, 2);
  }
  Term first = p.first;
  if (first.extent(0) != past.extent(0))
    first = b.add("Expand", {first, b.integers({{past.extent(0)}})});
  return b.add("TensorScatter", {past, fresh, first}, {{"axis", int64_t{2}}});
}

// Returns query, key and value of GroupQueryAttention's tokens, [batch, heads, tokens, width],
// normalized.
static AttentionTerms tokens_of(Body& b) {
  const OpCall& call = b.call();
  const int64_t heads = call.integer("num_heads", 0), shared = call.integer("kv_num_heads", 0);
  std::vector<Term> parts = {b.input(0), b.input(1), b.input(2)};
  if (!b.has(1) && heads > 0 && shared > 0) {
    const int64_t width = b.input(0).extent(2) / (heads + 2 * shared);
    parts = parted(b.input(0), {{heads * width, shared * width, shared * width}});
  }
  AttentionTerms a{
      split_heads(parts[0], heads), split_heads(parts[1], shared), split_heads(parts[2], shared)};
  if (b.has(14)) {
    const Attributes epsilon = {{"epsilon", call.number("qk_norm_epsilon", 1e-6)}};
    a.query = b.add("RMSNormalization", {a.query, b.input(14)}, epsilon);
    a.key = b.add("RMSNormalization", {a.key, b.input(15)}, epsilon);
  }
  return a;
}

static void group_query_attention(Body& b) {
  const OpCall& call = b.call();
  const Result<Unit> checked = check_group_query_attention(call);
  if (!checked.ok()) return b.fail(checked.error());
  AttentionTerms a = tokens_of(b);
  const int64_t tokens = a.query.extent(2);
  const Places places = places_of(b, tokens);
  if (call.integer("do_rotary", 0) != 0) {
    const Term at = b.has(9) ? b.input(9) : places.all;
    const Term cosine = rows_at(b.input(7), at), sine = rows_at(b.input(8), at);
    const bool interleaved = call.integer("rotary_interleaved", 0) != 0;
    a.query = rotated(a.query, cosine, sine, true, interleaved);
    a.key = rotated(a.key, cosine, sine, true, interleaved);
  }
  a.key = cached(b, 3, a.key, places);
  a.value = cached(b, 4, a.value, places);
  a.scale = call.number("scale", 0);
  a.softcap = call.number("softcap", 0);
  const int64_t keys = a.key.extent(2), window = call.integer("local_window_size", -1);
  const Term at = b.reshape(places.all, {-1, 1, tokens, 1});
  if (call.integer("causal", 1) != 0) {
    a.visible = in_window(at, keys, window > 0 ? window - 1 : -1, 0);
  } else {
    a.visible = in_window(b.slice(at, 2, tokens - 1, tokens), keys, -1, 0);
  }
  if (b.has(10)) {
    const int64_t missing = keys - b.input(10).extent(-1);
    a.bias = b.add("Pad", {b.input(10), b.integers({{0, 0, 0, 0, 0, 0, 0, missing}})});
  }
  if (b.has(11)) {
    a.sink = b.reshape(b.input(11), {1, -1, 1, 1});
  } else if (call.integer("smooth_softmax", 0) > 0) {
    a.sink = b.scalar(0, a.query.dtype());
  }
  b.output(0, join_heads(attend(a).result));
  b.output(1, a.key);
  b.output(2, a.value);
}

// clang-format off
static constexpr Function kOrtAttentionFunctions[] = {
    {"com.microsoft::Attention", 2, 7, "do_rotary:i mask_filter_value:f num_heads:i past_present_share_buffer:i qkv_hidden_sizes:I rotary_embedding_dim:i scale:f unidirectional:i", attention},
    {"com.microsoft::DecoderMaskedMultiHeadAttention", 1, 11, "mask_filter_value:f num_heads:i output_qk:i past_present_share_buffer:i scale:f", decoder_masked_attention},
    {"com.microsoft::GroupQueryAttention", 1, 16, "causal:i do_rotary:i k_quant_type:s kv_cache_bit_width:i kv_num_heads:i local_window_size:i num_heads:i qk_norm_epsilon:f qk_output:i rotary_interleaved:i scale:f sliding_window_cache:i smooth_softmax:i softcap:f v_quant_type:s", group_query_attention},
    {"com.microsoft::MultiHeadAttention", 1, 10, "mask_filter_value:f num_heads:i scale:f unidirectional:i", multi_head_attention},
    {"com.microsoft::QAttention", 5, 9, "do_rotary:i mask_filter_value:f num_heads:i past_present_share_buffer:i scale:f unidirectional:i", q_attention},
};
// clang-format on

std::span<const Function> ort_attention_functions() { return kOrtAttentionFunctions; }

}  // namespace pruner
