// A parsed ONNX model with the files beside it: what imports at several shapes may share.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "graph/onnx/external_data.h"
#include "graph/onnx/model_functions.h"
#include "tensor/tensor.h"

namespace pruner {

/// Nodes of the main graph that a part of it consists of, in order, and the names that they read.
struct PartNodes {
  std::vector<int> order;
  std::set<std::string> read;
};

/// Several threads may import from one model at once.
class ParsedModel {
 public:
  /// The error says what is wrong with the model's functions, or that it has no graph.
  static Result<std::shared_ptr<ParsedModel>> of(std::shared_ptr<const onnx::ModelProto> proto,
                                                 ExternalData files);

  const onnx::ModelProto& proto() const { return *proto_; }
  const ModelFunctions& functions() const { return functions_; }

  /// Returns the tensor of a message of the model, which is read once. If the message is an
  /// initializer of the main graph, the tensor is a view of its bytes.
  Result<Tensor> tensor_of(const onnx::TensorProto& message, bool is_initializer);

  /// Lists of nodes that are made of the file's; each is made once and lives as long as the model.
  Result<const NodeList*> nodes(const std::string& key,
                                const std::function<Result<NodeList>()>& make);

  /// The nodes of the part that `key` stands for, which are found once.
  std::shared_ptr<const PartNodes> part(const std::string& key,
                                        const std::function<PartNodes()>& find);

 private:
  ParsedModel(std::shared_ptr<const onnx::ModelProto> proto,
              ModelFunctions functions,
              ExternalData files)
      : proto_(std::move(proto)), functions_(std::move(functions)), files_(std::move(files)) {}

  std::shared_ptr<const onnx::ModelProto> proto_;
  ModelFunctions functions_;
  std::mutex mutex_;
  ExternalData files_;
  std::map<const onnx::TensorProto*, Tensor> tensors_;  // views: nobody writes to them
  std::map<std::string, std::shared_ptr<const PartNodes>> parts_;
  std::map<std::string, NodeList> nodes_;
};

}  // namespace pruner
