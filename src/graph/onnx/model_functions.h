// The functions that a model brings along: operators of its own, each a list of nodes.
#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "support/result.h"

namespace pruner {

using NodeList = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

/// Whether a domain is the one of ONNX's own operators.
bool is_standard(const std::string& domain);
/// Returns the operator with its domain: "Conv", "com.microsoft::FusedMatMul".
std::string operator_name(const onnx::NodeProto& node);

struct ModelFunction {
  const onnx::FunctionProto* proto;
  std::vector<onnx::AttributeProto> defaults;  // values of attributes that a call may leave out
};

class ModelFunctions {
 public:
  /// Returns the functions of `model`, which has to outlive them. The error names a function that
  /// is there twice, or that calls itself, directly or through others.
  static Result<ModelFunctions> of(const onnx::ModelProto& model);

  /// Returns the function that the node calls; null if the node calls none.
  const ModelFunction* find(const onnx::NodeProto& node) const;

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // domain, name, overload

  static Key key_of(const onnx::NodeProto& node);
  Result<Unit> check_calls(const NodeList& nodes,
                           std::vector<Key>& path,
                           std::set<Key>& checked) const;
  Result<Unit> check_call(const Key& key, std::vector<Key>& path, std::set<Key>& checked) const;

  std::map<Key, ModelFunction> functions_;
};

/// The graphs among a node's attributes.
std::vector<const onnx::GraphProto*> subgraphs(const onnx::NodeProto& node);

}  // namespace pruner
