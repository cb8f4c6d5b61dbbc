// label: codegen
// Modules of several shapes: at each of them what a module of that shape alone computes.
#include <gtest/gtest.h>

#include "deploy/loaded_module.h"
#include "deploy/module.h"
#include "golden.h"
#include "graph/functions/body.h"
#include "graph/networks/networks.h"
#include "graph/networks/transformer.h"
#include "graph/partition_range.h"
#include "support/temporary_folder.h"

namespace pruner {
namespace {

/// A layer of an encoder over `seq` words and positions, which are a part of a table.
Graph encoder(int64_t batch, int64_t seq) {
  constexpr int64_t kWidth = 32, kHeads = 2, kWords = 50, kPositions = 64;
  NetworkBuilder b("encoder", NetworkOptions());
  const ValueId ids = b.input("input_ids", {batch, seq}, DType::kInt64);
  const ValueId words = b.weight("words", {kWords, kWidth}, kWidth, 1);
  const ValueId positions = b.weight("positions", {kPositions, kWidth}, kWidth, 1);
  const ValueId word = b.node("Gather", {words, ids}, {{"axis", int64_t{0}}});
  const ValueId x = b.node("Add", {word, first_rows(b, "rows", positions, seq)});
  const Attention self{x, x, x, kWidth, kHeads, {}};
  const ValueId y =
      layer_norm(b, "norm", b.node("Add", {attention(b, "attention", self), x}), 1e-6);
  const ValueId z = linear(b, "output", gelu(b, linear(b, "inner", y, 2 * kWidth)), kWidth);
  return b.finish({{z, "states"}, {token(b, z, 0), "first"}});
}

/// Convolutions, of which the second takes every other place, and a mean over all places.
Graph image_network(int64_t batch, int64_t size) {
  NetworkBuilder b("image", NetworkOptions());
  ValueId x = b.input("x", {batch, 3, size, size}, DType::kFloat32);
  x = b.relu(b.conv("first", x, {.channels = 8, .kernel = 3, .padding = 1}));
  x = b.relu(b.conv("second", x, {.channels = 16, .kernel = 3, .stride = 2, .padding = 1}));
  return b.finish({{b.node("GlobalAveragePool", {x}), "mean"}});
}

class RangeModules : public testing::Test {
 protected:
  using GraphAt = std::function<Graph(const SymbolValues&)>;

  Result<Partition> cut(const Graph& graph) const { return partition(graph, target_); }

  Result<Phase> phase(const std::vector<Symbol>& symbols, const GraphAt& at) const {
    const auto hinted = [&](const SymbolValues& values,
                            const std::shared_ptr<const RangeHints>& hints) {
      Graph graph = at(values);
      graph.hints = hints;
      return cut(graph);
    };
    TRY_ASSIGN(NetworkRanges network, partition_over(symbols, hinted));
    Partition greatest = network.ranges.front().largest;
    return Phase{
        "main", std::move(greatest), std::make_shared<const NetworkRanges>(std::move(network))};
  }

  LoadedModule build(const std::vector<Symbol>& symbols, const GraphAt& at) {
    Result<Phase> of = phase(symbols, at);
    EXPECT_TRUE(of.ok()) << of.error().message();
    const std::string path = folder_.path("range.so");
    const Result<ModuleSummary> built =
        build_module(std::span(&*of, 1), target_, nullptr, {.work_dir = ""}, path);
    EXPECT_TRUE(built.ok()) << built.error().message();
    Result<LoadedModule> module = load_module(path);
    EXPECT_TRUE(module.ok()) << module.error().message();
    return *std::move(module);
  }

  /// At each shape what the reference interpreter gives.
  void check(LoadedModule& module, const std::vector<SymbolValues>& shapes, const GraphAt& at) {
    for (const SymbolValues& values : shapes) {
      const std::string where = print(module.symbols(), values);
      const Result<TensorSpecs> specs = module.specs_at(values);
      ASSERT_TRUE(specs.ok()) << specs.error().message();
      const std::vector<Tensor> inputs = seeded_inputs(specs->inputs, 3);
      const auto expected = interpret_graph(at(values), inputs);
      ASSERT_TRUE(expected.ok()) << expected.error().message();
      const auto outputs = module.run(inputs);
      ASSERT_TRUE(outputs.ok()) << outputs.error().message();
      ASSERT_EQ(outputs->size(), expected->size());
      for (size_t o = 0; o < outputs->size(); ++o) {
        ASSERT_EQ((*outputs)[o].shape(), (*expected)[o].shape()) << where;
        for (int64_t e = 0; e < (*outputs)[o].num_elements(); ++e) {
          const double value = (*expected)[o].get(e);
          ASSERT_NEAR((*outputs)[o].get(e), value, 1e-4 * (1 + std::abs(value))) << where;
        }
      }
    }
  }

