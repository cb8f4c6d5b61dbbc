// Tensors to and from ONNX's TensorProto. Only files of graph/onnx/ include ONNX's headers.
#pragma once

#include <onnx/onnx_pb.h>

#include <memory>

#include "graph/onnx/external_data.h"
#include "support/result.h"
#include "tensor/tensor.h"

namespace pruner {

/// Empty for strings and complex numbers.
std::optional<DType> dtype_from_onnx(int type);
int dtype_to_onnx(DType dtype);
/// ONNX's own name: "FLOAT", "UINT8"; also of types newer than its protobuf classes here.
std::string onnx_type_name(int type);

/// Errors name the tensor: it is of a type that we do not hold, has other elements than its shape,
/// or lies in another file that `files` cannot give. With the `owner` of the message the tensor is
/// a view of its bytes where these are those of a tensor of ours.
Result<Tensor> tensor_from_proto(const onnx::TensorProto& proto,
                                 ExternalData& files,
                                 const std::shared_ptr<const void>& owner = nullptr);
onnx::TensorProto tensor_to_proto(const std::string& name, const Tensor& tensor);

}  // namespace pruner
