// label: codegen
// Modules of networks with extents that the data decide, beside what a loop over the data gives.
#include "graph/pipeline/pipeline.h"

#include <gtest/gtest.h>

#include "deploy/loaded_module.h"
#include "deploy/module.h"
#include "deploy/verify.h"
#include "graph/onnx/onnx_model.h"
#include "graph/small_graph.h"
#include "support/file.h"
#include "support/temporary_folder.h"

namespace pruner {
namespace {

using V = std::vector<double>;
using Ints = std::vector<int64_t>;

class PipelineModules : public testing::Test {
 protected:
  Result<std::vector<Phase>> phases(const OnnxModel& model) {
    const std::string file = folder_.path("model.onnx");
    TRY(write_file(file, model.bytes()));
    const CutStage cut = [this](Graph graph) { return partition(std::move(graph), target_); };
    TRY_ASSIGN(std::optional<std::vector<Phase>> made, stage_phases(import_from(file, {}), cut));
    if (!made) return Error("it has one stage");
    return *std::move(made);
  }

  LoadedModule build(const OnnxModel& model) {
    const std::string path = folder_.path("module.so");
    const Result<std::vector<Phase>> made = phases(model);
    EXPECT_TRUE(made.ok()) << made.error().message();
    const auto built = build_module(*made, target_, nullptr, {.work_dir = ""}, path);
    EXPECT_TRUE(built.ok()) << built.error().message();
    const Result<Agreement> agreement = verify_module(path, *made, target_, 2);
    EXPECT_TRUE(agreement.ok()) << agreement.error().message();
    EXPECT_TRUE(agreement->ok()) << agreement->wrong << " " << agreement->output << " at "
                                 << agreement->where << ": " << agreement->error << ", "
                                 << agreement->differing;
    EXPECT_GT(agreement->elements, 0);
    Result<LoadedModule> module = load_module(path, 2);
    EXPECT_TRUE(module.ok()) << module.error().message();
    return *std::move(module);
  }

  static std::vector<Tensor> run(LoadedModule& module, const std::vector<Tensor>& inputs) {
    Result<std::vector<Tensor>> outputs = module.run(inputs);
    EXPECT_TRUE(outputs.ok()) << outputs.error().message();
    return *std::move(outputs);
  }