  using NamedGraph = std::pair<const char*, GraphAt>;

  /// Modules of networks over one symbol, each at all of its extents.
  void check_at_each(std::span<const NamedGraph> networks, int64_t least, int64_t most) {
    std::vector<SymbolValues> shapes;
    for (int64_t n = least; n <= most; ++n) shapes.push_back({n});
    for (const auto& [what, at] : networks) {
      SCOPED_TRACE(what);
      LoadedModule module = build({{"n", least, most, {}}}, at);
      check(module, shapes, at);
    }
  }

  const TemporaryFolder folder_ = *TemporaryFolder::make("");
  const Target target_ = host_target(2);
};

TEST_F(RangeModules, ComputeWhatTheInterpreterDoesAtEveryLength) {
  const GraphAt at = [](const SymbolValues& values) { return encoder(1, values[0]); };
  LoadedModule module = build({{"seq", 1, 48, {16}}}, at);
  std::vector<SymbolValues> shapes;
  for (int64_t seq = 1; seq <= 48; ++seq) shapes.push_back({seq});
  check(module, shapes, at);
}

TEST_F(RangeModules, ComputeWhatTheInterpreterDoesAtTwoDimensions) {
  const GraphAt at = [](const SymbolValues& values) { return encoder(values[0], values[1]); };
  LoadedModule module = build({{"batch", 2, 5, {}}, {"seq", 2, 12, {}}}, at);
  std::vector<SymbolValues> shapes;
  for (int64_t batch = 2; batch <= 5; ++batch)
    for (int64_t seq = 2; seq <= 12; ++seq) shapes.push_back({batch, seq});
  check(module, shapes, at);
}

TEST_F(RangeModules, ComputeWhatTheInterpreterDoesAtEveryBatch) {
  const GraphAt at = [](const SymbolValues& values) { return image_network(values[0], 10); };
  LoadedModule module = build({{"batch", 1, 8, {}}}, at);
  check(module, {{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}}, at);
}

// The mean over all places divides by their number; the windows of the second convolution end in
// padding at odd sizes alone.
TEST_F(RangeModules, ComputeWhatTheInterpreterDoesAtEverySize) {
  const GraphAt at = [](const SymbolValues& values) { return image_network(1, values[0]); };
  LoadedModule module = build({{"size", 8, 40, {}}}, at);
  std::vector<SymbolValues> shapes;
  for (int64_t size = 8; size <= 40; ++size) shapes.push_back({size});
  check(module, shapes, at);
}

TEST_F(RangeModules, ComputeWhatDependsOnTheExtentItself) {
  const auto start = [](NetworkBuilder& b, int64_t n) {
    return b.input("x", {1, 8, n}, DType::kFloat32);
  };
  const NamedGraph networks[] = {
      {"a last window that begins inside at odd extents",
       [&](const SymbolValues& n) {
         NetworkBuilder b("n", NetworkOptions());
         const Attributes window = {{"kernel_shape", std::vector<int64_t>{3}},
                                    {"strides", std::vector<int64_t>{2}},
                                    {"ceil_mode", int64_t{1}}};
         return b.finish({{b.node("MaxPool", {start(b, n[0])}, window), "y"}});
       }},
      {"windows that do not end in padding at each extent",
       [&](const SymbolValues& n) {
         NetworkBuilder b("n", NetworkOptions());
         const ValueId x = start(b, n[0]), w = b.weight("w", {16, 8, 3}, 24, 1);
         return b.finish({{b.node("Conv",
                                  {x, w},
                                  {{"dilations", std::vector<int64_t>{2}},
                                   {"strides", std::vector<int64_t>{2}},
                                   {"pads", std::vector<int64_t>{1, 1}}}),
                           "y"}});
       }},
      {"a slice that is all at some extents",
       [&](const SymbolValues& n) {
         NetworkBuilder b("n", NetworkOptions());
         const int64_t parts = n[0] / 7;
         const ValueId whole = b.node("Slice",
                                      {start(b, n[0]),
                                       b.integers("from", {0}),
                                       b.integers("to", {7 * parts}),
                                       b.integers("along", {2})});
         const ValueId windows = b.node("Reshape", {whole, b.integers("shape", {1, 8, parts, 7})});
         return b.finish({{b.node("ReduceMean", {windows, b.integers("axes", {3})}), "y"}});
       }},
      {"a row whose number the extent decides",
       [&](const SymbolValues& n) {
         NetworkBuilder b("n", NetworkOptions());
         const ValueId last = b.node(
             "Gather", {start(b, n[0]), b.integers("i", {n[0] - 1})}, {{"axis", int64_t{2}}});
         return b.finish({{b.relu(last), "y"}});
       }},
      {"positions over the extent",
       [&](const SymbolValues& n) {
         NetworkBuilder b("n", NetworkOptions());
         Tensor steps(DType::kFloat32, {n[0]}), length(DType::kFloat32, {});
         for (int64_t i = 0; i < n[0]; ++i) steps.set(i, static_cast<double>(i));
         length.set(0, static_cast<double>(n[0]));
         const ValueId part =
             b.node("Div", {b.constant("steps", steps), b.constant("length", length)});
         return b.finish({{b.node("Add", {start(b, n[0]), part}), "y"}});
       }},
      {"rows at places of a part",
       [&](const SymbolValues& n) {
         NetworkBuilder b("n", NetworkOptions());
         const ValueId part = b.node("Slice",
                                     {start(b, n[0]),
                                      b.integers("from", {-3}),
                                      b.integers("to", {n[0]}),
                                      b.integers("along", {2}),
                                      b.integers("step", {2})});
         return b.finish(
             {{b.node("Gather", {part, b.integers("i", {1})}, {{"axis", int64_t{2}}}), "y"}});
       }},
      {"positions behind those before",
       [&](const SymbolValues& n) {
         NetworkBuilder b("n", NetworkOptions());
         const auto number = [&](const char* name, int64_t value) {
           Tensor scalar(DType::kInt64, {});
           scalar.set_int(0, value);
           return b.constant(name, scalar);
         };
         const ValueId places =
             b.node("Range", {number("from", 3 * n[0]), number("to", n[0]), number("step", -2)});
         const ValueId floats = b.node("Cast", {places}, {{"to", std::string("float32")}});
         return b.finish({{b.node("Add", {start(b, n[0]), floats}), "y"}});
       }},
      {"constants that are outputs",
       [&](const SymbolValues& n) {
         NetworkBuilder b("n", NetworkOptions());
         const ValueId zeros = b.node("ConstantOfShape", {b.integers("square", {n[0], n[0]})});
         const ValueId ones = b.node("Cos", {zeros});
         const ValueId mask = b.node("Trilu", {ones}, {{"upper", int64_t{0}}});
         const ValueId wide = b.node("Unsqueeze", {mask, b.integers("first", {0})});
         return b.finish(
             {{b.relu(start(b, n[0])), "y"}, {mask, "mask"}, {wide, "wide"}, {zeros, "zeros"}});
       }},
      {"a part of the extent", [&](const SymbolValues& n) {
         NetworkBuilder b("n", NetworkOptions());
         const ValueId part = b.node("Slice",
                                     {start(b, n[0]),
                                      b.integers("from", {0}),
                                      b.integers("to", {7 * n[0] / 10}),
                                      b.integers("along", {2})});
         return b.finish({{b.node("Neg", {part}), "y"}});
       }}};
  check_at_each(networks, 17, 90);
}

// One network pads at some extents alone; another has a part that is longest below the greatest
// extent. Memory is planned for all extents.
TEST_F(RangeModules, ComputeWhatIsLongestInBetween) {
  const auto x = [](NetworkBuilder& b, int64_t n) {
    return b.relu(b.input("x", {2, 3, n}, DType::kFloat32));
  };
  const NamedGraph networks[] = {
      {"filled up to a multiple of 6",
       [&](const SymbolValues& n) {
         NetworkBuilder b("n", NetworkOptions());
         const ValueId pads = b.integers("pads", {0, 0, 0, 0, 0, (n[0] + 5) / 6 * 6 - n[0]});
         const ValueId whole = b.node("Pad", {x(b, n[0]), pads});
         const ValueId parts =
             b.node("Reshape", {whole, b.integers("shape", {2, 3, (n[0] + 5) / 6, 6})});
         return b.finish({{b.node("ReduceMax", {parts, b.integers("axes", {3})}), "y"}});
       }},
      {"the rest of a division by 7", [&](const SymbolValues& n) {
         NetworkBuilder b("n", NetworkOptions());
         const ValueId rest = b.node("Slice",
                                     {x(b, n[0]),
                                      b.integers("from", {n[0] - n[0] % 7 - 1}),
                                      b.integers("to", {n[0]}),
                                      b.integers("along", {2})});
         const ValueId sums = b.node("CumSum", {rest, b.integers("axis", {2})});
         return b.finish({{b.node("Softmax", {sums}, {{"axis", int64_t{2}}}), "y"}});
       }}};
  check_at_each(networks, 8, 85);
}

// A routine is told its shapes as numbers, which are others at each length.
TEST_F(RangeModules, RunRoutinesAtEveryLength) {
  const auto floats = [](NetworkBuilder& b, const char* name, std::vector<int64_t> shape) {
    return b.input(name, std::move(shape), DType::kFloat32);
  };
  const auto top = [&](int64_t n, int64_t k) {
    NetworkBuilder b("n", NetworkOptions());
    return b.finish({{b.node("TopK", {floats(b, "x", {3, n}), b.integers("k", {k})}), "y"}});
  };
  const NamedGraph networks[] = {
      {"the five greatest", [&](const SymbolValues& n) { return top(n[0], 5); }},
      {"all in order", [&](const SymbolValues& n) { return top(n[0], n[0]); }},
      {"the greater half", [&](const SymbolValues& n) { return top(n[0], n[0] / 2); }},
      {"at most twenty",
       [&](const SymbolValues& n) { return top(n[0], std::min<int64_t>(n[0], 20)); }},
      {"the greatest of a constant that grows inside",
       [](const SymbolValues& n) {
         NetworkBuilder b("n", NetworkOptions());
         const ValueId x = b.input("x", {n[0], 3}, DType::kFloat32);
         const ValueId columns = b.weight("columns", {2, 1, 3}, 3, 1);
         const ValueId grown = b.node("Expand", {columns, b.integers("shape", {2, n[0], 3})});
         const ValueId top = b.node("TopK", {grown, b.integers("k", {2})});
         return b.finish({{top, "top"}, {b.relu(x), "y"}});
       }},
      {"what is not 0",
       [&](const SymbolValues& n) {
         NetworkBuilder b("n", NetworkOptions());
         return b.finish({{b.node("NonZero", {b.relu(floats(b, "x", {n[0], 4}))}), "y"}});
       }},
      {"determinants",
       [&](const SymbolValues& n) {
         NetworkBuilder b("n", NetworkOptions());
         return b.finish({{b.node("Det", {floats(b, "x", {n[0], 3, 3})}), "y"}});
       }},
      {"rows in other places, which have a bound",
       [&](const SymbolValues& n) {
         NetworkBuilder b("n", NetworkOptions());
         const ValueId x = floats(b, "x", {n[0], 4}), rows = floats(b, "rows", {n[0], 4});
         const ValueId order = b.node(
             "TopK",
             {b.node("ReduceSum", {rows, b.integers("axes", {1})}, {{"keepdims", int64_t{0}}}),
              b.integers("k", {n[0]})},
             {{"axis", int64_t{0}}});
         const ValueId at =
             b.node("Cast",
                    {b.node("Clip", {order, b.scalar(0), b.scalar(static_cast<double>(n[0] - 1))})},
                    {{"to", std::string("int64")}});
         return b.finish({{b.node("ScatterND",
                                  {x, b.node("Unsqueeze", {at, b.integers("last", {1})}), rows},
                                  {{"reduction", std::string("add")}}),
                           "y"}});
       }},
      {"places between others, from the middle on", [&](const SymbolValues& n) {
         NetworkBuilder b("n", NetworkOptions());
         return b.finish(
             {{b.node("GridSample",
                      {floats(b, "x", {1, 2, n[0], 9}), floats(b, "grid", {1, 4, 5, 2})}),
               "y"}});
       }}};
  check_at_each(networks, 6, 64);
}

// Loops over as many steps as the sequence has, beside nodes for each.
TEST_F(RangeModules, RunRecurrencesOfEveryLength) {
  for (const char* op : {"LSTM", "GRU"}) {
    SCOPED_TRACE(op);
    const auto at = [&](bool loops_over_steps) {
      return [=](const SymbolValues& n) {
        const int64_t hidden = 20, rows = (op == std::string("LSTM") ? 4 : 3) * hidden;
        NetworkBuilder b("recurrent", NetworkOptions());
        const std::vector<ValueId> operands = {b.input("x", {n[0], 2, 6}, DType::kFloat32),
                                               b.weight("w", {2, rows, 6}, 6, 1),
                                               b.weight("r", {2, rows, hidden}, hidden, 1),
                                               b.weight("b", {2, 2 * rows}, 1, 1),
                                               b.input("lengths", {2}, DType::kInt32)};
        Graph graph = b.finish({});
        graph.loops_over_steps = loops_over_steps;
        for (const char* name : {"y", "last"}) {
          graph.outputs.push_back(ValueId{static_cast<int32_t>(graph.values.size())});
          graph.values.push_back({name, {}, {}, std::nullopt});
        }
        const Attributes both = {{"direction", std::string("bidirectional")}};
        const Result<Unit> made = append_call(graph, {op, "it", operands, graph.outputs, both});
        CHECK(made.ok()) << made.error().message();
        return graph;
      };
    };
    LoadedModule module = build({{"n", 1, 50, {}}}, at(true));
    std::vector<SymbolValues> lengths;
    for (int64_t n = 1; n <= 50; ++n) lengths.push_back({n});
    check(module, lengths, at(false));
    Tensor longer(DType::kInt32, {2});
    longer.set_int(1, 5);
    EXPECT_ERROR(module.run(std::vector{Tensor(DType::kFloat32, {4, 2, 6}), longer}),
                 "\"lengths\" holds the index 5, expected one in [0, 4]");
  }
}

TEST_F(RangeModules, JoinTwoDimensions) {
  const GraphAt at = [](const SymbolValues& values) {
    NetworkBuilder b("joined", NetworkOptions());
    const ValueId x = b.input("x", {1, values[0], 16}, DType::kFloat32),
                  more = b.input("more", {1, values[1], 16}, DType::kFloat32);
    return b.finish({{linear(b, "output", b.concat({x, more}), 24), "y"}});
  };
  LoadedModule module = build({{"n", 3, 14, {}}, {"m", 2, 12, {}}}, at);
  std::vector<SymbolValues> shapes;
  for (int64_t n = 3; n <= 14; ++n)
    for (int64_t m = 2; m <= 12; ++m) shapes.push_back({n, m});
  check(module, shapes, at);
}

// A step of a loop that is unfolded is a kernel: their number differs from length to length.
TEST_F(RangeModules, HaveAPlanForEachShapeThatMattersWhereNoneIsForAll) {
  const GraphAt at = [](const SymbolValues& values) {
    NetworkBuilder b("tower", NetworkOptions());
    ValueId x = b.input("x", {1, 3, 10, 10}, DType::kFloat32);
    for (int64_t i = 0; i <= values[0]; ++i) {
      x = b.relu(b.conv("conv" + std::to_string(i), x, {.channels = 3, .kernel = 3, .padding = 1}));
    }
    const ValueId rows = b.input("rows", {values[0], 10}, DType::kFloat32);
    return b.finish({{x, "image"}, {b.relu(rows), "positive"}});
  };
  EXPECT_ERROR(phase({{"size", 8, 40, {}}}, at), "kernels");
  LoadedModule module = build({{"size", 8, 40, {8, 20, 32}}}, at);
  check(module, {{8}, {20}, {32}}, at);
  EXPECT_ERROR(module.specs_at(SymbolValues{9}), "no plan for size=9; it has one for size=32");
}

TEST_F(RangeModules, SayWhichShapeDoesNotFit) {
  LoadedModule module = build({{"batch", 2, 3, {}}, {"seq", 2, 9, {}}},
                              [](const SymbolValues& v) { return encoder(v[0], v[1]); });
  EXPECT_EQ(module.symbols().size(), 2u);
  EXPECT_EQ(module.inputs()[0].shape, (std::vector<int64_t>{3, 9})) << "the greatest";
  EXPECT_ERROR(module.specs_at(SymbolValues{2, 10}),
               "seq is 10; the module was compiled for 2 to 9");
  const std::vector<Tensor> longer = {Tensor(DType::kInt64, {2, 12})};
  EXPECT_ERROR(module.run(longer), "seq is 12; the module was compiled for 2 to 9");
  const std::vector<Tensor> flat = {Tensor(DType::kInt64, {4})};
  EXPECT_ERROR(module.run(flat), "expected input_ids int64 3x9, found input_ids int64 4");
}

TEST_F(RangeModules, AreOfOnePhaseAndOfOneShapeOnGpus) {
  const auto of =
      phase({{"seq", 2, 9, {}}}, [](const SymbolValues& v) { return encoder(1, v[0]); });
  ASSERT_TRUE(of.ok());
  const std::vector<Phase> two = {*of, *of};
  EXPECT_ERROR(build_module(two, target_, nullptr, {}, folder_.path("two.so")), "has one phase");
  const Result<Target> gpu = parse_target("opencl", 0);
  EXPECT_ERROR(build_module(std::span(&*of, 1), *gpu, nullptr, {}, folder_.path("gpu.so")),
               "a kernel for GPUs is for one shape");
}

}  // namespace
}  // namespace pruner
