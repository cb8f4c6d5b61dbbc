// label: codegen
#include "deploy/module.h"

#include "deploy/loaded_module.h"
#include "golden.h"
#include "graph/networks/network_builder.h"
#include "network_case.h"
#include "support/temporary_folder.h"

namespace pruner {
namespace {

using Ints = std::vector<int64_t>;

Tensor floats(std::vector<int64_t> shape) {
  Tensor tensor(DType::kFloat32, std::move(shape));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.set(i, static_cast<double>(i));
  return tensor;
}

Tensor twos() {
  Tensor tensor(DType::kInt64, {1});
  tensor.set_int(0, 2);
  return tensor;
}

TEST(BuildModule, GivesWhatTheInterpreterGives) {
  const Result<Case> c = make_case(small_convolutional());
  ASSERT_TRUE(c.ok()) << c.error().message();
  expect_right(*c, host_target(2));
}

TEST(BuildModule, TakesAnySchedule) {
  for (const Graph& graph :
       {small_convolutional(), small_dense(), small_video(), small_gathering()}) {
    SCOPED_TRACE(graph.name);
    const Result<Case> c = make_case(graph);
    ASSERT_TRUE(c.ok()) << c.error().message();
    for (uint64_t seed = 0; seed < 6; ++seed) {
      expect_right(
          *c, host_target(2), [seed](const Task&, const Space& space) -> std::optional<Candidate> {
            Rng rng(seed);
            for (int i = 0; i < 100; ++i) {
              Candidate candidate = sample(space, rng);
              if (is_legal(space, candidate)) return candidate;
            }
            return std::nullopt;
          });
    }
  }
}

// Three layers of one task, of 4 KiB each: the last one's result nobody reads, and what L2 does not
// hold of it may go past the caches.
Graph equal_layers() {
  NetworkBuilder b("layers");
  ValueId x = b.input("x", {32, 32}, DType::kFloat32);
  for (int i = 0; i < 3; ++i)
    x = b.node("Relu", {b.node("MatMul", {x, b.random("w", {32, 32}, 0, 0.2)})});
  return b.finish({{x, "y"}});
}

TEST(BuildModule, StoresInCachesWhatOtherKernelsRead) {
  const Result<Case> c = make_case(equal_layers());
  ASSERT_TRUE(c.ok()) << c.error().message();
  Target target = host_target(2);
  const auto kernels = [&](int64_t l2_bytes, int64_t l3_bytes) {
    target.l2_bytes = l2_bytes, target.l3_bytes = l3_bytes;
    const auto streaming = [](const Task&, const Space& space) {
      Candidate candidate{space.drawn[0], {}};
      for (const Decision& decision : space[space.drawn[0]].decisions)
        candidate.decisions.push_back(decision.kind == DecisionKind::kStreaming
                                          ? decision.choices.back()
                                          : decision.choices.front());
      return std::optional(candidate);
    };
    expect_right(*c, target, streaming);
    const TemporaryFolder folder = *TemporaryFolder::make("");
    const Result<Partition> cut = partition(c->graph, target);
    return build_module(
               *cut, target, streaming, {.jobs = 2, .work_dir = ""}, folder.path("module.so"))
        ->kernels;
  };
  EXPECT_EQ(kernels(2048, 65536), 2);
  EXPECT_EQ(kernels(8192, 65536), 1) << "L2 holds it";
  EXPECT_EQ(kernels(2048, 4096), 1) << "no cache holds it";
}

// A convolution inside the loops of the depthwise one that reads it.
TEST(BuildModule, JoinsADepthwiseConvolution) {
  NetworkBuilder b("inverted_residual");
  const ValueId x = b.input("image", {1, 8, 9, 11}, DType::kFloat32);
  const ValueId wide =
      b.conv_norm("wide", x, {.channels = 40, .kernel = 1, .then = Nonlinearity::kRelu6});
  const ValueId deep = b.conv_norm(
      "deep",
      wide,
      {.channels = 40, .kernel = 3, .stride = 2, .groups = 40, .then = Nonlinearity::kRelu6});
  const ValueId y = b.conv_norm("narrow", deep, {.channels = 8, .kernel = 1});
  const Result<Case> c = make_case(b.finish({{y, "y"}}));
  ASSERT_TRUE(c.ok()) << c.error().message();
  Target target = host_target(2);
  target.l2_bytes = 1024;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    expect_right(*c, target, [seed](const Task&, const Space& space) {
      Rng rng(seed);
      return std::optional(sample(space, rng));
    });
  }
}

// Routines of the runtime among kernels: their inputs and outputs are whole, in the arena, the
// caller's tensors or among the weights.
TEST(BuildModule, RunsRoutines) {
  const Result<Case> c = make_case(small_sorting());
  ASSERT_TRUE(c.ok()) << c.error().message();
  expect_right(*c, host_target(2));
  const Result<Target> gpu = parse_target("cuda", 1);
  ASSERT_TRUE(gpu.ok()) << gpu.error().message();
  EXPECT_ERROR(partition(c->graph, *gpu), "TopK runs on CPUs only, the target is cuda");
}

// No kernel makes such outputs: they are constants, one of them of no bytes.
TEST(BuildModule, GivesOutputsWithoutElements) {
  const Result<Case> c = make_case(small_empty());
  ASSERT_TRUE(c.ok()) << c.error().message();
  EXPECT_EQ(c->expected[0].shape(), (std::vector<int64_t>{0, 4}));
  expect_right(*c, host_target(2));
}

// Every step reads the one before several times.
Graph chain_of_activations() {
  NetworkBuilder b("chain");
  ValueId x = b.input("x", {4, 24}, DType::kFloat32);
  for (int i = 0; i < 30; ++i) x = b.node("Add", {x, b.node("Mul", {x, b.node("Sigmoid", {x})})});
  for (int i = 0; i < 40; ++i) x = b.node("Add", {x, x});
  for (int i = 0; i < 20; ++i) x = b.node("LeakyRelu", {b.node("Sub", {x, b.node("Tanh", {x})})});
  return b.finish({{x, "y"}});
}

TEST(BuildModule, TakesLongChainsThatReadEachValueTwice) {
  const Result<Case> c = make_case(chain_of_activations());
  ASSERT_TRUE(c.ok()) << c.error().message();
  expect_right(*c, host_target(2));
}

TEST(BuildModule, HoldsEveryDtype) {
  for (const DTypeRow& row : kDTypes) {
    SCOPED_TRACE(row.name);
    Result<Case> c = make_case(small_casts(row.dtype));
    ASSERT_TRUE(c.ok()) << c.error().message();
    if (row.dtype == DType::kFloat8E8M0) {  // code 0 is a subnormal float32, 2^-127
      for (int64_t i = 0; i < c->inputs[0].num_elements(); ++i) c->inputs[0].set_int(i, 1 + i);
      c->expected = *interpret_graph(c->graph, c->inputs);
    }
    expect_right(*c, host_target(2));
  }
}

// Every operator that reads or writes at indices of the caller: of a tensor of zeros with one
// index other than 0, the greatest and the least that are right, and the ones beside those.
TEST(BuildModule, TakesNoIndexOutside) {
  struct Row {
    const char* op;
    std::vector<Ints> inputs;  // the shapes of the others, in order; the indices' is empty
    Ints indices;              // their shape
    int64_t least, greatest;
    Attributes attributes = {};
  };
  const Row rows[] = {
      {"Gather", {{5, 2}, {}}, {3}, -5, 4},
      {"GatherElements", {{5, 2}, {}}, {3, 2}, -5, 4},
      {"GatherND", {{5, 7}, {}}, {3, 2}, -5, 4},
      {"ScatterElements", {{5, 2}, {}, {3, 2}}, {3, 2}, -5, 4},
      {"ScatterElements", {{2, 5}, {}, {2, 400}}, {2, 400}, -5, 4, {{"axis", int64_t{1}}}},
      {"ScatterND", {{5, 7, 2}, {}, {3, 2}}, {3, 2}, -5, 4},
      {"RoiAlign", {{5, 1, 8, 8}, {3, 4}, {}}, {3}, 0, 4},
      {"TensorScatter", {{3, 1, 9, 2}, {3, 1, 4, 2}, {}}, {3}, 0, 5},
      {"TensorScatter",
       {{3, 1, 9, 2}, {3, 1, 4, 2}, {}},
       {3},
       0,
       8,
       {{"mode", std::string("circular")}}},
      {"ReverseSequence", {{5, 3}, {}}, {3}, 0, 5},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.op);
    NetworkBuilder b("network");
    std::vector<ValueId> operands;
    std::vector<Tensor> inputs;
    size_t place = 0;
    for (size_t i = 0; i < row.inputs.size(); ++i) {
      const bool holds = row.inputs[i].empty();
      if (holds) place = i;
      const Ints& shape = holds ? row.indices : row.inputs[i];
      const DType dtype = holds ? DType::kInt64 : DType::kFloat32;
      operands.push_back(b.input("x" + std::to_string(i), shape, dtype));
      inputs.emplace_back(dtype, shape);
    }
    const Graph graph = b.finish({{b.node(row.op, operands, row.attributes), "y"}});
    const Result<Partition> cut = partition(graph, host_target(1));
    ASSERT_TRUE(cut.ok()) << cut.error().message();
    const TemporaryFolder folder = *TemporaryFolder::make("");
    const std::string path = folder.path("module.so");
    const Result<ModuleSummary> built =
        build_module(*cut, host_target(1), nullptr, {.jobs = 1, .work_dir = ""}, path);
    ASSERT_TRUE(built.ok()) << built.error().message();
    Result<LoadedModule> module = load_module(path);
    ASSERT_TRUE(module.ok()) << module.error().message();
    // Tuples of two places: the first ones are along the dimension of 5.
    const bool of_tuples = std::string(row.op).ends_with("ND");
    const int64_t last = inputs[place].num_elements() - (of_tuples ? 2 : 1);
    const auto at = [&](int64_t index) {
      inputs[place].set_int(last, index);
      const Result<std::vector<Tensor>> found = module->run(inputs);
      const Result<std::vector<Tensor>> expected = interpret_graph(graph, inputs);
      EXPECT_EQ(found.ok(), expected.ok()) << index;
      return found;
    };
    for (const int64_t index : {row.least, row.greatest, int64_t{0}}) EXPECT_TRUE(at(index).ok());
    const std::string range = fmt::format("expected one in [{}, {}]", row.least, row.greatest);
    for (const int64_t index : {row.least - 1, row.greatest + 1, INT64_MIN, INT64_MAX})
      EXPECT_ERROR(at(index), fmt::format("holds the index {}, {}", index, range));
  }
}

