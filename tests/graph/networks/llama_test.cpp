#include "graph/networks/llama.h"

#include "graph/small_graph.h"

namespace pruner {
namespace {

using Rows = std::vector<std::vector<double>>;

constexpr Llama kSmall = {"small", 2, 12, 3, 1, 10, 7, 100, 1e-3};
constexpr int64_t kHead = 4, kLength = 5;

Graph small(int64_t cached = 0) {
  NetworkOptions options;
  options.cache_length = cached;
  NetworkBuilder b(kSmall.name, options);
  const ValueId ids = b.input("input_ids", {1, kLength}, DType::kInt64);
  const CachePlace cache = cache_place(b, options);
  return b.finish({{llama_logits(b, kSmall, ids, cache), "logits"}});
}

// The same from its formulas, position by position, on the weights of a graph.
class Reference {
 public:
  explicit Reference(const Graph& graph) {
    for (const Value& value : graph.values)
      if (value.constant) weights_[value.name] = &*value.constant;
  }

  Rows logits(const Ints& ids) const {
    const Tensor& words = weight("model.embed_tokens");
    Rows x, out;
    for (const int64_t id : ids) {
      x.emplace_back();
      for (int64_t i = 0; i < kSmall.hidden; ++i)
        x.back().push_back(words.get(id * kSmall.hidden + i));
    }
    for (int64_t layer = 0; layer < kSmall.layers; ++layer)
      add_layer(x, "model.layers." + std::to_string(layer));
    for (const std::vector<double>& row : normed(x, "model.norm")) {
      out.emplace_back(kSmall.vocabulary, 0.0);
      for (int64_t word = 0; word < kSmall.vocabulary; ++word)
        for (int64_t i = 0; i < kSmall.hidden; ++i)
          out.back()[word] += row[i] * words.get(word * kSmall.hidden + i);
    }
    return out;
  }

 private:
  const Tensor& weight(const std::string& name) const { return *weights_.at(name + ".weight"); }

  Rows normed(const Rows& x, const std::string& name) const {
    Rows y = x;
    for (std::vector<double>& row : y) {
      double squares = 0;
      for (const double v : row) squares += v * v;
      const double root = std::sqrt(squares / static_cast<double>(row.size()) + kSmall.epsilon);
      for (size_t i = 0; i < row.size(); ++i)
        row[i] *= weight(name).get(static_cast<int64_t>(i)) / root;
    }
    return y;
  }

  Rows times(const Rows& x, const std::string& name) const {
    const Tensor& w = weight(name);
    const int64_t columns = w.shape()[1];
    Rows y;
    for (const std::vector<double>& row : x) {
      y.emplace_back(columns, 0.0);
      for (int64_t i = 0; i < w.shape()[0]; ++i)
        for (int64_t j = 0; j < columns; ++j) y.back()[j] += row[i] * w.get(i * columns + j);
    }
    return y;
  }

  // Element i of a head at a position turns with that half a head away, by an angle for the two.
  static Rows turned(const Rows& x) {
    Rows y = x;
    for (size_t at = 0; at < x.size(); ++at) {
      for (size_t i = 0; i < x[at].size(); ++i) {
        const size_t pair = i % (kHead / 2);
        const double angle =
            static_cast<double>(at) * std::pow(kSmall.rope_theta, -2.0 * pair / kHead);
        const bool first = i % kHead < kHead / 2;
        const double other = first ? -x[at][i + kHead / 2] : x[at][i - kHead / 2];
        y[at][i] = x[at][i] * std::cos(angle) + other * std::sin(angle);
      }
    }
    return y;
  }

  static Rows attended(const Rows& q, const Rows& k, const Rows& v) {
    Rows y = q;
    const size_t sharing = kSmall.heads / kSmall.key_value_heads;
    for (size_t at = 0; at < q.size(); ++at) {
      for (size_t head = 0; head < static_cast<size_t>(kSmall.heads); ++head) {
        const size_t from = head * kHead, shared = head / sharing * kHead;
        std::vector<double> weights;
        double sum = 0;
        for (size_t key = 0; key <= at; ++key) {
          double score = 0;
          for (size_t i = 0; i < kHead; ++i) score += q[at][from + i] * k[key][shared + i];
          weights.push_back(std::exp(score / std::sqrt(kHead)));
          sum += weights.back();
        }
        for (size_t i = 0; i < kHead; ++i) {
          y[at][from + i] = 0;
          for (size_t key = 0; key <= at; ++key)
            y[at][from + i] += weights[key] / sum * v[key][shared + i];
        }
      }
    }
    return y;
  }

