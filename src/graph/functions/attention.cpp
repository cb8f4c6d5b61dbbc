// ONNX's Attention, and what it shares with ONNX Runtime's.
#include "graph/functions/attention.h"

#include <cmath>
#include <limits>
#include <numeric>

namespace pruner {

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

Term split_heads(Term x, int64_t heads) {
  Body& b = *x.body;
  if (x.rank() != 3 || heads < 1 || x.extent(2) % heads != 0) {
    b.fail(Error(heads,
                 " heads do not part ",
                 print_shape(x.shape()),
                 ", [batch, positions, heads * width]"));
    return x;
  }
  return b.transpose(b.reshape(x, {x.extent(0), x.extent(1), heads, x.extent(2) / heads}),
                     {0, 2, 1, 3});
}

Term join_heads(Term x) {
  Body& b = *x.body;
  const Term joined = b.transpose(x, {0, 2, 1, 3});
  return b.reshape(joined, {x.extent(0), x.extent(2), x.extent(1) * x.extent(3)});
}

Term positions(Body& b, int64_t count) {
  std::vector<int64_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return b.integers(all);
}

Term both(Term a, Term b) {
  if (!a.valid() || !b.valid()) return a.valid() ? a : b;
  return a.body->add("And", {a, b});
}

Term sum(Term a, Term b) {
  if (!a.valid() || !b.valid()) return a.valid() ? a : b;
  return a + b;
}

Term in_window(Term queries, int64_t keys, int64_t before, int64_t after) {
  Body& b = *queries.body;
  const Term at = positions(b, keys);
  Term seen;
  if (after >= 0) seen = b.add("LessOrEqual", {at, queries + static_cast<double>(after)});
  if (before < 0) return seen;
  return both(seen, b.add("GreaterOrEqual", {at, queries - static_cast<double>(before)}));
}

// Whether a query sees a key at all: [..., queries, 1].
static Term sees_something(const AttentionTerms& a) {
  Body& b = *a.query.body;
  Term seen = a.visible;
  if (a.bias.valid()) {
    const Term least = b.scalar(-greatest_float(a.bias.dtype()), a.bias.dtype());
    seen = both(seen, b.add("GreaterOrEqual", {a.bias, least}));
  }
  return b.reduce("ReduceMax", seen, {{-1}});
}

// The softmax of the scores over the keys.
static Term weights_of(const AttentionTerms& a, Term scores) {
  Body& b = *scores.body;
  Term logits = b.cast(scores, a.softmax_dtype.value_or(scores.dtype()));
  if (a.sink.valid()) {
    std::vector<int64_t> shape = scores.shape();
    shape.back() = 1;
    const Term column = b.add("Expand", {b.cast(a.sink, logits.dtype()), b.integers(shape)});
    logits = b.concat({logits, column}, -1);
  }
  Term weights = b.add("Softmax", {logits}, {{"axis", int64_t{-1}}});
  if (a.sink.valid()) weights = b.slice(weights, -1, 0, scores.extent(-1));
  return b.cast(weights, scores.dtype());
}

// Query times key. Narrow floats overflow less where their factors are scaled, not the product.
static Term scaled_product(Term query, Term key, double scale) {
  Body& b = *query.body;
  if (is_narrow_float(query.dtype())) {
    const double each = std::sqrt(scale);
    return b.add("MatMul", {query * each, b.transpose(key * each, {0, 1, 3, 2})});
  }
  return b.add("MatMul", {query, b.transpose(key, {0, 1, 3, 2})}) * scale;
}

Attended attend(const AttentionTerms& a) {
  Body& b = *a.query.body;
  const Term &q = a.query, &k = a.key, &v = a.value;
  const int64_t batch = q.extent(0), heads = q.extent(1), queries = q.extent(2),
                shared = k.extent(1);
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4 || shared < 1 || heads % shared != 0 ||
      v.extent(1) != shared) {
    b.fail(Error("query, key and value of ",
                 print_shape(q.shape()),
                 ", ",
                 print_shape(k.shape()),
                 " and ",
                 print_shape(v.shape()),
                 " are not [batch, heads, positions, width] with heads of the query a multiple of "
                 "the others'"));
    return {q, q, q, q, q};
  }
  // Queries that share a key are rows of one product.
  const auto grouped = [&](Term x) {
    return heads == shared ? x
                           : b.reshape(x, {batch, shared, heads / shared * queries, x.extent(3)});
  };
  const auto parted = [&](Term x) {
    return heads == shared ? x : b.reshape(x, {batch, heads, queries, x.extent(3)});
  };
  Attended out;
  const double scale = a.scale != 0 ? a.scale : 1 / std::sqrt(static_cast<double>(q.extent(3)));
  out.raw = out.capped = parted(scaled_product(grouped(q), k, scale));
  if (a.softcap > 0) out.capped = b.add("Tanh", {out.raw / a.softcap}) * a.softcap;
  out.masked = sum(out.capped, a.bias);
  if (a.visible.valid()) {
    const double hidden = a.hidden_score.value_or(-greatest_float(q.dtype()));
    out.masked = b.add("Where", {a.visible, out.masked, b.scalar(hidden, q.dtype())});
  }
  out.weights = weights_of(a, out.masked);
  out.result = parted(b.add("MatMul", {grouped(out.weights), b.cast(v, q.dtype())}));
  if (a.may_see_nothing) {
    const Term sees = sees_something(a), zero = b.scalar(0, q.dtype());
    out.weights = b.add("Where", {sees, out.weights, zero});
    out.result = b.add("Where", {sees, out.result, zero});
  }
  return out;
}

