#include <algorithm>
#include <fstream>

#include "graph/onnx/onnx_model.h"
#include "support/temporary_folder.h"

namespace pruner {
namespace {

Result<NodeSurvey> survey(const OnnxModel& model, const NetworkOptions& options = {}) {
  TRY_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make(""));
  const std::string path = folder.path("model.onnx");
  std::ofstream(path, std::ios::binary) << model.bytes();
  return survey_onnx(path, options);
}

// "op: reason" of each node that cannot be read.
std::vector<std::string> unsupported(const OnnxModel& model, const NetworkOptions& options = {}) {
  const Result<NodeSurvey> found = survey(model, options);
  EXPECT_TRUE(found.ok()) << found.error().message();
  std::vector<std::string> texts;
  for (const UnsupportedNode& node : found->unsupported)
    texts.push_back(node.op + ": " + node.reason);
  return texts;
}

void declare(OnnxModel& model, const std::string& name, const std::vector<int64_t>& shape) {
  OnnxModel other;
  other.input(name, shape);
  *model.graph().add_value_info() = other.graph().input(0);
}

TEST(Survey, FindsNothingInWhatCanBeRead) {
  OnnxModel model;
  model.input("x", {1, 4}).output("y").node("Relu", {"x"}, {"y"});
  const Result<NodeSurvey> found = survey(model);
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_EQ(found->num_nodes, 1);
  EXPECT_TRUE(found->unsupported.empty());
}

TEST(Survey, GoesOnBehindANodeWhoseOutputIsDeclared) {
  OnnxModel model;
  model.input("x", {1, 4}).output("y");
  model.node("Relu", {"x"}, {"a"});
  model.node("FancyThing", {"a"}, {"b"}).set_domain("my.domain");
  model.node("Exp", {"b"}, {"y"});
  EXPECT_EQ(unsupported(model).size(), 2u);
  declare(model, "b", {1, 4});
  const std::vector<std::string> texts = unsupported(model);
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_TRUE(texts[0].starts_with("my.domain::FancyThing: ")) << texts[0];
}

TEST(Survey, SaysWhichValueIsNotKnown) {
  OnnxModel model;
  model.input("x", {3, 4}).output("y").output("z");
  model.node("NonZero", {"x"}, {"a"});
  model.node("Neg", {"a"}, {"b"});
  model.node("Abs", {"b"}, {"y"});
  model.node("Relu", {"x"}, {"z"});
  const std::vector<std::string> texts = unsupported(model);
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_NE(texts[0].find("reads what NonZero finds"), std::string::npos) << texts[0];
  EXPECT_EQ(texts[1], "Abs: reads \"b\", whose type and shape the file does not declare");
  EXPECT_EQ(survey(model)->found, std::vector<int64_t>{0});
}

TEST(Survey, GivesTheReasonOfAnInputThatCannotBeRead) {
  OnnxModel model;
  model.input("words", {2}, onnx::TensorProto::STRING).input("x", {-1, 4}).output("y").output("z");
  model.node("Identity", {"words"}, {"z"});
  model.node("Relu", {"x"}, {"y"});
  std::vector<std::string> texts = unsupported(model);
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_NE(texts[0].find("has the element type STRING"), std::string::npos) << texts[0];
  EXPECT_NE(texts[1].find("has the dynamic shape batchx4"), std::string::npos) << texts[1];
  texts = unsupported(model, {.input_shapes = {{"x", {2, 4}}}});
  EXPECT_EQ(texts.size(), 1u);
}

TEST(Survey, KnowsWhatWouldBeTakenInTurn) {
  OnnxModel model;
  model.output("y").input("x", {2, 6});
  model.node("Relu", {"r"}, {"y"});
  model.node("Reshape", {"x", "shape"}, {"r"});
  model.integers("shape", {3, 5});
  const Result<NodeSurvey> found = survey(model);
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->unsupported.size(), 2u);
  EXPECT_EQ(found->unsupported[0].index, 1);
  EXPECT_EQ(found->unsupported[1].index, 0);
}

TEST(Survey, OfAFileThatIsNoModelIsAnError) {
  EXPECT_FALSE(survey_onnx("/nowhere.onnx", {}).ok());
  OnnxModel cycle;
  cycle.output("a");
  cycle.node("Relu", {"a"}, {"a"});
  EXPECT_FALSE(survey(cycle).ok());
}

}  // namespace
}  // namespace pruner
