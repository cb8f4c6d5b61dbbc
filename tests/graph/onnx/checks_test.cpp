#include "graph/onnx/checks.h"

#include <spdlog/sinks/ostream_sink.h>

#include <sstream>

#include "graph/functions/body.h"
#include "graph/onnx/onnx_model.h"
#include "graph/ops/op.h"
#include "graph/small_graph.h"
#include "support/log.h"

namespace pruner {
namespace {

OnnxModel relu_model(int64_t opset = 13) {
  OnnxModel model(opset);
  model.input("x", {1, 4}).output("y").node("Relu", {"x"}, {"y"});
  return model;
}

// Returns what an import writes to the log.
std::string warnings(const OnnxModel& model, const NetworkOptions& options = {}) {
  std::ostringstream text;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_st>(text)));
  spdlog::set_pattern("%v");
  const Result<Graph> graph = import_model(model, options);
  EXPECT_TRUE(graph.ok()) << graph.error().message();
  spdlog::set_default_logger(before);
  return text.str();
}

// The import and the passes alone add nodes of the program's own operators, so that these are where
// they belong. In a file they are unknown operators, whatever domain they are in.
TEST(CheckOperators, KnowsNoOperatorOfTheProgramItself) {
  for (const GraphOp& op : graph_ops()) {
    if (!op.is(kOwn)) continue;
    OnnxModel model;
    model.input("x", {4}).output("y").node(std::string(op.name), {"x"}, {"y"});
    EXPECT_ERROR(import_model(model), "1 operator is not supported: " + std::string(op.name));
  }
  for (const char* op : {"Found", "Number", "Part", "TrainingBatchNormalization"}) {
    OnnxModel model;
    model.input("x", {4}).output("y").node(op, {"x"}, {"y"}).set_domain("pruner");
    EXPECT_ERROR(import_model(model), std::string("1 operator is not supported: pruner::") + op);
  }
}

TEST(CheckVersions, KnowsOpsetsUpToTheNewest) {
  for (int64_t opset = 1; opset <= kNewestOpset; ++opset)
    EXPECT_TRUE(import_model(relu_model(opset)).ok()) << opset;
  EXPECT_ERROR(import_model(relu_model(kNewestOpset + 1)),
               "the model has operators of opset 29; those from 1 to 28 are known: export the "
               "model to one of these");
  EXPECT_ERROR(import_model(relu_model(0)), "the model has operators of opset 0");
  OnnxModel two = relu_model(13);
  auto& other = *two.model.add_opset_import();
  other.set_domain("ai.onnx");
  other.set_version(14);
  EXPECT_ERROR(import_model(two), "the model imports two opsets of ONNX's operators, 13 and 14");
  other.set_domain("com.microsoft");
  EXPECT_EQ(warnings(two), "");
}

TEST(CheckVersions, WarnsOfAnUnknownIr) {
  OnnxModel model = relu_model();
  model.model.set_ir_version(99);
  EXPECT_EQ(warnings(model), "the file's IR version is 99; those from 1 to 14 are known\n");
}

onnx::ValueInfoProto declaration(const std::string& name, int type, const Ints& shape) {
  OnnxModel model;
  return model.input(name, shape, type).graph().input(0);
}

TEST(WarnOfDeclaredTypes, NamesWhatContradictsTheNodes) {
  OnnxModel model = relu_model();
  model.node("Shape", {"x"}, {"s"});
  model.output("s");
  *model.graph().add_value_info() = declaration("s", onnx::TensorProto::INT64, {2});
  *model.graph().mutable_output(0) = declaration("y", onnx::TensorProto::FLOAT, {-1, 4});
  EXPECT_EQ(warnings(model), "");
  *model.graph().mutable_output(0) = declaration("y", onnx::TensorProto::FLOAT, {-1, 5});
  EXPECT_EQ(
      warnings(model),
      "the file declares another type than its nodes make: \"y\" is FLOAT 1x4, declared FLOAT "
      "?x5\n");
  *model.graph().mutable_value_info(0) = declaration("s", onnx::TensorProto::FLOAT, {2});
  EXPECT_EQ(
      warnings(model),
      "the file declares another type than its nodes make: \"y\" is FLOAT 1x4, declared FLOAT "
      "?x5 (and 1 more)\n");
  // Another size of the input makes other shapes, which the user wants.
  NetworkOptions options;
  options.input_shapes["x"] = {2, 4};
  EXPECT_EQ(warnings(model, options), "");
}

TEST(Attributes, ThatNobodyReadsAreErrors) {
  OnnxModel model = relu_model();
  set_int(*model.graph().mutable_node(0), "consumed_inputs", 1);
  EXPECT_TRUE(import_model(model).ok());
  set_int(*model.graph().mutable_node(0), "slope", 1);
  EXPECT_ERROR(import_model(model), "node \"Relu_1\": attribute \"slope\" is not supported");
  OnnxModel graph = relu_model();
  set_graph(*graph.graph().mutable_node(0), "body", relu_model());
  EXPECT_ERROR(
      import_model(graph),
      "node \"Relu_1\": attribute \"body\" is of the kind GRAPH, which Relu does not read");
}

}  // namespace
}  // namespace pruner
