// A node's attributes in our form.
#include <algorithm>

#include "graph/onnx/importer.h"
#include "graph/onnx/tensor_proto.h"

namespace pruner {

// Nothing for kinds that no row of ours reads.
Result<std::optional<Attribute>> Importer::attribute_of(const onnx::AttributeProto& proto) {
  using onnx::AttributeProto;
  switch (proto.type()) {
    case AttributeProto::INT: return {{proto.i()}};
    case AttributeProto::FLOAT: return {{static_cast<double>(proto.f())}};
    case AttributeProto::STRING: return {{proto.s()}};
    case AttributeProto::INTS:
      return {{std::vector<int64_t>(proto.ints().begin(), proto.ints().end())}};
    case AttributeProto::FLOATS:
      return {{std::vector<double>(proto.floats().begin(), proto.floats().end())}};
    case AttributeProto::STRINGS:
      return {{std::vector<std::string>(proto.strings().begin(), proto.strings().end())}};
    case AttributeProto::TENSOR: {
      TRY_ASSIGN(Tensor tensor, file_.tensor_of(proto.t(), false));
      return {{std::move(tensor)}};
    }
    default: return {std::nullopt};
  }
}

// Our form of Cast's target: the name of the type that holds it.
static Result<Unit> name_cast_target(Attributes& attributes) {
  const auto it = attributes.find("to");
  if (it == attributes.end()) return Unit{};
  int type = onnx::TensorProto::UNDEFINED;
  if (const auto* number = std::get_if<int64_t>(&it->second)) type = static_cast<int>(*number);
  if (const auto* name = std::get_if<std::string>(&it->second)) {  // opset 5 and before
    onnx::TensorProto_DataType parsed;
    if (onnx::TensorProto_DataType_Parse(*name, &parsed)) type = parsed;
  }
  const std::optional<DType> dtype = dtype_from_onnx(type);
  if (!dtype) {
    return Error("a cast to ", onnx_type_name(type), " is not supported");
  }
  it->second = std::string(dtype_name(*dtype));
  return Unit{};
}

Result<Attributes> Importer::attributes_of(const onnx::NodeProto& proto, const NameScope& scope) {
  Attributes attributes;
  for (const onnx::AttributeProto& attribute : proto.attribute()) {
    // One that refers to what the caller left out is left out too.
    const onnx::AttributeProto* given = bound(attribute, scope).proto;
    if (given == nullptr) continue;
    TRY_ASSIGN(std::optional<Attribute> value, attribute_of(*given));
    if (!value) {
      return Error("attribute \"",
                   attribute.name(),
                   "\" is of the kind ",
                   onnx::AttributeProto_AttributeType_Name(given->type()),
                   ", which ",
                   proto.op_type(),
                   " does not read");
    }
    attributes[attribute.name()] = *std::move(value);
  }
  if (proto.op_type() == "Cast" || proto.op_type() == "BitCast") TRY(name_cast_target(attributes));
  return attributes;
}

}  // namespace pruner