// One kernel reads at them along a dimension of 6, and in turn along those of 5 and 7.
TEST(BuildModule, ChecksIndicesOfTwoReadersAgainstTheLesserExtents) {
  NetworkBuilder b("gathering");
  const ValueId ids = b.input("ids", {3, 2}, DType::kInt64);
  const ValueId pairs = b.node("GatherND", {b.input("x", {5, 7, 2}, DType::kFloat32), ids});
  const ValueId each = b.node("Gather", {b.input("z", {6}, DType::kFloat32), ids});
  const Graph graph = b.finish({{b.node("Add", {pairs, each}), "y"}});
  const Result<Partition> cut = partition(graph, host_target(1));
  ASSERT_TRUE(cut.ok()) << cut.error().message();
  ASSERT_EQ(cut->groups.size(), 1U);
  const std::vector<StageId> inputs = cut->groups[0].dag.inputs();
  const auto read_at = [&](StageId id) { return cut->groups[0].dag[id].read_at; };
  EXPECT_EQ(std::ranges::count(inputs, Ints{5, 6}, read_at), 1);
}

// An index from the caller and one that a kernel makes.
TEST(BuildModule, NamesTheIndexThatLiesOutside) {
  NetworkBuilder b("gathering");
  const ValueId table = b.constant("table", floats({5, 2}));
  const ValueId ids = b.input("ids", {3}, DType::kInt64);
  const ValueId later = b.node("Add", {ids, b.constant("two", twos())});
  const ValueId rows = b.node("Gather", {table, ids}), other = b.node("Gather", {table, later});
  const TemporaryFolder folder = *TemporaryFolder::make("");
  const Result<Partition> cut =
      partition(b.finish({{rows, "rows"}, {other, "other"}}), host_target(1));
  ASSERT_TRUE(cut.ok()) << cut.error().message();
  const std::string path = folder.path("module.so");
  ASSERT_TRUE(build_module(*cut, host_target(1), nullptr, {.jobs = 1, .work_dir = ""}, path).ok());
  Result<LoadedModule> module = load_module(path);
  ASSERT_TRUE(module.ok()) << module.error().message();
  const auto run = [&](int64_t index) {
    Tensor tensor(DType::kInt64, {3});
    tensor.set_int(1, index);
    return module->run(std::vector{tensor});
  };
  EXPECT_TRUE(run(2).ok());
  EXPECT_TRUE(run(-5).ok());
  EXPECT_ERROR(run(5), "\"ids\" holds the index 5, expected one in [-5, 4]");
  EXPECT_ERROR(run(INT64_MIN), "holds the index -92233720368547758");
  EXPECT_ERROR(run(3), "holds the index 5, expected one in [-5, 4]");
  EXPECT_TRUE(run(0).ok());
}