  static void add(Rows& x, const Rows& y) {
    for (size_t r = 0; r < x.size(); ++r)
      for (size_t i = 0; i < x[r].size(); ++i) x[r][i] += y[r][i];
  }

  void add_layer(Rows& x, const std::string& name) const {
    const Rows seen = normed(x, name + ".input_layernorm");
    const auto projected = [&](const char* which) { return times(seen, name + which); };
    add(x,
        times(attended(turned(projected(".self_attn.q_proj")),
                       turned(projected(".self_attn.k_proj")),
                       projected(".self_attn.v_proj")),
              name + ".self_attn.o_proj"));
    const Rows y = normed(x, name + ".post_attention_layernorm");
    Rows gate = times(y, name + ".mlp.gate_proj");
    const Rows up = times(y, name + ".mlp.up_proj");
    for (size_t r = 0; r < gate.size(); ++r)
      for (size_t i = 0; i < gate[r].size(); ++i)
        gate[r][i] *= up[r][i] / (1 + std::exp(-gate[r][i]));
    add(x, times(gate, name + ".mlp.down_proj"));
  }

  std::map<std::string, const Tensor*> weights_;
};

TEST(Llama, ComputesItsFormulas) {
  const Graph graph = small();
  const Ints ids = {3, 0, 6, 6, 2};
  const Tensor found = run_graph(graph, {integers({1, kLength}, ids)})[0];
  std::vector<double> expected;
  for (const std::vector<double>& row : Reference(graph).logits(ids))
    expected.insert(expected.end(), row.begin(), row.end());
  expect_near(found, floats({1, kLength, kSmall.vocabulary}, expected), 1e-4);
}

// Keys and values stand in caches, and what comes before the rows of a run was put there.
TEST(Llama, ComputesTheSameByItsCaches) {
  const Ints ids = {3, 0, 6, 6, 2};
  const Graph whole = small(), cached = small(2 * kLength);
  const auto run = [&](int64_t past, const std::vector<Tensor>& states) {
    std::vector<Tensor> inputs = {integers({1, kLength}, ids), integers({1}, {past})};
    inputs.insert(inputs.end(), states.begin(), states.end());
    return run_graph(cached, inputs);
  };
  std::vector<Tensor> zeros;
  for (const State& state : cached.states)
    zeros.emplace_back(DType::kFloat32, cached[cached.inputs[state.input]].shape);
  const std::vector<Tensor> first = run(0, zeros);
  expect_near(first[0], run_graph(whole, {integers({1, kLength}, ids)})[0], 1e-4);
  // The last row sees all ten.
  const Tensor second = run(kLength, {first.begin() + 1, first.end()})[0];
  Ints twice = ids;
  twice.insert(twice.end(), ids.begin(), ids.end());
  const std::vector<double> expected = Reference(whole).logits(twice).back();
  for (int64_t word = 0; word < kSmall.vocabulary; ++word)
    EXPECT_NEAR(second.get((kLength - 1) * kSmall.vocabulary + word), expected[word], 1e-4);
}

TEST(Llama, FusesWhatABlockIsMadeOf) {
  std::map<std::string, int> count;
  for (const Node& node : run_graph_passes(small()).nodes) ++count[node.op];
  EXPECT_EQ(count["FusedAttention"], kSmall.layers);
  EXPECT_EQ(count["RMSNormalization"], 2 * kSmall.layers + 1);
  EXPECT_EQ(count["Transpose"], 0);
  count.clear();
  for (const Node& node : run_graph_passes(small(kLength)).nodes) ++count[node.op];
  EXPECT_EQ(count["FusedAttention"], kSmall.layers);
  EXPECT_EQ(count["UpdateState"], 2 * kSmall.layers);
}

}  // namespace
}  // namespace pruner
