#include "graph/onnx/parsed_model.h"

#include "graph/folded_constants.h"
#include "graph/onnx/tensor_proto.h"

namespace pruner {

Result<std::shared_ptr<ParsedModel>> ParsedModel::of(std::shared_ptr<const onnx::ModelProto> proto,
                                                     ExternalData files) {
  if (!proto->has_graph()) return Error("this is no ONNX model: it holds no graph");
  TRY_ASSIGN(ModelFunctions functions, ModelFunctions::of(*proto));
  return std::shared_ptr<ParsedModel>(
      new ParsedModel(std::move(proto), std::move(functions), std::move(files)));
}

std::shared_ptr<const PartNodes> ParsedModel::part(const std::string& key,
                                                   const std::function<PartNodes()>& find) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const PartNodes>& known = parts_[key];
  if (known == nullptr) known = std::make_shared<const PartNodes>(find());
  return known;
}

Result<const NodeList*> ParsedModel::nodes(const std::string& key,
                                           const std::function<Result<NodeList>()>& make) {
  const std::lock_guard lock(mutex_);
  if (const auto known = nodes_.find(key); known != nodes_.end()) return &known->second;
  TRY_ASSIGN(NodeList made, make());
  return &(nodes_[key] = std::move(made));
}

Result<Tensor> ParsedModel::tensor_of(const onnx::TensorProto& message, bool is_initializer) {
  const std::lock_guard lock(mutex_);
  if (const auto known = tensors_.find(&message); known != tensors_.end()) return known->second;
  TRY_ASSIGN(const Tensor tensor,
             tensor_from_proto(message, files_, is_initializer ? proto_ : nullptr));
  return tensors_.emplace(&message, read_only(tensor)).first->second;
}

}  // namespace pruner
