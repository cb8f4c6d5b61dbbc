// What a model says of itself, checked: its versions, and the types that it declares.
#pragma once

#include "graph/graph.h"
#include "graph/onnx/names.h"

namespace pruner {

using OpsetImports = google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>;

/// The opset of ONNX's own operators, `fallback` where the imports do not say; an error where it is
/// one that we cannot read.
Result<int64_t> standard_opset(const OpsetImports& imports, int64_t fallback);

/// The same of a model; an unknown IR version is warned of.
Result<int64_t> check_versions(const onnx::ModelProto& model);

/// One line in the log where values have other types or shapes than the file declares.
void warn_of_declared_types(const onnx::ModelProto& model,
                            const Graph& graph,
                            const NameScope& scope);

}  // namespace pruner