// The parts of a Concat are written in place: no kernel copies them.
TEST(BuildModule, JoinsInPlace) {
  const Result<Case> c = make_case(small_dense());
  ASSERT_TRUE(c.ok()) << c.error().message();
  expect_right(*c, host_target(2));
  const Result<Partition> cut = partition(c->graph, host_target(2));
  ASSERT_TRUE(cut.ok()) << cut.error().message();
  for (const Group& group : cut->groups)
    EXPECT_EQ(group.name.find("concat"), std::string::npos) << group.name;
}

TEST(BuildModule, MakesCodeForAvx2) {
  const Result<Target> target = parse_target("llvm -mcpu=haswell", 1);
  ASSERT_TRUE(target.ok()) << target.error().message();
  const Result<Case> c = make_case(small_convolutional());
  ASSERT_TRUE(c.ok()) << c.error().message();
  expect_right(*c, *target);
}

TEST(BuildModule, ChangesTheSizeOfImages) {
  const Result<Case> c = make_case(small_upsampling());
  ASSERT_TRUE(c.ok()) << c.error().message();
  expect_right(*c, host_target(2));
}

TEST(BuildModule, RunsTheBuiltInNetworksSmall) {
  for (const char* name : {"bert_tiny",
                           "convnext_tiny",
                           "densenet_121",
                           "efficientnet_b0",
                           "googlenet",
                           "llama_135m",
                           "mobilebert",
                           "mobilenet_v2",
                           "mobilenet_v3",
                           "regnet_y_400mf",
                           "resnet_18",
                           "resnet_50",
                           "swin_t",
                           "whisper_tiny"}) {
    SCOPED_TRACE(name);
    const Result<Case> c = make_case(
        build_network(name, {.image_size = 32, .sequence_length = 12, .input_shapes = {}}));
    ASSERT_TRUE(c.ok()) << c.error().message();
    expect_right(*c, host_target(2));
  }
}

