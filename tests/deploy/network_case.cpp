#include "network_case.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "deploy/loaded_module.h"
#include "graph/evaluate.h"
#include "graph/networks/network_builder.h"
#include "support/temporary_folder.h"

namespace pruner {

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

Graph small_upsampling() {
  NetworkBuilder b("small_upsampling");
  const ValueId x = b.input("image", {1, 3, 6, 5}, DType::kFloat32);
  const ValueId y =
      b.conv_norm("stem", x, {.channels = 8, .kernel = 3, .then = Nonlinearity::kRelu});
  const ValueId linear = b.resize(y, 12, 10, true);
  const ValueId nearest = b.node("Resize", {y, {}, {}, b.integers("sizes", {1, 8, 12, 10})});
  const ValueId transposed =
      b.node("ConvTranspose",
             {y, b.weight("transposed.weight", {8, 4, 4, 4}, 32, 1)},
             {{"pads", std::vector<int64_t>{1, 1, 1, 1}}, {"strides", std::vector<int64_t>{2, 2}}});
  const ValueId mixed =
      b.conv("mixed", b.concat({linear, transposed, nearest}), {.channels = 6, .bias = true});
  return b.finish({{b.resize(mixed, 5, 7, false), "small"}});
}

Graph small_dense() {
  NetworkBuilder b("small_dense");
  const ValueId x = b.input("image", {1, 3, 9, 7}, DType::kFloat32);
  std::vector<ValueId> features = {
      b.conv_norm("stem", x, {.channels = 20, .kernel = 3, .then = Nonlinearity::kRelu})};
  for (const char* layer : {"a", "b", "c"}) {
    const std::string name = layer;
    const ValueId all = features.size() == 1 ? features[0] : b.concat(features);
    const ValueId narrow = b.conv_norm(name + ".1",
                                       b.relu(b.norm(name + ".norm", all)),
                                       {.channels = 32, .then = Nonlinearity::kRelu});
    features.push_back(b.conv(name + ".2", narrow, {.channels = 12, .kernel = 3}));
  }
  const ValueId all = b.concat(features);
  const ValueId halves = b.concat(
      {b.conv("left", all, {.channels = 17}), b.conv("right", all, {.channels = 16, .kernel = 3})});
  const ValueId joined = b.concat({b.max_pool(all, 3, 1, 1), halves});
  return b.finish({{b.classifier("head", joined, 10), "scores"}});
}

Graph small_video() {
  using Ints = std::vector<int64_t>;
  NetworkBuilder b("small_video");
  const auto conv = [&](const std::string& name, ValueId x, const Ints& weight, int64_t stride) {
    const int64_t fan_in = weight[1] * weight[2] * weight[3] * weight[4];
    const Ints pads = {weight[2] / 2, weight[3] / 2, weight[4] / 2};
    const ValueId y = b.node("Conv",
                             {x, b.weight(name + ".weight", weight, fan_in, 2)},
                             {{"pads", Ints{pads[0], pads[1], pads[2], pads[0], pads[1], pads[2]}},
                              {"strides", Ints{1, stride, stride}}});
    return b.norm(name + ".norm", y);
  };
  const ValueId video = b.input("video", {1, 3, 5, 12, 11}, DType::kFloat32);
  const ValueId stem = b.relu(conv("stem", video, {20, 3, 3, 5, 5}, 2));
  const ValueId inner = b.relu(conv("inner", stem, {20, 20, 3, 3, 3}, 1));
  const ValueId sum = b.relu(b.node("Add", {conv("outer", inner, {20, 20, 1, 3, 3}, 1), stem}));
  const Attribute kernel = Ints{2, 3, 2};
  const ValueId largest = b.node("MaxPool", {sum}, {{"kernel_shape", kernel}});
  const ValueId mean = b.node("AveragePool", {sum}, {{"kernel_shape", kernel}});
  return b.finish({{b.classifier("fc", b.concat({largest, mean}), 7), "scores"}});
}

Graph small_gathering() {
  NetworkBuilder b("small_gathering");
  const ValueId x = b.input("image", {1, 3, 9, 7}, DType::kFloat32);
  const ValueId order = b.input("order", {1, 6}, DType::kInt64);
  const ValueId y = b.node("Mish", {b.conv_norm("stem", x, {.channels = 20, .kernel = 3})});
  const ValueId scores = b.classifier("head", y, 10);
  Tensor last(DType::kInt64, {1, 2});
  for (int64_t i = 0; i < 2; ++i) last.set_int(i, -1 - 9 * i);
  const auto taken = [&](ValueId from, ValueId places) {
    return b.node("GatherElements", {from, places}, {{"axis", int64_t{1}}});
  };
  return b.finish({{taken(scores, b.constant("last", last)), "last"},
                   {taken(b.node("Mish", {scores}), order), "taken"}});
}

Graph small_empty() {
  NetworkBuilder b("small_empty");
  const ValueId x = b.input("x", {5, 4}, DType::kFloat32);
  const ValueId none = b.node("Slice", {x, b.integers("from", {2}), b.integers("to", {2})});
  const ValueId sums = b.node("ReduceSum", {none, b.integers("axes", {0})});
  const ValueId all = b.concat({none, b.node("Mul", {x, x}), none}, 0);
  return b.finish({{none, "none"}, {sums, "sums"}, {all, "all"}});
}

Graph small_sorting() {
  NetworkBuilder b("small_sorting");
  const ValueId x = b.input("x", {40, 3}, DType::kFloat32);
  const ValueId y = b.node("Mul", {x, x});
  Graph graph = b.finish({});
  const auto value = [&](const std::string& name) {
    graph.values.push_back({name, {}, {}, std::nullopt});
    return ValueId{static_cast<int32_t>(graph.values.size()) - 1};
  };
  const auto node = [&](const char* op, std::vector<ValueId> in, std::vector<ValueId> out) {
    graph.nodes.push_back({op, "", std::move(in), std::move(out), {}});
    graph.nodes.back().attributes["axis"] = int64_t{0};
    CHECK(infer_node(graph, graph.nodes.back()).ok());
  };
  const ValueId k = value("k"), best = value("best"), places = value("places");
  const ValueId scores = value("scores"), sums = value("sums"), all = value("all");
  graph[k] = {"k", DType::kInt64, {1}, Tensor(DType::kInt64, {1})};
  graph[k].constant->set_int(0, 7);
  node("TopK", {y, k}, {best, places});
  node("Softmax", {best}, {scores});
  node("ScatterElements", {x, places, scores}, {sums});
  node("Concat", {sums, y}, {all});
  graph.outputs = {all, places};
  return graph;
}

Graph small_casts(DType dtype) {
  NetworkBuilder b("small_casts");
  const ValueId x = b.input("x", {5, 7}, dtype);
  Tensor weight(dtype, {7});
  for (int64_t i = 0; i < 7; ++i) weight.set(i, 1 << i);
  const bool numbers = dtype != DType::kBool;
  const ValueId w = b.constant("w", weight);
  const bool moves = is_only_moved(dtype);
  const ValueId y = moves ? b.node("Transpose", {x}) : b.node(numbers ? "Add" : "Xor", {x, w});
  const ValueId z = moves ? x : b.node(numbers ? "Max" : "Or", {x, w});
  std::vector<std::pair<ValueId, std::string>> outputs = {{y, "y"}};
  if (is_float(dtype)) {  // sums of whole numbers, which no rounding changes
    Tensor columns(dtype, {7, 3});
    for (int64_t i = 0; i < 21; ++i) columns.set(i, 1 << i / 3);
    outputs.emplace_back(b.node("MatMul", {b.node("Round", {x}), b.constant("columns", columns)}),
                         "product");
  }
  for (const DTypeRow& row : kDTypes) {
    if (row.dtype == dtype) continue;
    const std::string name(row.name);
    outputs.emplace_back(b.node("Cast", {z}, {{"to", name}}), name);
  }
  return b.finish(outputs);
}

Result<Case> make_case(Result<Graph> graph) {
  if (!graph.ok()) return graph.error();
  std::vector<TensorSpec> specs;
  for (const ValueId id : graph->inputs)
    specs.push_back({(*graph)[id].name, (*graph)[id].dtype, (*graph)[id].shape});
  Case made{*std::move(graph), seeded_inputs(specs, 7), {}};
  TRY_ASSIGN(made.expected, interpret_graph(made.graph, made.inputs));
  return made;
}

void expect_close(const std::vector<Tensor>& found,
                  const std::vector<Tensor>& expected,
                  double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t t = 0; t < found.size(); ++t) {
    ASSERT_EQ(found[t].shape(), expected[t].shape());
    double largest = 0, worst = 0;
    for (int64_t i = 0; i < expected[t].num_elements(); ++i) {
      largest = std::max(largest, std::abs(expected[t].get(i)));
      const double error = std::abs(found[t].get(i) - expected[t].get(i));
      worst = error <= worst ? worst : error;  // NaN counts
    }
    EXPECT_LE(worst, tolerance * largest) << "output " << t;
  }
}

void expect_right(const Case& c,
                  const Target& target,
                  const ScheduleChoice& choice,
                  Precision precision,
                  double tolerance) {
  const Result<TemporaryFolder> folder = TemporaryFolder::make("");
  ASSERT_TRUE(folder.ok());
  const Result<Partition> cut = partition(c.graph, target, precision);
  ASSERT_TRUE(cut.ok()) << cut.error().message();
  const std::string path = folder->path("module.so");
  const Result<ModuleSummary> built =
      build_module(*cut, target, choice, {.jobs = 2, .work_dir = ""}, path);
  ASSERT_TRUE(built.ok()) << built.error().message();
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder->path("")), {}),
            2);  // but for the folder's own lock, nothing else is left
  Result<LoadedModule> module = load_module(path);
  ASSERT_TRUE(module.ok()) << module.error().message();
  EXPECT_EQ(module->threads(), target.is_gpu() ? 0 : target.threads);
  for (int run = 0; run < 2; ++run) {  // the second one finds what the first left in the arena
    const Result<std::vector<Tensor>> outputs = module->run(c.inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message();
    expect_close(*outputs, c.expected, tolerance);
  }
}

}  // namespace pruner