  TemporaryFolder folder_ = *TemporaryFolder::make("");
  Target target_ = *parse_target("llvm", 2);
};

/// x[x > 0.5] as torch writes it, named `name`.
void add_masked(OnnxModel& model, const std::string& x, const std::string& name) {
  model.node("Greater", {x, "half"}, {name + "_mask"});
  model.node("NonZero", {name + "_mask"}, {name + "_found"});
  set_ints(model.node("Transpose", {name + "_found"}, {name + "_places"}), "perm", {1, 0});
  model.node("GatherND", {x, name + "_places"}, {name});
}

/// y: one operator or another of x, as a condition says.
void add_choice(OnnxModel& model,
                const char* condition,
                const char* then_op,
                const char* else_op,
                const char* x) {
  auto& branches = model.node("If", {condition}, {"y"});
  for (const auto& [name, op] : {std::pair{"then_branch", then_op}, {"else_branch", else_op}}) {
    OnnxModel branch;
    branch.output("made").node(op, {x}, {"made"});
    set_graph(branches, name, branch);
  }
}

OnnxModel with_half() {
  OnnxModel model(17);
  model.initializer("half", onnx::TensorProto::FLOAT, {}).add_float_data(0.5F);
  return model;
}

V above_half(const V& x) {
  V kept;
  for (const double value : x)
    if (value > 0.5) kept.push_back(value);
  return kept;
}

/// Vectors of which none, some and all elements are above a half.
std::vector<V> drawn_vectors(int64_t n) {
  Rng rng(4);
  std::vector<V> all = {V(static_cast<size_t>(n), 0.25), V(static_cast<size_t>(n), 0.75)};
  for (int i = 0; i < 6; ++i) {
    V& x = all.emplace_back();
    for (int64_t j = 0; j < n; ++j) x.push_back(static_cast<float>(rng.uniform()));
  }
  return all;
}

TEST_F(PipelineModules, ReadWhatAMaskKeeps) {
  OnnxModel model = with_half();
  model.input("x", {13}).output("y").output("z");
  add_masked(model, "x", "kept");
  model.node("Add", {"kept", "half"}, {"y"});
  model.node("Neg", {"x"}, {"z"});
  LoadedModule module = build(model);
  EXPECT_EQ(module.outputs()[0].shape, (Ints{13}));
  for (const V& x : drawn_vectors(13)) {
    const std::vector<Tensor> outputs = run(module, {floats({13}, x)});
    V wanted = above_half(x);
    for (double& value : wanted) value = static_cast<float>(value + 0.5);
    EXPECT_EQ(outputs[0].shape(), (Ints{std::ssize(wanted)}));
    EXPECT_EQ(values_of(outputs[0]), wanted);
    EXPECT_EQ(outputs[1].shape(), (Ints{13}));
  }
}

// Columns that are found lie apart in a tensor with room for all.
TEST_F(PipelineModules, ReadColumnsThatAreFound) {
  OnnxModel model = with_half();
  model.input("x", {3, 7}).input("c", {7}).output("y").output("total").integers("rows", {1});
  model.node("Greater", {"c", "half"}, {"condition"});
  set_int(model.node("Compress", {"x", "condition"}, {"columns"}), "axis", 1);
  model.node("Relu", {"columns"}, {"y"});
  set_int(model.node("ReduceSum", {"columns", "rows"}, {"total"}), "keepdims", 0);
  LoadedModule module = build(model);
  V x;
  for (int i = 0; i < 21; ++i) x.push_back(i - 10);
  for (const V& c : drawn_vectors(7)) {
    const std::vector<Tensor> outputs = run(module, {floats({3, 7}, x), floats({7}, c)});
    V wanted, totals;
    for (int row = 0; row < 3; ++row) {
      double total = 0;
      for (size_t i = 0; i < 7; ++i) {
        if (c[i] <= 0.5) continue;
        const double value = x[static_cast<size_t>(row) * 7 + i];
        total += value;
        wanted.push_back(std::max(value, 0.0));
      }
      totals.push_back(total);
    }
    EXPECT_EQ(values_of(outputs[0]), wanted);
    EXPECT_EQ(values_of(outputs[1]), totals);
  }
}

// A Concat of several tensors of found elements has an extent of its own.
TEST_F(PipelineModules, JoinWhatIsFound) {
  OnnxModel model = with_half();
  model.input("a", {5}).input("b", {6}).output("y").output("sum").integers("first", {0});
  add_masked(model, "a", "from_a");
  add_masked(model, "b", "from_b");
  set_int(model.node("Concat", {"from_a", "from_b"}, {"both"}), "axis", 0);
  model.node("Neg", {"both"}, {"y"});
  set_int(model.node("ReduceSum", {"both", "first"}, {"sum"}), "keepdims", 1);
  LoadedModule module = build(model);
  for (const V& a : drawn_vectors(5)) {
    for (const V& b : drawn_vectors(6)) {
      const std::vector<Tensor> outputs = run(module, {floats({5}, a), floats({6}, b)});
      V wanted = above_half(a);
      const V more = above_half(b);
      wanted.insert(wanted.end(), more.begin(), more.end());
      double sum = 0;
      for (double& value : wanted) sum += std::exchange(value, -value);
      EXPECT_EQ(values_of(outputs[0]), wanted);
      EXPECT_NEAR(outputs[1].get(0), sum, 1e-5);
    }
  }
}

/// Boxes of which none overlaps another, whose scores say the order, behind `if there are any`.
TEST_F(PipelineModules, ChooseBoxesBehindAnIf) {
  OnnxModel model = with_half();
  model.input("x", {9}).input("boxes", {9, 4}).output("chosen");
  model.integer("zero", 0).integer("two", 2).integers("first", {0}).integers("front", {0, 1});
  model.integers("end", {4}).integer("many", 100);
  model.node("Greater", {"x", "half"}, {"mask"});
  model.node("NonZero", {"mask"}, {"found"});
  model.node("Squeeze", {"found", "first"}, {"places"});
  model.node("Gather", {"boxes", "places"}, {"kept_boxes"});
  model.node("Gather", {"x", "places"}, {"kept_scores"});
  model.node("Size", {"kept_boxes"}, {"size"});
  model.node("Equal", {"size", "zero"}, {"none"});
  auto& branches = model.node("If", {"none"}, {"keep"});
  OnnxModel nothing, chosen;
  nothing.output("empty");
  auto& empty = *nothing.node("Constant", {}, {"empty"}).add_attribute();
  empty.set_name("value");
  empty.set_type(onnx::AttributeProto::TENSOR);
  empty.mutable_t()->set_data_type(onnx::TensorProto::INT64);
  empty.mutable_t()->add_dims(0);
  chosen.output("rows");
  chosen.node("Unsqueeze", {"kept_boxes", "first"}, {"boxes3"});
  chosen.node("Unsqueeze", {"kept_scores", "front"}, {"scores3"});
  chosen.node("NonMaxSuppression", {"boxes3", "scores3", "many", "half"}, {"selected"});
  set_int(chosen.node("Gather", {"selected", "two"}, {"rows"}), "axis", 1);
  set_graph(branches, "then_branch", nothing);
  set_graph(branches, "else_branch", chosen);
  model.node("Slice", {"keep", "first", "end"}, {"best"});
  model.node("Gather", {"kept_scores", "best"}, {"chosen"});
  LoadedModule module = build(model);
  EXPECT_EQ(module.outputs()[0].shape, (Ints{4}));  // no more boxes are found than are read
  V boxes;
  for (int i = 0; i < 9; ++i) boxes.insert(boxes.end(), {2.0 * i, 0, 2.0 * i + 1, 1});
  for (const V& x : drawn_vectors(9)) {
    const std::vector<Tensor> outputs = run(module, {floats({9}, x), floats({9, 4}, boxes)});
    V wanted = above_half(x);
    std::ranges::sort(wanted, std::greater());
    wanted.resize(std::min<size_t>(wanted.size(), 4));
    EXPECT_EQ(values_of(outputs[0]), wanted);
  }
}

TEST_F(PipelineModules, WriteOverWhatIsFound) {
  OnnxModel model = with_half();
  model.input("x", {8}).output("y").integers("first", {0});
  model.node("Greater", {"x", "half"}, {"mask"});
  model.node("NonZero", {"mask"}, {"found"});
  model.node("Squeeze", {"found", "first"}, {"places"});
  model.node("Gather", {"x", "places"}, {"kept"});
  model.node("Neg", {"kept"}, {"updates"});
  model.node("ScatterElements", {"x", "places", "updates"}, {"y"});
  LoadedModule module = build(model);
  for (V x : drawn_vectors(8)) {
    const std::vector<Tensor> outputs = run(module, {floats({8}, x)});
    for (double& value : x) value = value > 0.5 ? -value : value;
    EXPECT_EQ(values_of(outputs[0]), x);
  }
}

// An extent that is an output is a number of the plan.
TEST_F(PipelineModules, SayHowManyAreFound) {
  OnnxModel model = with_half();
  model.input("x", {8}).output("shape").output("twice").integer("two", 2);
  add_masked(model, "x", "kept");
  model.node("Shape", {"kept_found"}, {"shape"});
  model.node("Size", {"kept"}, {"size"});
  model.node("Mul", {"size", "two"}, {"twice"});
  LoadedModule module = build(model);
  for (const V& x : drawn_vectors(8)) {
    const std::vector<Tensor> outputs = run(module, {floats({8}, x)});
    const auto count = static_cast<double>(above_half(x).size());
    EXPECT_EQ(values_of(outputs[0]), (V{1, count}));
    EXPECT_EQ(values_of(outputs[1]), (V{2 * count}));
  }
}

TEST_F(PipelineModules, TakeAsManyAsTheDataSay) {
  OnnxModel model = with_half();
  model.input("x", {8}).input("k", {1}, onnx::TensorProto::INT64).output("values").output("places");
  model.node("TopK", {"x", "k"}, {"best", "places"});
  model.node("Relu", {"best"}, {"values"});
  LoadedModule module = build(model);
  for (V x : drawn_vectors(8)) {
    for (const int64_t k : {0, 1, 5, 8}) {
      Tensor count(DType::kInt64, {1});
      count.set_int(0, k);
      const std::vector<Tensor> outputs = run(module, {floats({8}, x), count});
      std::ranges::stable_sort(x, std::greater());
      EXPECT_EQ(values_of(outputs[0]), V(x.begin(), x.begin() + k));
      EXPECT_EQ(outputs[1].shape(), (Ints{k}));
    }
  }
  Tensor count(DType::kInt64, {1});
  count.set_int(0, 9);
  EXPECT_ERROR(module.run(std::vector{floats({8}, V(8)), count}),
               "\"best/room\" has 8 elements along axis 0, of which 9 are found");
}

// The data say where a Slice starts and ends.
TEST_F(PipelineModules, CutOutWhatTheDataSay) {
  OnnxModel model(17);
  model.input("x", {9}).output("y").integers("axis", {0}).integers("back", {-2});
  model.input("start", {1}, onnx::TensorProto::INT64).input("end", {1}, onnx::TensorProto::INT64);
  model.node("Slice", {"x", "start", "end", "axis"}, {"part"});
  model.node("Slice", {"x", "start", "end", "axis", "back"}, {"backwards"});
  set_int(model.node("Concat", {"part", "backwards"}, {"both"}), "axis", 0);
  model.node("Neg", {"both"}, {"y"});
  LoadedModule module = build(model);
  V x;
  for (int i = 0; i < 9; ++i) x.push_back(i + 1);
  for (const int64_t start : {-20, -3, 0, 4, 8, 30}) {
    for (const int64_t end : {-20, -1, 0, 5, 30}) {
      const std::vector<Tensor> outputs =
          run(module, {floats({9}, x), integers({1}, {start}), integers({1}, {end})});
      V wanted;
      const auto normal = [](int64_t place) { return place < 0 ? place + 9 : place; };
      const int64_t from = normal(start), to = normal(end);
      for (int64_t i = std::clamp<int64_t>(from, 0, 9); i < std::clamp<int64_t>(to, 0, 9); ++i)
        wanted.push_back(-(i + 1));
      const int64_t last = std::clamp<int64_t>(to, -1, 8);
      for (int64_t i = std::clamp<int64_t>(from, 0, 8); i > last; i -= 2)
        wanted.push_back(-(i + 1));
      EXPECT_EQ(values_of(outputs[0]), wanted) << start << " " << end;
    }
  }
}

// The second symbol of a shape alone says what a constant is, and the stage that has it is given
// the whole shape.
TEST_F(PipelineModules, AskForOneOfTwoExtents) {
  OnnxModel model(17);
  model.input("x", {1, 1, 4, 4}).input("sizes", {2}, onnx::TensorProto::INT64).output("y");
  model.integers("ones", {1, 1}).integers("all", {-1}).integer("width", 3);
  model.integer("zero", 0).integer("one", 1).integer("seven", 7);
  model.node("Clip", {"sizes", "one", "seven"}, {"clipped"});
  set_int(model.node("Concat", {"ones", "clipped"}, {"shape"}), "axis", 0);
  set_text(model.node("Resize", {"x", "", "", "shape"}, {"resized"}), "mode", "linear");
  model.node("Shape", {"resized"}, {"extents"});
  model.node("Gather", {"extents", "width"}, {"columns"});
  model.node("Reshape", {"resized", "all"}, {"flat"});
  set_int(model.node("ArgMax", {"flat"}, {"place"}), "axis", 0);
  model.node("Mod", {"place", "columns"}, {"y"});
  LoadedModule module = build(model);
  V x(16, 0);
  x[7] = 1;  // in the last column
  for (const int64_t rows : {1, 4, 7})
    for (const int64_t columns : {4, 5, 7}) {
      const std::vector<Tensor> outputs =
          run(module, {floats({1, 1, 4, 4}, x), integers({2}, {rows, columns})});
      EXPECT_EQ(values_of(outputs[0]), (V{static_cast<double>(columns - 1)}))
          << rows << " " << columns;
    }
}

// The first four of a sum of two extents are fewer only where both are small.
TEST_F(PipelineModules, DependOnTwoExtentsTogether) {
  OnnxModel model = with_half();
  model.input("x", {8}).input("k", {1}, onnx::TensorProto::INT64).output("y");
  model.integer("zero", 0).integer("eight", 8).integers("begin", {0}).integers("four", {4});
  add_masked(model, "x", "kept");
  model.node("Clip", {"k", "zero", "eight"}, {"more"});
  set_int(model.node("Concat", {"begin", "more"}, {"pads"}), "axis", 0);
  model.node("Pad", {"kept", "pads"}, {"padded"});
  model.node("Slice", {"padded", "begin", "four"}, {"few"});
  model.node("Neg", {"few"}, {"y"});
  LoadedModule module = build(model);
  for (const V& x : drawn_vectors(8)) {
    for (const int64_t k : {0, 1, 2, 8}) {
      V wanted = above_half(x);
      wanted.resize(std::min<size_t>(wanted.size() + static_cast<size_t>(k), 4));
      for (double& value : wanted) value = -static_cast<float>(value);
      EXPECT_EQ(values_of(run(module, {floats({8}, x), integers({1}, {k})})[0]), wanted) << k;
    }
  }
}

/// A Loop over the elements of "kept", whose body's nodes are those of `body`.
onnx::NodeProto& add_loop(OnnxModel& model,
                          OnnxModel& body,
                          const std::vector<std::string>& begin,
                          const std::vector<std::string>& outputs) {
  model.node("Size", {"kept"}, {"count"});
  std::vector<std::string> inputs = {"count", ""};
  inputs.insert(inputs.end(), begin.begin(), begin.end());
  onnx::NodeProto& loop = model.node("Loop", inputs, outputs);
  set_graph(loop, "body", body);
  return loop;
}

OnnxModel body_with_round() {
  OnnxModel body;
  body.input("i", {}, onnx::TensorProto::INT64).input("go", {}, onnx::TensorProto::BOOL);
  body.output("go");
  return body;
}

// Each round adds a result along a new axis, and hands a value on to the next round.
TEST_F(PipelineModules, RunAsManyRoundsAsAreFound) {
  OnnxModel model = with_half(), body = body_with_round();
  model.input("x", {7}).output("total").output("y");
  add_masked(model, "x", "kept");
  body.input("sum", {}).output("next").output("square");
  body.node("Gather", {"kept", "i"}, {"element"});
  body.node("Add", {"sum", "element"}, {"next"});
  body.node("Mul", {"next", "next"}, {"square"});
  add_loop(model, body, {"half"}, {"total", "squares"});
  model.node("Neg", {"squares"}, {"y"});
  LoadedModule module = build(model);
  for (const V& x : drawn_vectors(7)) {
    const std::vector<Tensor> outputs = run(module, {floats({7}, x)});
    float sum = 0.5F;
    V squares;
    for (const double value : above_half(x)) {
      sum += static_cast<float>(value);
      squares.push_back(-(sum * sum));
    }
    EXPECT_EQ(values_of(outputs[0]), (V{sum}));
    EXPECT_EQ(outputs[1].shape(), (Ints{std::ssize(squares)}));
    EXPECT_EQ(values_of(outputs[1]), squares);
  }
}

// Two states change places in each round, which is a copy of both at once; a third one grows.
TEST_F(PipelineModules, HandOnWhatAnotherStateWas) {
  OnnxModel model = with_half(), body = body_with_round();
  model.input("x", {7}).input("a", {2}).input("b", {2}).output("c").output("d").output("all");
  model.initializer("nothing", onnx::TensorProto::FLOAT, {0, 2});
  add_masked(model, "x", "kept");
  body.input("p", {2}).input("q", {2}).input("rows", {}).integers("axis", {0});
  body.output("q").output("sum").output("more");
  body.node("Add", {"p", "q"}, {"sum"});
  body.node("Unsqueeze", {"sum", "axis"}, {"row"});
  set_int(body.node("Concat", {"rows", "row"}, {"more"}), "axis", 0);
  add_loop(model, body, {"a", "b", "nothing"}, {"c", "d", "all"});
  LoadedModule module = build(model);
  for (const V& x : drawn_vectors(7)) {
    const std::vector<Tensor> outputs =
        run(module, {floats({7}, x), floats({2}, {1, 2}), floats({2}, {3, 4})});
    V p = {1, 2}, q = {3, 4}, all;
    for (size_t round = 0; round < above_half(x).size(); ++round) {
      const V sum = {p[0] + q[0], p[1] + q[1]};
      p = std::exchange(q, sum);
      all.insert(all.end(), sum.begin(), sum.end());
    }
    EXPECT_EQ(values_of(outputs[0]), p);
    EXPECT_EQ(values_of(outputs[1]), q);
    EXPECT_EQ(values_of(outputs[2]), all);
    EXPECT_EQ(outputs[2].shape(), (Ints{std::ssize(all) / 2, 2}));
  }
}

// A round finds elements itself, and the condition after it may be the last one.
TEST_F(PipelineModules, EndRoundsWhereTheDataSay) {
  OnnxModel model = with_half(), body = body_with_round();
  model.input("x", {6}).output("y").integer("five", 5).integers("axis", {0});
  model.initializer("yes", onnx::TensorProto::BOOL, {}).add_int32_data(1);
  model.initializer("zero", onnx::TensorProto::FLOAT, {}).add_float_data(0);
  model.initializer("three", onnx::TensorProto::FLOAT, {}).add_float_data(3);
  body.graph().mutable_output(0)->set_name("less");
  body.input("sum", {}).output("next").output("next");
  add_masked(body, "x", "kept");
  set_int(body.node("ReduceSum", {"kept", "axis"}, {"own"}), "keepdims", 0);
  body.node("Add", {"sum", "own"}, {"next"});
  body.node("Less", {"next", "three"}, {"less"});
  set_graph(model.node("Loop", {"five", "yes", "zero"}, {"", "sums"}), "body", body);
  model.node("Neg", {"sums"}, {"y"});
  LoadedModule module = build(model);
  for (const V& x : drawn_vectors(6)) {
    V wanted;
    float each = 0, sum = 0;
    for (const double value : above_half(x)) each += static_cast<float>(value);
    for (int round = 0; round < 5 && (round == 0 || sum < 3); ++round) {
      sum += each;
      wanted.push_back(-sum);
    }
    const V made = values_of(run(module, {floats({6}, x)})[0]);
    ASSERT_EQ(made.size(), wanted.size());
    for (size_t i = 0; i < made.size(); ++i) EXPECT_NEAR(made[i], wanted[i], 1e-5);
  }
}

TEST_F(PipelineModules, RefuseANumberOfAnySize) {
  OnnxModel model(17);
  model.input("k", {1}, onnx::TensorProto::INT64).output("y");
  model.node("ConstantOfShape", {"k"}, {"zeros"});
  model.node("Exp", {"zeros"}, {"y"});
  EXPECT_ERROR(phases(model), "an extent is computed at run time from the input \"k\"");
  EXPECT_ERROR(phases(model), "where the network clips it (Clip, Min), there is room for the");
}

TEST_F(PipelineModules, RefuseAnotherNetworkAtAnotherExtent) {
  OnnxModel model = with_half();
  model.input("x", {8}).output("y").integer("three", 3);
  add_masked(model, "x", "kept");
  model.node("Size", {"kept"}, {"size"});
  model.node("Less", {"size", "three"}, {"few"});
  add_choice(model, "few", "Neg", "Relu", "kept");
  EXPECT_ERROR(phases(model),
               "where the data find 1 of \"kept_found\" the network is another than where they "
               "find 8");
}

// The tail behind the first n rows is longer when fewer rows are found.
TEST_F(PipelineModules, HaveRoomForWhatIsLongestWhereLittleIsFound) {
  OnnxModel model = with_half();
  model.input("x", {13, 3}).input("c", {13}).output("y").output("z");
  model.integers("end", {99}).integers("first", {0}).integers("one", {1});
  model.node("Greater", {"c", "half"}, {"condition"});
  set_int(model.node("Compress", {"x", "condition"}, {"rows"}), "axis", 0);
  model.node("Shape", {"rows"}, {"shape"});
  model.node("Slice", {"shape", "first", "one"}, {"n"});
  model.node("Slice", {"x", "n", "end", "first"}, {"tail"});
  model.node("Neg", {"tail"}, {"y"});
  model.node("Neg", {"rows"}, {"negative"});
  set_int(model.node("Concat", {"tail", "negative"}, {"z"}), "axis", 0);
  LoadedModule module = build(model);
  EXPECT_EQ(module.outputs()[0].shape, (Ints{13, 3}));
  V x;
  for (int i = 0; i < 39; ++i) x.push_back(i + 1);
  for (const V& c : drawn_vectors(13)) {
    const std::vector<Tensor> outputs = run(module, {floats({13, 3}, x), floats({13}, c)});
    const auto found = static_cast<int64_t>(above_half(c).size());
    EXPECT_EQ(outputs[0].shape(), (Ints{13 - found, 3}));
    EXPECT_EQ(outputs[1].shape(), (Ints{13, 3}));
    for (int64_t i = 0; i < outputs[0].num_elements(); ++i) {
      const auto at = static_cast<size_t>(found * 3 + i);
      EXPECT_EQ(outputs[0].get(i), -x[at]);
      EXPECT_EQ(outputs[1].get(i), x[at]);
    }
  }
}

// At one extent of 13 the other branch is taken; at the extents that are looked at first it is not.
TEST_F(PipelineModules, RefuseABranchOfOneExtent) {
  for (const char* op : {"Equal", "Sub"}) {
    OnnxModel model = with_half();
    model.input("x", {13}).output("y").integers("five", {5});
    add_masked(model, "x", "kept");
    model.node("Shape", {"kept"}, {"n"});
    if (std::string(op) == "Sub") {
      model.integers("none", {0});
      model.node("Sub", {"n", "five"}, {"less"});
      model.node("Equal", {"less", "none"}, {"is"});
    } else {
      model.node("Equal", {"n", "five"}, {"is"});
    }
    add_choice(model, "is", "Sin", "Cos", "x");
    EXPECT_ERROR(phases(model), "where the data find 5 of \"kept_found\" the network is another");
  }
}

TEST_F(PipelineModules, HaveOneStageWhereNothingIsRead) {
  OnnxModel model = with_half();
  model.input("x", {8}).output("y");
  model.node("Relu", {"x"}, {"y"});
  EXPECT_ERROR(phases(model), "it has one stage");
}

}  // namespace
}  // namespace pruner
