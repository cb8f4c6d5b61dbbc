// An ONNX model from its bytes; import_onnx (graph/partition.h) reads them from a file.
#pragma once

#include <string_view>

#include "graph/onnx/external_data.h"
#include "graph/partition.h"

namespace pruner {

/// The graph of a serialized model, with the files beside it; errors as import_onnx's, without the
/// path.
Result<Graph> import_onnx_bytes(std::string_view bytes,
                                const NetworkOptions& options,
                                ExternalData files = {});

}  // namespace pruner
