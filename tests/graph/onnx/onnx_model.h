// ONNX models for tests, as the files are: written with the protobuf classes.
#pragma once

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <filesystem>

#include "golden.h"
#include "graph/onnx/import.h"

namespace pruner {

class OnnxModel {
 public:
  explicit OnnxModel(int64_t opset = 13) {
    model.set_ir_version(8);
    model.add_opset_import()->set_version(opset);
    graph().set_name("test");
  }

  onnx::GraphProto& graph() { return *model.mutable_graph(); }

  /// A float input; a negative extent is open, a name for it follows.
  OnnxModel& input(const std::string& name, const std::vector<int64_t>& shape, int type = 1) {
    onnx::ValueInfoProto& proto = *graph().add_input();
    proto.set_name(name);
    auto& tensor = *proto.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    tensor.mutable_shape();
    for (const int64_t extent : shape) {
      auto& dim = *tensor.mutable_shape()->add_dim();
      if (extent < 0) {
        dim.set_dim_param("batch");
      } else {
        dim.set_dim_value(extent);
      }
    }
    return *this;
  }

  OnnxModel& output(const std::string& name) {
    graph().add_output()->set_name(name);
    return *this;
  }

  onnx::NodeProto& node(const std::string& op,
                        const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs) {
    onnx::NodeProto& proto = *graph().add_node();
    proto.set_op_type(op);
    proto.set_name(op + "_" + std::to_string(graph().node_size()));
    for (const std::string& name : inputs) proto.add_input(name);
    for (const std::string& name : outputs) proto.add_output(name);
    return proto;
  }

  onnx::TensorProto& initializer(const std::string& name,
                                 int type,
                                 const std::vector<int64_t>& shape) {
    onnx::TensorProto& proto = *graph().add_initializer();
    proto.set_name(name);
    proto.set_data_type(type);
    for (const int64_t extent : shape) proto.add_dims(extent);
    return proto;
  }

  /// A constant of int64: a list, or a scalar.
  OnnxModel& integers(const std::string& name, const std::vector<int64_t>& values) {
    const auto n = static_cast<int64_t>(values.size());
    onnx::TensorProto& tensor = initializer(name, onnx::TensorProto::INT64, {n});
    for (const int64_t value : values) tensor.add_int64_data(value);
    return *this;
  }
  OnnxModel& integer(const std::string& name, int64_t value) {
    initializer(name, onnx::TensorProto::INT64, {}).add_int64_data(value);
    return *this;
  }

  std::string bytes() const { return model.SerializeAsString(); }

  onnx::ModelProto model;
};

inline void set_ints(onnx::NodeProto& node,
                     const std::string& name,
                     const std::vector<int64_t>& values) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INTS);
  for (const int64_t v : values) attribute.add_ints(v);
}

inline void set_int(onnx::NodeProto& node, const std::string& name, int64_t value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

inline void set_text(onnx::NodeProto& node, const std::string& name, const std::string& value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::STRING);
  attribute.set_s(value);
}

/// The graph of another model as an attribute: a branch, or a body.
inline void set_graph(onnx::NodeProto& node, const std::string& name, OnnxModel graph) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::GRAPH);
  *attribute.mutable_g() = graph.graph();
}

inline void set_float(onnx::NodeProto& node, const std::string& name, float value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::FLOAT);
  attribute.set_f(value);
}

/// A path that no other process of this test uses.
inline std::string scratch_path(const std::string& name) {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  const std::string folder =
      testing::TempDir() + "pruner_" + test.test_suite_name() + "_" + test.name();
  std::filesystem::create_directories(folder);
  return folder + "/" + name;
}

inline Result<Graph> import_model(const OnnxModel& model, const NetworkOptions& options = {}) {
  return import_onnx_bytes(model.bytes(), options);
}

inline Graph imported(const OnnxModel& model, const NetworkOptions& options = {}) {
  Result<Graph> graph = import_model(model, options);
  EXPECT_TRUE(graph.ok()) << graph.error().message();
  return graph.ok() ? *std::move(graph) : Graph();
}

}  // namespace pruner