TEST(BuildModule, RefusesAnotherCpusCodeAtLoad) {
  const Result<Target> target = parse_target("llvm -mcpu=sapphirerapids", 1);
  ASSERT_TRUE(target.ok()) << target.error().message();
  const Result<TemporaryFolder> folder = TemporaryFolder::make("");
  const Result<Partition> cut = partition(small_convolutional(), *target);
  ASSERT_TRUE(cut.ok()) << cut.error().message();
  const std::string path = folder->path("module.so");
  const Result<ModuleSummary> built = build_module(*cut, *target, nullptr, {}, path);
  ASSERT_TRUE(built.ok()) << built.error().message();
  EXPECT_GT(built->weight_bytes, 0);
  EXPECT_GT(built->activation_bytes, 0);
  const Result<LoadedModule> module = load_module(path);
  if (module.ok()) GTEST_SKIP() << "this CPU has it all";
  EXPECT_ERROR(module, "module.so: this CPU lacks ");
}

TEST(BuildModule, SaysWhatCannotBeWrittenBeforeItWorks) {
  const Target target = host_target(1);
  const Result<Partition> cut = partition(small_convolutional(), target);
  ASSERT_TRUE(cut.ok());
  EXPECT_ERROR(build_module(*cut, target, nullptr, {}, "/nowhere/m.so"),
               "/nowhere/m.so: cannot be written: No such file");
  EXPECT_ERROR(
      build_module(*cut, target, nullptr, {.jobs = 1, .work_dir = "/nowhere"}, "/tmp/m.so"),
      "/nowhere: cannot make a folder");
}

}  // namespace
}  // namespace pruner