// ONNX's number of the type that softmax is computed in; narrower ones round its input.
static Result<std::optional<DType>> softmax_dtype(const OpCall& call) {
  const int64_t number = call.integer("softmax_precision", 0);
  if (number == 0) return {std::nullopt};
  if (number == 11) return {DType::kFloat32};  // double
  for (const DTypeRow& row : kDTypes) {
    if (row.onnx == number && is_float(row.dtype)) return {row.dtype};
  }
  return Error("softmax_precision is ",
               number,
               ", expected 1 (float), 10 (float16), 11 (double) or 16 (bfloat16)");
}

// The mask of the call, made as long as the keys: keys behind its end are hidden.
static Term whole_mask(Body& b, int64_t keys) {
  Term mask = b.input(3);
  if (mask.dtype() != DType::kBool) mask = b.cast(mask, b.input(0).dtype());
  const int64_t missing = keys - mask.extent(-1);
  if (missing <= 0 || mask.extent(-1) == 1) return mask;
  std::vector<int64_t> shape = mask.shape();
  shape.back() = missing;
  Tensor hidden(mask.dtype(), shape);
  if (mask.dtype() != DType::kBool) {
    for (int64_t i = 0; i < hidden.num_elements(); ++i) hidden.set(i, -kInfinity);
  }
  return b.concat({mask, b.constant(std::move(hidden))}, -1);
}

// Sets what a call hides: the keys behind the valid ones, outside of the window, of the mask.
static void set_mask(Body& b, AttentionTerms& a) {
  const OpCall& call = b.call();
  const int64_t queries = a.query.extent(2), keys = a.key.extent(2);
  const int64_t past = b.has(4) ? b.input(4).extent(2) : 0;
  int64_t before = call.integer("left_window_size", -1),
          after = call.integer("right_window_size", -1);
  if (call.integer("is_causal", 0) != 0) after = 0;
  Term at = b.reshape(positions(b, queries), {queries, 1}) + static_cast<double>(past);
  if (b.has(6)) {
    const Term valid = b.reshape(b.input(6), {b.input(6).extent(0), 1, 1, 1});
    at = at + (valid - static_cast<double>(queries));
    a.visible = b.add("Less", {positions(b, keys), valid});
  }
  a.visible = both(a.visible, in_window(at, keys, before, after));
  if (b.has(3)) {
    const Term mask = whole_mask(b, keys);
    if (mask.dtype() == DType::kBool) {
      a.visible = both(a.visible, mask);
    } else {
      a.bias = mask;
    }
  }
  // Without a mask of its own a query is hidden from all keys when its window lies behind them.
  a.may_see_nothing = b.has(3) || b.has(6) || (before >= 0 && queries - 1 + past - before >= keys);
}

static Result<Unit> check_attention(const OpCall& call) {
  if (call.has(4) != call.has(5)) return Error("past_key and past_value go together");
  if (call.has(6) && call.has(4))
    return Error("nonpad_kv_seqlen does not go with past_key and past_value");
  const int64_t rank = call.rank(0);
  if (rank != call.rank(1) || rank != call.rank(2) || rank < 3 || rank > 4) {
    return Error("query, key and value have ",
                 rank,
                 ", ",
                 call.rank(1),
                 " and ",
                 call.rank(2),
                 " dimensions, expected 3 or 4, all as many");
  }
  return Unit{};
}

static void attention(Body& b) {
  const OpCall& call = b.call();
  const Result<Unit> checked = check_attention(call);
  if (!checked.ok()) return b.fail(checked.error());
  const Result<std::optional<DType>> dtype = softmax_dtype(call);
  if (!dtype.ok()) return b.fail(dtype.error());
  const bool flat = call.rank(0) == 3;
  const auto heads_of = [&](size_t i, const char* heads) {
    return flat ? split_heads(b.input(i), call.integer(heads, 0)) : b.input(i);
  };
  AttentionTerms a{
      heads_of(0, "q_num_heads"), heads_of(1, "kv_num_heads"), heads_of(2, "kv_num_heads")};
  if (b.has(4)) {
    a.key = b.concat({b.input(4), a.key}, 2);
    a.value = b.concat({b.input(5), a.value}, 2);
  }
  a.scale = call.number("scale", 0);
  a.softcap = call.number("softcap", 0);
  a.softmax_dtype = *dtype;
  set_mask(b, a);
  const int64_t mode = call.integer("qk_matmul_output_mode", 0);
  if (b.wants(3) && mode == 2) a.hidden_score = -kInfinity;
  const Attended out = attend(a);
  b.output(0, flat ? join_heads(out.result) : out.result);
  b.output(1, a.key);
  b.output(2, a.value);
  const Term scores[] = {out.raw, out.capped, out.masked, out.weights};
  if (mode < 0 || mode > 3)
    return b.fail(Error("qk_matmul_output_mode is ", mode, ", expected 0 to 3"));
  b.output(3, scores[mode]);
}

static constexpr Function kAttentionFunctions[] = {
    {"Attention",
     3,
     7,
     "is_causal:i kv_num_heads:i left_window_size:i q_num_heads:i qk_matmul_output_mode:i "
     "right_window_size:i scale:f softcap:f softmax_precision:i",
     attention},
};

std::span<const Function> attention_functions() { return kAttentionFunctions; }

}  // namespace pruner
