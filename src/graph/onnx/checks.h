// Checks of what a model says of itself: its versions, and the types that it declares.
#pragma once

#include "graph/graph.h"
#include "graph/onnx/names.h"

namespace pruner {

using OpsetImports = google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>;

/// Returns the opset of ONNX's own operators, `fallback` if the imports do not name one; an error
/// if we cannot read the opset.
Result<int64_t> standard_opset(const OpsetImports& imports, int64_t fallback);

/// Returns the opset of a model; warns of an unknown IR version.
Result<int64_t> check_versions(const onnx::ModelProto& model);

/// Logs one line if values have other types or shapes than the file declares.
void warn_of_declared_types(const onnx::ModelProto& model,
                            const Graph& graph,
                            const NameScope& scope);

}  // namespace pruner
