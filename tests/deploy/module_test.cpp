// label: codegen
#include "deploy/module.h"

#include <cmath>
#include <filesystem>

#include "deploy/loaded_module.h"
#include "deploy/temporary_folder.h"
#include "golden.h"
#include "graph/networks/network_builder.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

/// Conv with norm, relu, residual, strided and depthwise convs, pool, classifier, softmax; the
/// residual's sum is an output too.
Graph small_convolutional() {
  NetworkBuilder b("small_convolutional");
  const ValueId x = b.input("image", {1, 3, 13, 11}, DType::kFloat32);
  const ValueId stem = b.node("Relu", {b.conv_norm("stem", x, {.channels = 24, .kernel = 3})});
  const ValueId inner =
      b.node("Relu", {b.conv_norm("inner", stem, {.channels = 24, .kernel = 3, .groups = 24})});
  const ValueId sum =
      b.node("Add", {b.conv_norm("outer", inner, {.channels = 24, .kernel = 1}), stem});
  const ValueId down = b.node(
      "Relu",
      {b.conv_norm("down", b.node("Relu", {sum}), {.channels = 40, .kernel = 3, .stride = 2})});
  const ValueId scores = b.classifier("head", down, 10);
  return b.finish({{sum, "sum"}, {b.node("Softmax", {scores}, {{"axis", int64_t{1}}}), "scores"}});
}

struct Case {
  Graph graph;
  std::vector<Tensor> inputs, expected;
};

Result<Case> make_case(Result<Graph> graph) {
  if (!graph.ok()) return graph.error();
  std::vector<TensorSpec> specs;
  for (const ValueId id : graph->inputs)
    specs.push_back({(*graph)[id].name, (*graph)[id].dtype, (*graph)[id].shape});
  Case made{*std::move(graph), seeded_inputs(specs, 7), {}};
  TRY_ASSIGN(made.expected, interpret_graph(made.graph, made.inputs));
  return made;
}

void expect_close(const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t t = 0; t < found.size(); ++t) {
    ASSERT_EQ(found[t].shape(), expected[t].shape());
    double largest = 0, worst = 0;
    for (int64_t i = 0; i < expected[t].num_elements(); ++i) {
      largest = std::max(largest, std::abs(expected[t].get(i)));
      const double error = std::abs(found[t].get(i) - expected[t].get(i));
      worst = error <= worst ? worst : error;  // NaN counts
    }
    EXPECT_LE(worst, 1e-4 * largest) << "output " << t;
  }
}

/// Builds `graph` with `choice` and compares what the module gives with the interpreter.
void expect_right(const Case& c, const Target& target, const ScheduleChoice& choice = nullptr) {
  const Result<TemporaryFolder> folder = TemporaryFolder::make("");
  ASSERT_TRUE(folder.ok());
  const Result<Partition> cut = partition(c.graph, target);
  ASSERT_TRUE(cut.ok()) << cut.error().message();
  const std::string path = folder->path("module.so");
  const Result<ModuleSummary> built =
      build_module(*cut, target, choice, {.jobs = 2, .work_dir = ""}, path);
  ASSERT_TRUE(built.ok()) << built.error().message();
  EXPECT_EQ(std::distance(fs::directory_iterator(folder->path("")), {}),
            1);  // nothing else is left
  Result<LoadedModule> module = load_module(path);
  ASSERT_TRUE(module.ok()) << module.error().message();
  EXPECT_EQ(module->threads(), target.threads);
  for (int run = 0; run < 2; ++run) {  // the second one finds what the first left in the arena
    const Result<std::vector<Tensor>> outputs = module->run(c.inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message();
    expect_close(*outputs, c.expected);
  }
}

TEST(BuildModule, GivesWhatTheInterpreterGives) {
  const Result<Case> c = make_case(small_convolutional());
  ASSERT_TRUE(c.ok()) << c.error().message();
  expect_right(*c, host_target(2));
}

TEST(BuildModule, TakesAnySchedule) {
  const Result<Case> c = make_case(small_convolutional());
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

TEST(BuildModule, MakesCodeForAvx2) {
  const Result<Target> target = parse_target("llvm -mcpu=haswell", 1);
  ASSERT_TRUE(target.ok()) << target.error().message();
  const Result<Case> c = make_case(small_convolutional());
  ASSERT_TRUE(c.ok()) << c.error().message();
  expect_right(*c, *target);
}

TEST(BuildModule, RunsTheBuiltInNetworksSmall) {
  for (const std::string& name : network_names()) {
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
  EXPECT_ERROR(module, "module.so: this CPU lacks av");
}

TEST(BuildModule, SaysWhatCannotBeWrittenBeforeItWorks) {
  const Target target = host_target(1);
  const Result<Partition> cut = partition(small_convolutional(), target);
  ASSERT_TRUE(cut.ok());
  EXPECT_ERROR(build_module(*cut, target, nullptr, {}, "/nowhere/m.so"),
               "/nowhere/m.so: cannot write: No such file");
  EXPECT_ERROR(
      build_module(*cut, target, nullptr, {.jobs = 1, .work_dir = "/nowhere"}, "/tmp/m.so"),
      "/nowhere: cannot make a folder");
}

}  // namespace
}  // namespace pruner
