#include "graph/networks/networks.h"
#include "graph/small_graph.h"

namespace pruner {
namespace {

// How heads of queries share those of keys and values.
enum class Sharing { kNone, kRows, kRepeats };

struct Spelling {
  bool div = false, scaled_first = false, bias = false, causal = false, late = false;
  bool mask = false, mask_input = false;
  bool by_positions = false;          // slices of one projection
  bool queries_by_positions = false;  // queries are a projection; keys and values are caches
  double hidden = std::numeric_limits<float>::lowest();
  Sharing sharing = Sharing::kNone;
  bool factors_scaled = false;  // the export of torch.nn.functional.scaled_dot_product_attention
  bool causal_bias = false;     // 0 and what is lower than any score
  bool two_biases = false;      // one bias for positions and one for the mask
  bool nan_is_zero = false;     // queries that see nothing give 0: torch's export
};

constexpr int64_t kBatch = 2, kHeads = 4, kWidth = 5;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor triangle(int64_t queries, int64_t keys, int64_t later) {
  Tensor mask(DType::kBool, {1, 1, queries, keys});
  for (int64_t i = 0; i < mask.num_elements(); ++i)
    mask.set(i, i % keys <= i / keys + later ? 1 : 0);
  return mask;
}

// HuggingFace's repeat_kv.
ValueId repeated(NetworkBuilder& b, ValueId x, int64_t times) {
  const Ints shape = b.shape(x);
  const ValueId parted = b.node("Unsqueeze", {x, b.integers("axis", {2})});
  const ValueId expanded = b.node(
      "Expand", {parted, b.integers("times", {shape[0], shape[1], times, shape[2], shape[3]})});
  return b.node("Reshape",
                {expanded, b.integers("heads", {shape[0], times * shape[1], shape[2], shape[3]})});
}

// Returns an attention of 4 queries and 6 keys, or 4 keys if `s.by_positions`.
Graph attention(const Spelling& s) {
  NetworkBuilder b("attention");
  const int64_t queries = 4, keys = s.by_positions ? 4 : 6;
  const int64_t sharing = s.sharing == Sharing::kNone ? 1 : 2, shared = kHeads / sharing;
  const auto heads = [&](const char* name, int64_t count, int64_t positions) {
    return b.input(name, {kBatch, count, positions, kWidth}, DType::kFloat32);
  };
  ValueId q, k, v;
  if (s.by_positions) {
    const ValueId all =
        b.input("all", {kBatch, queries, kHeads + 2 * shared, kWidth}, DType::kFloat32);
    const auto part = [&](int64_t first, int64_t count) {
      const ValueId slice = b.node("Slice",
                                   {all,
                                    b.integers("start", {first}),
                                    b.integers("end", {first + count}),
                                    b.integers("axis", {2})});
      return b.node("Transpose", {slice}, {{"perm", Ints{0, 2, 1, 3}}});
    };
    q = part(0, kHeads), k = part(kHeads, shared), v = part(kHeads + shared, shared);
  } else {
    q = s.queries_by_positions ? heads("q", queries, kHeads) : heads("q", kHeads, queries);
    if (s.queries_by_positions) q = b.node("Transpose", {q}, {{"perm", Ints{0, 2, 1, 3}}});
    k = heads("k", shared, keys), v = heads("v", shared, keys);
  }
  if (s.sharing == Sharing::kRepeats) k = repeated(b, k, sharing), v = repeated(b, v, sharing);
  ValueId turned = b.node("Transpose", {k}, {{"perm", Ints{0, 1, 3, 2}}});
  if (s.factors_scaled) {
    q = b.node("Mul", {q, b.scalar(0.6)});
    turned = b.node("Mul", {turned, b.scalar(0.5)});
  }
  const auto parted = [&](ValueId of, const char* name, Ints shape) {
    return s.sharing == Sharing::kRows ? b.node("Reshape", {of, b.integers(name, shape)}) : of;
  };
  const int64_t rows = sharing * queries;
  q = parted(q, "rows", {kBatch, shared, rows, kWidth});
  ValueId x = parted(b.node("MatMul", {q, turned}), "scores", {kBatch, kHeads, queries, keys});
  if (s.div) x = b.node("Div", {x, b.scalar(2)});
  if (!s.div && !s.factors_scaled)
    x = s.scaled_first ? b.node("Mul", {b.scalar(0.3), x}) : b.node("Mul", {x, b.scalar(0.3)});
  if (s.causal_bias) {
    Tensor never = triangle(queries, keys, keys - queries), bias(DType::kFloat32, never.shape());
    for (int64_t i = 0; i < bias.num_elements(); ++i) bias.set(i, never.get(i) != 0 ? 0 : s.hidden);
    x = b.node("Add", {x, b.constant("bias", bias)});
  }
  if (s.bias) x = b.node("Add", {b.input("bias", {kHeads, 1, keys}, DType::kFloat32), x});
  if (s.two_biases) x = b.node("Add", {b.input("more", {kBatch, 1, 1, keys}, DType::kFloat32), x});
  if (s.causal || s.mask) {
    ValueId seen = s.mask_input
                       ? b.input("seen", {kBatch, 1, 1, keys}, DType::kBool)
                       : b.constant("seen", triangle(queries, keys, s.late ? 1 : keys - queries));
    x = b.node("Where", {seen, x, b.scalar(s.hidden)});
  }
  ValueId weights = b.node("Softmax", {x}, {{"axis", int64_t{-1}}});
  if (s.nan_is_zero) weights = b.node("Where", {b.node("IsNaN", {weights}), b.scalar(0), weights});
  weights = parted(weights, "weights", {kBatch, shared, rows, keys});
  const ValueId y =
      parted(b.node("MatMul", {weights, v}), "result", {kBatch, kHeads, queries, kWidth});
  if (!s.by_positions && !s.queries_by_positions) return b.finish({{y, "y"}});
  return b.finish({{b.node("Transpose", {y}, {{"perm", Ints{0, 2, 1, 3}}}), "y"}});
}

std::vector<Tensor> inputs_of(const Graph& graph, bool hides = false) {
  std::vector<Tensor> inputs;
  for (const ValueId id : graph.inputs) {
    const Value& value = graph[id];
    inputs.push_back(waves(value.shape, static_cast<double>(inputs.size())));
    if (value.dtype != DType::kBool) continue;
    Tensor seen(DType::kBool, value.shape);
    // The second of the batch sees nothing where it may.
    const int64_t visible = hides ? seen.num_elements() / 2 : seen.num_elements();
    for (int64_t i = 0; i < visible; ++i) seen.set(i, i % 3 != 1 ? 1 : 0);
    inputs.back() = std::move(seen);
  }
  return inputs;
}

const Node* fused(const Graph& graph) {
  const auto at = std::ranges::find(graph.nodes, "FusedAttention", &Node::op);
  return at == graph.nodes.end() ? nullptr : &*at;
}

TEST(FuseAttention, KnowsItsSpellings) {
  for (const Spelling& s :
       {Spelling{},
        Spelling{.div = true},
        Spelling{.scaled_first = true},
        Spelling{.bias = true},
        Spelling{.causal = true},
        Spelling{.bias = true, .causal = true},
        Spelling{.causal = true, .late = true},
        Spelling{.mask = true, .mask_input = true},
        Spelling{.bias = true, .mask = true, .mask_input = true, .hidden = -3},
        Spelling{.by_positions = true},
        Spelling{.causal = true, .by_positions = true},
        Spelling{.queries_by_positions = true},
        Spelling{.causal = true, .queries_by_positions = true, .sharing = Sharing::kRepeats},
        Spelling{.factors_scaled = true},
        Spelling{.by_positions = true, .factors_scaled = true},
        Spelling{.causal_bias = true},
        Spelling{.bias = true, .two_biases = true},
        Spelling{.bias = true, .causal_bias = true, .two_biases = true},
        Spelling{.causal_bias = true, .nan_is_zero = true},
        Spelling{.mask = true, .mask_input = true, .hidden = -kInfinity, .nan_is_zero = true},
        Spelling{.hidden = -3, .causal_bias = true},
        Spelling{.bias = true, .sharing = Sharing::kRows},
        Spelling{.causal = true, .sharing = Sharing::kRepeats},
        Spelling{.by_positions = true, .sharing = Sharing::kRows},
        Spelling{.by_positions = true, .sharing = Sharing::kRepeats},
        Spelling{.by_positions = true,
        .sharing = Sharing::kRepeats,
        .factors_scaled = true,
        .causal_bias = true}}) {
    const Graph graph = attention(s), passed = run_graph_passes(graph);
    EXPECT_EQ(operators(passed), s.two_biases ? "Add FusedAttention" : "FusedAttention");
    run_graph(graph, inputs_of(graph, s.nan_is_zero));
    const Node* node = fused(passed);
    ASSERT_NE(node, nullptr);
    // A constant triangle is no input.
    const bool causal_bias = s.causal_bias && s.hidden < -3;
    EXPECT_EQ(node->attributes.contains("causal"), (s.causal && !s.late) || causal_bias);
    EXPECT_EQ(node->attributes.contains("nan_is_zero"), s.nan_is_zero);
    EXPECT_EQ(node->attributes.contains("sharing"), s.sharing != Sharing::kNone);
    EXPECT_EQ((OpCall{passed, *node}.integers("positions_first")),
              s.by_positions           ? (Ints{1, 1, 1})
              : s.queries_by_positions ? (Ints{1, 0, 0})
                                       : Ints{});
  }
}

// Keys as torch's scaled_dot_product_attention is exported: shared heads repeated, then transposed
// as one batch.
TEST(FuseAttention, ReadsTorchsKeysWhereTheyLie) {
  for (const int64_t batch : {1, 2}) {
    NetworkBuilder b("torch");
    const auto heads = [&](const char* name, int64_t count) {
      const ValueId x = b.input(name, {batch, 6, count * 5}, DType::kFloat32);
      return b.node("Transpose",
                    {b.node("Reshape", {x, b.integers("heads", {batch, 6, count, 5})})},
                    {{"perm", Ints{0, 2, 1, 3}}});
    };
    const auto flat = [&](ValueId x) {
      return b.node("Reshape", {x, b.integers("flat", {batch * 4, 6, 5})});
    };
    const ValueId q = heads("q", 4), k = flat(repeated(b, heads("k", 2), 2)),
                  v = repeated(b, heads("v", 2), 2);
    const ValueId turned = b.node("Reshape",
                                  {b.node("Transpose", {k}, {{"perm", Ints{0, 2, 1}}}),
                                   b.integers("parted", {batch, 4, 5, 6})});
    const ValueId weights =
        b.node("Softmax", {b.node("MatMul", {q, turned})}, {{"axis", int64_t{-1}}});
    const ValueId y =
        b.node("Transpose", {b.node("MatMul", {weights, v})}, {{"perm", Ints{0, 2, 1, 3}}});
    const Graph graph = b.finish({{y, "y"}});
    run_graph(graph, inputs_of(graph));
    EXPECT_EQ(operators(run_graph_passes(graph)), "Reshape Reshape Reshape FusedAttention");
  }
}

TEST(FuseAttention, LeavesAloneWhatOthersRead) {
  NetworkBuilder b("read");
  const auto input = [&](const char* name) { return b.input(name, {1, 2, 4, 4}, DType::kFloat32); };
  const ValueId q = input("q"), k = input("k"), v = input("v");
  const ValueId turned = b.node("Transpose", {k}, {{"perm", Ints{0, 1, 3, 2}}});
  const ValueId weights =
      b.node("Softmax", {b.node("MatMul", {q, turned})}, {{"axis", int64_t{-1}}});
  const ValueId y = b.node("MatMul", {weights, v});
  const Graph graph = b.finish({{y, "y"}, {weights, "weights"}});
  EXPECT_EQ(fused(run_graph_passes(graph)), nullptr);
  run_graph(graph, inputs_of(graph));
}

// A mask of more batches than the scores, and what one attention makes for another without a node
// between them.
TEST(FuseAttention, TakesWhatFitsAlone) {
  NetworkBuilder b("chain");
  const auto input = [&](const char* name, int64_t batch) {
    return b.input(name, {batch, 2, 4, 4}, DType::kFloat32);
  };
  const ValueId q = input("q", 1), k = input("k", 1), v = input("v", 1), w = input("w", 3);
  const auto weights = [&](ValueId scores) {
    return b.node("Softmax", {scores}, {{"axis", int64_t{-1}}});
  };
  const auto turned = [&](ValueId x) {
    return b.node("Transpose", {x}, {{"perm", Ints{0, 1, 3, 2}}});
  };
  const ValueId first = b.node("MatMul", {weights(b.node("MatMul", {q, turned(k)})), v});
  const ValueId second =
      b.node("MatMul", {weights(b.node("MatMul", {first, turned(first)})), first});
  const ValueId seen = b.input("seen", {3, 1, 1, 4}, DType::kBool);
  const ValueId wide =
      b.node("Where", {seen, b.node("MatMul", {second, turned(k)}), b.scalar(-1e9)});
  const Graph graph = b.finish({{b.node("MatMul", {weights(wide), w}), "y"}});
  EXPECT_EQ(operators(run_graph_passes(graph)),
            "FusedAttention FusedAttention MatMul Where Softmax MatMul");
  run_graph(graph, inputs_of(graph));
}

TEST(FuseAttention, LeavesProductsOf16BitsToTheirUnits) {
  PassOptions options;
  options.precision = Precision::kBFloat16;
  options.target = *parse_target("llvm -mcpu=sapphirerapids", 2);
  EXPECT_EQ(fused(run_graph_passes(attention({}), options)), nullptr);
}

// One kernel reads the slices of one projection in 16 bits where they lie, and writes what the next
// product reads. Other devices and types have no such kernel.
TEST(FuseAttention, FusesWhatUnitsOfGpusMultiply) {
  const Result<Graph> network =
      build_network("bert_tiny", {.image_size = 32, .sequence_length = 16, .input_shapes = {}});
  ASSERT_TRUE(network.ok()) << network.error().message();
  const auto passed = [&](const char* arch, Precision precision) {
    PassOptions options;
    options.precision = precision;
    options.target = *parse_target(std::string("cuda --arch=") + arch, 0);
    return run_graph_passes(*network, options);
  };
  for (const Precision precision : {Precision::kFloat16, Precision::kBFloat16}) {
    const Graph graph = passed("sm_80", precision);
    int found = 0;
    for (const Node& node : graph.nodes) {
      EXPECT_NE(node.op, "Transpose");
      EXPECT_NE(node.op, "Slice");
      if (node.op != "FusedAttention") continue;
      ++found;
      for (const ValueId id : {node.inputs[0], node.inputs[1], node.inputs[2], node.outputs[0]})
        EXPECT_EQ(graph[id].dtype, row_of(precision).type);
    }
    EXPECT_EQ(found, 6);
  }
  EXPECT_EQ(fused(passed("sm_75", Precision::kFloat16)), nullptr);
  EXPECT_EQ(fused(passed("sm_80", Precision::kTf32)), nullptr);
  EXPECT_EQ(fused(passed("sm_80", Precision::kFloat32)), nullptr);
}

// A network of float16 may take its softmax in float32 and round the weights. The units of a GPU
// round them anyway; on a CPU the network's own Cast stays.
TEST(FuseAttention, TakesNetworksOf16Bits) {
  const auto network = [](bool rounds) {
    NetworkBuilder b("half");
    const auto heads = [&](const char* name) {
      return b.input(name, {1, 2, 16, 16}, DType::kFloat16);
    };
    const auto to = [&](ValueId x, const char* dtype) {
      return rounds ? b.node("Cast", {x}, {{"to", std::string(dtype)}}) : x;
    };
    const ValueId q = heads("q"), k = heads("k"), v = heads("v");
    const ValueId turned = b.node("Transpose", {k}, {{"perm", Ints{0, 1, 3, 2}}});
    const ValueId scores = to(b.node("MatMul", {q, turned}), "float32");
    const ValueId weights = to(b.node("Softmax", {scores}, {{"axis", int64_t{-1}}}), "float16");
    return b.finish({{b.node("MatMul", {weights, v}), "y"}});
  };
  PassOptions gpu;
  gpu.precision = Precision::kFloat16;
  gpu.target = *parse_target("cuda --arch=sm_80", 0);
  for (const bool rounds : {false, true}) {
    EXPECT_NE(fused(run_graph_passes(network(rounds), gpu)), nullptr);
    EXPECT_EQ(fused(run_graph_passes(network(rounds))) != nullptr, !rounds);
  }
}

TEST(FusedAttention, SharesHeadsOfKeysAndValues) {
  const Tensor q = waves({1, 4, 3, 2}), k = waves({1, 2, 5, 2}, 1), v = waves({1, 2, 5, 7}, 2);
  const Attributes shared = {{"heads", int64_t{4}}, {"sharing", int64_t{2}}, {"scale", 0.5}};
  const Tensor found = run_op("FusedAttention", {q, k, v}, shared);
  const auto twice = [](const Tensor& t) {
    const int64_t head = t.num_elements() / 2;
    std::vector<int64_t> shape = t.shape();
    shape[1] = 4;
    Tensor out(DType::kFloat32, shape);
    for (int64_t i = 0; i < out.num_elements(); ++i)
      out.set(i, t.get(i / (2 * head) * head + i % head));
    return out;
  };
  const Attributes own = {{"heads", int64_t{4}}, {"scale", 0.5}};
  expect_near(found, run_op("FusedAttention", {q, twice(k), twice(v)}, own));
  EXPECT_EQ(found.shape(), (Ints{1, 4, 3, 7}));
}

TEST(FusedAttention, SaysWhatDoesNotFit) {
  const Tensor q = waves({1, 2, 3, 4}), k = waves({1, 2, 5, 4}), v = waves({1, 2, 6, 4});
  const Attributes two = {{"heads", int64_t{2}}};
  EXPECT_EQ(refusal("FusedAttention", {q, k, v}, two),
            "node \"it\": query 1x2x3x4, key 1x2x5x4 and value 1x2x6x4 do not fit");
  EXPECT_EQ(refusal("FusedAttention", {q, k, k}, {{"heads", int64_t{3}}}),
            "node \"it\": 1x2x3x4 has no 3 heads from 0 on");
  EXPECT_EQ(refusal("FusedAttention", {k, q, q}, {{"heads", int64_t{2}}, {"causal", int64_t{1}}}),
            "node \"it\": causal, with fewer keys than queries");
  EXPECT_EQ(refusal("FusedAttention", {q, k, k, waves({3, 3})}, two),
            "node \"it\": 3x3 does not fit scores of 1x2x3x5");
}

}  // namespace
}  // namespace pruner
