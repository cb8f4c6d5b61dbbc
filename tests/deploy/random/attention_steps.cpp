#include "steps.h"

#include <limits>

namespace pruner {

namespace {

struct Heads {
  int64_t batch, heads, shared, queries, keys, width;  // `shared` heads of keys and values
};

}  // namespace

static ValueId first_of(const Ids& made) { return made.empty() ? ValueId{} : made[0]; }

// [b, s, h * d] to [b, h, s, d], or to [b, h, d, s].
static ValueId parted(GraphMaker& m, ValueId x, int64_t heads, bool turned) {
  if (!x.valid()) return {};
  const Ints shape = m.shape_of(x);
  const Ids rows = m.add(
      "Reshape", {x, m.integers({shape[0], shape[1], heads, shape[2] / heads})}, Kind::kMoves);
  if (rows.empty()) return {};
  return first_of(m.add(
      "Transpose", rows, Kind::kMoves, {{"perm", turned ? Ints{0, 2, 3, 1} : Ints{0, 2, 1, 3}}}));
}

static ValueId projected(GraphMaker& m, ValueId x, int64_t width) {
  const Ids made =
      m.add("MatMul", {x, m.fresh(DType::kFloat32, {m.extent_of(x, 2), width}, true)}, Kind::kAdds);
  if (made.empty() || m.one_in(2)) return first_of(made);
  return first_of(m.add("Add", {made[0], m.fresh(DType::kFloat32, {width}, true)}, Kind::kAdds));
}

// The heads of keys or values, as many as those of the queries.
static ValueId repeated(GraphMaker& m, ValueId x, int64_t times) {
  if (!x.valid() || times == 1) return x;
  const Ints shape = m.shape_of(x);
  const Ids one = m.add("Unsqueeze", {x, m.integers({2})}, Kind::kMoves);
  if (one.empty()) return {};
  const Ids several = m.add("Expand",
                            {one[0], m.integers({shape[0], shape[1], times, shape[2], shape[3]})},
                            Kind::kMoves);
  if (several.empty()) return {};
  return first_of(m.add("Reshape",
                        {several[0], m.integers({shape[0], shape[1] * times, shape[2], shape[3]})},
                        Kind::kMoves));
}

static ValueId rotated(GraphMaker& m, ValueId x, int64_t positions, int64_t width) {
  if (!x.valid() || width % 2 != 0) return x;
  const ValueId cosines = m.fresh(DType::kFloat32, {positions, width / 2}, true);
  const ValueId sines = m.fresh(DType::kFloat32, {positions, width / 2}, true);
  Tensor at(DType::kInt64, {m.extent_of(x, 0), positions});
  for (int64_t i = 0; i < at.num_elements(); ++i) at.set_int(i, i % positions);
  const Ids made = m.add("RotaryEmbedding",
                         {x, cosines, sines, m.constant(at)},
                         Kind::kSmooth,
                         {{"interleaved", int64_t{m.one_in(2)}}});
  return made.empty() ? x : made[0];
}

// Whether a query sees a key; each query sees the first one.
static Tensor visible(GraphMaker& m, const Ints& shape, bool causal) {
  Tensor mask(DType::kBool, shape);
  const int64_t keys = shape.back(), queries = shape[shape.size() - 2];
  for (int64_t i = 0; i < mask.num_elements(); ++i) {
    const int64_t key = i % keys, query = i / keys % queries;
    const bool sees = causal ? key <= query + keys - queries : m.rng().below(3) > 0;
    mask.set_int(i, key == 0 || sees ? 1 : 0);
  }
  return mask;
}

// Adds biases to the scores and hides some of them.
static ValueId masked(GraphMaker& m, ValueId scores, const Heads& h) {
  for (int64_t n = m.between(0, 2); n-- > 0;) {
    const Ints shape = m.choose<Ints>({{1, h.heads, h.queries, h.keys},
                                       {h.batch, 1, 1, h.keys},
                                       {h.queries, h.keys},
                                       {1, 1, h.queries, h.keys}});
    const Ids sum =
        m.add("Add", {scores, m.fresh(DType::kFloat32, shape, m.one_in(2))}, Kind::kAdds);
    if (sum.empty()) return {};
    scores = sum[0];
  }
  if (m.one_in(2)) return scores;
  const bool causal = m.one_in(2);
  const Ints shape =
      causal ? m.choose<Ints>({{h.queries, h.keys}, {1, 1, h.queries, h.keys}})
             : m.choose<Ints>({{h.batch, 1, h.queries, h.keys}, {h.queries, h.keys}, {1, h.keys}});
  const Tensor mask = visible(m, shape, causal);
  const double low = m.choose({-1e4, -1e9, -3.4e38, -std::numeric_limits<double>::infinity()});
  if (m.one_in(2)) {
    const ValueId sees = causal && !m.one_in(4) ? m.constant(mask) : m.input(mask);
    return first_of(m.add("Where", {sees, scores, m.scalar(low, DType::kFloat32)}, Kind::kMasks));
  }
  Tensor bias(DType::kFloat32, shape);
  for (int64_t i = 0; i < bias.num_elements(); ++i) bias.set(i, mask.get_int(i) != 0 ? 0 : low);
  return first_of(m.add("Add", {scores, m.constant(bias)}, Kind::kMasks));
}

static ValueId scaled(GraphMaker& m, ValueId x) {
  if (!x.valid()) return {};
  const bool times = m.one_in(2);
  return first_of(
      m.add(times ? "Mul" : "Div", {x, m.scalar(times ? 0.5 : 2, DType::kFloat32)}, Kind::kSmooth));
}

bool attention_heads(GraphMaker& m) {
  Heads h = {m.between(1, 2), m.between(1, 4), 0, m.extent(), 0, m.between(1, 8)};
  h.shared = h.heads % 2 == 0 && m.one_in(3) ? h.heads / 2 : h.heads;
  const bool itself = m.one_in(2);
  h.keys = itself ? h.queries : m.extent();
  const int64_t all = h.heads * h.width, few = h.shared * h.width;
  ValueId q, k, v;
  const bool turned = m.one_in(2);
  const ValueId x = m.pick(
      [&](ValueId id) {
        return m.dtype(id) == DType::kFloat32 && m.rank(id) == 3 && m.extent_of(id, 0) == h.batch &&
               m.extent_of(id, 1) == h.queries && m.facts(id).scale < 10;
      },
      {h.batch, h.queries, m.extent()});
  if (m.dtype(x) != DType::kFloat32) return false;
  if (itself && m.one_in(2)) {  // parts of one projection
    const ValueId whole = projected(m, x, all + 2 * few);
    if (!whole.valid()) return false;
    const Ids parts =
        m.add("Split", {whole, m.integers({all, few, few})}, Kind::kMoves, {{"axis", -1L}}, 3);
    if (parts.empty()) return false;
    q = parted(m, parts[0], h.heads, false);
    k = parted(m, parts[1], h.shared, turned);
    v = parted(m, parts[2], h.shared, false);
  } else if (m.one_in(3)) {
    q = m.fresh(DType::kFloat32, {h.batch, h.heads, h.queries, h.width});
    const Ints keys = {h.batch, h.shared, h.keys, h.width};
    const Ints keys_turned = {h.batch, h.shared, h.width, h.keys};
    k = m.fresh(DType::kFloat32, turned ? keys_turned : keys);
    v = m.fresh(DType::kFloat32, keys);
  } else {
    const ValueId y = itself ? x : m.fresh(DType::kFloat32, {h.batch, h.keys, m.extent()});
    q = parted(m, projected(m, x, all), h.heads, false);
    const ValueId of_k = projected(m, y, few), of_v = projected(m, y, few);
    k = parted(m, of_k, h.shared, turned);
    v = parted(m, of_v, h.shared, false);
  }
  if (!q.valid() || !k.valid() || !v.valid()) return false;
  if (!turned && m.one_in(4)) {
    q = rotated(m, q, h.queries, h.width);
    k = rotated(m, k, h.keys, h.width);
  }
  if (m.one_in(4)) q = scaled(m, q);
  if (m.one_in(4)) k = scaled(m, k);
  k = repeated(m, k, h.heads / h.shared);
  v = repeated(m, v, h.heads / h.shared);
  if (!q.valid() || !k.valid() || !v.valid()) return false;
  if (!turned) k = first_of(m.add("Transpose", {k}, Kind::kMoves, {{"perm", Ints{0, 1, 3, 2}}}));
  if (!k.valid()) return false;
  ValueId scores = first_of(m.add("MatMul", {q, k}, Kind::kAdds));
  if (scores.valid() && !m.one_in(4)) scores = scaled(m, scores);
  if (!scores.valid() || m.facts(scores).scale > 30) return false;
  scores = masked(m, scores, h);
  if (!scores.valid()) return false;
  const Ids shares = m.add("Softmax", {scores}, Kind::kSmooth, {{"axis", m.one_in(2) ? -1L : 3L}});
  if (shares.empty()) return false;
  const Ids made = m.add("MatMul", {shares[0], v}, Kind::kSmooth);
  if (made.empty()) return false;
  if (m.one_in(4)) return true;
  const Ids rows = m.add("Transpose", made, Kind::kMoves, {{"perm", Ints{0, 2, 1, 3}}});
  if (rows.empty()) return false;
  const ValueId joined =
      first_of(m.add("Reshape", {rows[0], m.integers({h.batch, h.queries, all})}, Kind::kMoves));
  if (!joined.valid() || m.one_in(2)) return joined.valid();
  const ValueId out = projected(m, joined, m.extent_of(x, 2));
  if (!out.valid() || m.one_in(2)) return out.valid();
  return m.one("Add", {x, out}, Kind::kSmooth);
}

// ONNX's own operator.
bool attention_operator(GraphMaker& m) {
  const int64_t b = m.between(1, 2), shared = m.between(1, 3), s = m.extent(), t = m.extent();
  const int64_t heads = shared * m.between(1, 2), width = m.between(1, 8);
  const bool flat = m.one_in(2);
  const auto operand = [&](int64_t h, int64_t positions) {
    return m.fresh(DType::kFloat32,
                   flat ? Ints{b, positions, h * width} : Ints{b, h, positions, width});
  };
  const ValueId q = operand(heads, s), k = operand(shared, t), v = operand(shared, t);
  Ids operands = {q, k, v};
  if (m.one_in(2)) operands.push_back(m.constant(visible(m, {s, t}, false)));
  Attributes attributes;
  if (flat) attributes = {{"q_num_heads", heads}, {"kv_num_heads", shared}};
  if (t >= s && operands.size() == 3 && m.one_in(2)) attributes["is_causal"] = int64_t{1};
  if (m.one_in(4)) attributes["softcap"] = 2.0;
  return m.one("Attention", operands, Kind::kSmooth, attributes);
}

bool recurrent(GraphMaker& m) {
  struct Row {
    const char* op;
    int64_t gates;
  };
  const Row row = m.choose<Row>({{"LSTM", 4}, {"GRU", 3}, {"RNN", 1}});
  const int64_t steps = m.between(1, 4), batch = m.between(1, 3), hidden = m.between(1, 9);
  const std::string direction = m.choose<const char*>({"forward", "reverse", "bidirectional"});
  const int64_t directions = direction == "bidirectional" ? 2 : 1, rows = row.gates * hidden;
  const bool batch_first = m.one_in(4);
  const ValueId x = m.pick(
      [&](ValueId id) {
        return m.dtype(id) == DType::kFloat32 && m.rank(id) == 3 && m.extent_of(id, 0) <= 4;
      },
      {batch_first ? batch : steps, batch_first ? steps : batch, m.extent()});
  if (m.dtype(x) != DType::kFloat32 || m.extent_of(x, batch_first ? 1 : 0) > 4) return false;
  const int64_t n = m.extent_of(x, batch_first ? 0 : 1);
  const ValueId w = m.fresh(DType::kFloat32, {directions, rows, m.extent_of(x, 2)}, true);
  const ValueId r = m.fresh(DType::kFloat32, {directions, rows, hidden}, true);
  Ids operands = {x, w, r};
  const bool biased = m.one_in(2), parted = m.one_in(3), started = m.one_in(2);
  const Ints state = batch_first ? Ints{n, directions, hidden} : Ints{directions, n, hidden};
  operands.push_back(biased ? m.fresh(DType::kFloat32, {directions, 2 * rows}, true) : ValueId{});
  Tensor lengths(DType::kInt32, {n});
  for (int64_t i = 0; i < n; ++i)
    lengths.set_int(i, m.between(1, m.extent_of(x, batch_first ? 1 : 0)));
  operands.push_back(!parted ? ValueId{} : m.one_in(2) ? m.constant(lengths) : m.input(lengths));
  operands.push_back(started ? m.fresh(DType::kFloat32, state) : ValueId{});
  if (row.gates == 4 && started) operands.push_back(m.fresh(DType::kFloat32, state));
  Attributes attributes = {{"hidden_size", hidden}, {"direction", direction}};
  if (batch_first) attributes["layout"] = int64_t{1};
  if (row.gates == 3 && m.one_in(2)) attributes["linear_before_reset"] = int64_t{1};
  const int64_t outputs = m.between(1, row.gates == 4 ? 3 : 2);
  return !m.add(row.op, operands, Kind::kSmooth, attributes, static_cast<size_t>(outputs)).empty();
}

}  // namespace pruner
