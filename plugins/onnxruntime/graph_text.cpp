#include "onnxruntime/graph_text.h"

namespace pruner::ort {

static constexpr int kTensor = 1;  // ONNXType
static constexpr int kString = 8;  // an element type

// AttributeProto's fields: name 1, f 2, i 3, s 4, t 5, floats 7, ints 8, strings 9, type 20.
enum AttributeField : int {
  kName = 1,
  kF = 2,
  kI,
  kS,
  kT,
  kFloats = 7,
  kInts,
  kStrings,
  kType = 20
};
// AttributeProto.AttributeType.
enum OnnxAttribute : int {
  kOnnxFloat = 1,
  kOnnxInt,
  kOnnxString,
  kOnnxTensor,
  kOnnxFloats = 6,
  kOnnxInts,
  kOnnxStrings
};

static Result<std::string> name_of(const Calls& ort, const ValueInfo* value) {
  if (value == nullptr) return std::string();  // an optional input that is left out
  TRY_ASSIGN(const char* name, ort.get<const char*>(ort->get_value_info_name, value));
  return std::string(name);
}

static Result<std::vector<std::string>> names_of(const Calls& ort,
                                                 const std::vector<const ValueInfo*>& values) {
  std::vector<std::string> names;
  for (const ValueInfo* value : values) {
    TRY_ASSIGN(std::string name, name_of(ort, value));
    names.push_back(std::move(name));
  }
  return names;
}

Result<std::vector<std::string>> input_names(const Calls& ort, const Node* node) {
  TRY_ASSIGN(const auto inputs, ort.list(ort->node_get_num_inputs, ort->node_get_inputs, node));
  return names_of(ort, inputs);
}

Result<std::vector<std::string>> output_names(const Calls& ort, const Node* node) {
  TRY_ASSIGN(const auto outputs, ort.list(ort->node_get_num_outputs, ort->node_get_outputs, node));
  return names_of(ort, outputs);
}

static Result<TensorType> tensor_type(const Calls& ort, const TensorInfo* info) {
  TensorType type;
  TRY_ASSIGN(type.element_type, ort.get<int>(ort->get_tensor_element_type, info));
  TRY_ASSIGN(const size_t rank, ort.get<size_t>(ort->get_dimensions_count, info));
  type.shape.resize(rank);
  TRY(ort.check(ort->get_dimensions(info, type.shape.data(), rank)));
  std::vector<const char*> names(rank);
  TRY(ort.check(ort->get_symbolic_dimensions(info, names.data(), rank)));
  for (const char* name : names) type.dim_names.emplace_back(name == nullptr ? "" : name);
  type.ranked = true;
  return type;
}

static Result<TensorType> type_of(const Calls& ort, const ValueInfo* value) {
  TRY_ASSIGN(const TypeInfo* type, ort.get<const TypeInfo*>(ort->get_value_info_type_info, value));
  if (type == nullptr) return TensorType{};
  TRY_ASSIGN(const int kind, ort.get<int>(ort->get_onnx_type, type));
  if (kind != kTensor) return TensorType{};
  TRY_ASSIGN(const TensorInfo* info,
             ort.get<const TensorInfo*>(ort->cast_type_info_to_tensor_info, type));
  if (info == nullptr) return TensorType{};
  return tensor_type(ort, info);
}

static Result<Constant> constant_of(const Calls& ort, const Value* value) {
  Constant constant;
  TRY_ASSIGN(TensorInfo * info, ort.get<TensorInfo*>(ort->get_tensor_type_and_shape, value));
  Result<TensorType> type = tensor_type(ort, info);
  ort->release_tensor_info(info);
  if (!type.ok()) return type.error();
  constant.type = *std::move(type);
  TRY_ASSIGN(constant.data, ort.get<const void*>(ort->get_tensor_data, value));
  TRY_ASSIGN(constant.bytes, ort.get<size_t>(ort->get_tensor_size_in_bytes, value));
  return constant;
}

// The bytes of an attribute.
static Result<std::string> bytes_of(const Calls& ort,
                                    const Attribute* attribute,
                                    AttributeType type) {
  size_t bytes = 0;
  char none = 0;
  // Says how much it needs, with an error where that is more than nothing.
  if (Status* status = ort->read_attribute(attribute, type, &none, 0, &bytes))
    ort->release_status(status);
  std::string data(bytes, '\0');
  if (bytes > 0) TRY(ort.check(ort->read_attribute(attribute, type, data.data(), bytes, &bytes)));
  data.resize(bytes);
  return data;
}

template <typename T>
static std::vector<T> values_in(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

// TensorProto with its bytes: dims 1, data_type 2, raw_data 9.
static Result<Message> tensor_message(const Calls& ort, const Attribute* attribute) {
  TRY_ASSIGN(Value * value, ort.get<Value*>(ort->attribute_get_tensor, attribute));
  Result<Constant> constant = constant_of(ort, value);
  Message message;
  if (constant.ok()) {
    for (const int64_t extent : constant->type.shape) message.number(1, extent);
    message.number(2, constant->type.element_type);
    message.block(9, std::string_view(static_cast<const char*>(constant->data), constant->bytes));
  }
  ort->release_value(value);
  if (!constant.ok()) return constant.error();
  return message;
}

// Adds an attribute to a NodeProto; one that is a graph is left out.
static Result<Unit> add_attribute(const Calls& ort, const Attribute* attribute, Message& node) {
  TRY_ASSIGN(const char* name, ort.get<const char*>(ort->attribute_get_name, attribute));
  TRY_ASSIGN(const auto type, ort.get<AttributeType>(ort->attribute_get_type, attribute));
  Message message;
  message.block(kName, name);
  if (type == AttributeType::kGraph) return Unit{};
  if (type == AttributeType::kTensor) {
    TRY_ASSIGN(const Message tensor, tensor_message(ort, attribute));
    message.message(kT, tensor).number(kType, kOnnxTensor);
    node.message(5, message);
    return Unit{};
  }
  TRY_ASSIGN(const std::string bytes, bytes_of(ort, attribute, type));
  switch (type) {
    case AttributeType::kInt:
      message.number(kI, values_in<int64_t>(bytes).at(0)).number(kType, kOnnxInt);
      break;
    case AttributeType::kInts:
      for (const int64_t value : values_in<int64_t>(bytes)) message.number(kInts, value);
      message.number(kType, kOnnxInts);
      break;
    case AttributeType::kFloat:
      message.real(kF, values_in<float>(bytes).at(0)).number(kType, kOnnxFloat);
      break;
    case AttributeType::kFloats:
      for (const float value : values_in<float>(bytes)) message.real(kFloats, value);
      message.number(kType, kOnnxFloats);
      break;
    case AttributeType::kString: message.block(kS, bytes).number(kType, kOnnxString); break;
    case AttributeType::kStrings:
      for (size_t at = 0; at < bytes.size(); at += std::strlen(bytes.c_str() + at) + 1)
        message.block(kStrings, bytes.c_str() + at);
      message.number(kType, kOnnxStrings);
      break;
    default: return Error("attribute \"", name, "\" is of a kind that is not known");
  }
  node.message(5, message);
  return Unit{};
}

// NodeProto: input 1, output 2, name 3, op_type 4, attribute 5, domain 7.
static Result<NodeText> read_node(const Calls& ort, const Node* node) {
  NodeText text;
  text.node = node;
  TRY_ASSIGN(text.name, ort.get<const char*>(ort->node_get_name, node));
  TRY_ASSIGN(text.op, ort.get<const char*>(ort->node_get_operator_type, node));
  TRY_ASSIGN(text.domain, ort.get<const char*>(ort->node_get_domain, node));
  TRY_ASSIGN(text.inputs, input_names(ort, node));
  TRY_ASSIGN(text.outputs, output_names(ort, node));
  TRY_ASSIGN(const auto captured,
             ort.list(ort->node_get_num_implicit_inputs, ort->node_get_implicit_inputs, node));
  TRY_ASSIGN(text.captured, names_of(ort, captured));
  for (const std::string& name : text.inputs) text.message.block(1, name);
  for (const std::string& name : text.outputs) text.message.block(2, name);
  text.message.block(3, text.name).block(4, text.op).block(7, text.domain);
  TRY_ASSIGN(const auto attributes,
             ort.list(ort->node_get_num_attributes, ort->node_get_attributes, node));
  for (const Attribute* attribute : attributes) TRY(add_attribute(ort, attribute, text.message));
  return text;
}

namespace {

// Fills the types and constants of values.
class Values {
 public:
  Values(const Calls& ort, GraphText& text) : ort_(ort), text_(text) {}

  Result<Unit> add(const std::vector<const ValueInfo*>& values) {
    for (const ValueInfo* value : values) {
      if (value != nullptr) TRY(add(value));
    }
    return Unit{};
  }

 private:
  Result<Unit> add(const ValueInfo* value) {
    TRY_ASSIGN(const std::string name, name_of(ort_, value));
    if (name.empty() || text_.types.contains(name)) return Unit{};
    TRY_ASSIGN(text_.types[name], type_of(ort_, value));
    TRY_ASSIGN(const bool constant,
               ort_.get<bool>(ort_->value_info_is_constant_initializer, value));
    TRY_ASSIGN(const Value* tensor,
               ort_.get<const Value*>(ort_->value_info_get_initializer_value, value));
    if (tensor == nullptr) return Unit{};
    text_.initializers.insert(name);
    if (!constant) text_.defaults.insert(name);
    if (!constant || text_.types[name].element_type == kString) return Unit{};
    TRY_ASSIGN(text_.constants[name], constant_of(ort_, tensor));
    return Unit{};
  }

  const Calls& ort_;
  GraphText& text_;
};

}  // namespace

Result<GraphText> read_graph(const Calls& ort, const Graph* graph) {
  GraphText text;
  Values values(ort, text);
  TRY_ASSIGN(text.ir_version, ort.get<int64_t>(ort->graph_get_onnx_ir_version, graph));
  TRY_ASSIGN(const size_t sets, ort.get<size_t>(ort->graph_get_num_operator_sets, graph));
  std::vector<const char*> domains(sets);
  std::vector<int64_t> versions(sets);
  TRY(ort.check(ort->graph_get_operator_sets(graph, domains.data(), versions.data(), sets)));
  for (size_t i = 0; i < sets; ++i) text.opsets.emplace_back(domains[i], versions[i]);

  TRY_ASSIGN(const auto inputs, ort.list(ort->graph_get_num_inputs, ort->graph_get_inputs, graph));
  TRY(values.add(inputs));
  TRY_ASSIGN(const auto input_names, names_of(ort, inputs));
  for (const std::string& name : input_names) {
    if (!text.constants.contains(name)) text.inputs.push_back(name);
  }
  TRY_ASSIGN(const auto outputs,
             ort.list(ort->graph_get_num_outputs, ort->graph_get_outputs, graph));
  TRY(values.add(outputs));
  TRY_ASSIGN(text.outputs, names_of(ort, outputs));
  TRY_ASSIGN(const auto nodes, ort.list(ort->graph_get_num_nodes, ort->graph_get_nodes, graph));
  for (const Node* node : nodes) {
    TRY_ASSIGN(const auto read, ort.list(ort->node_get_num_inputs, ort->node_get_inputs, node));
    TRY(values.add(read));
    TRY_ASSIGN(const auto captured,
               ort.list(ort->node_get_num_implicit_inputs, ort->node_get_implicit_inputs, node));
    TRY(values.add(captured));
    TRY_ASSIGN(const auto made, ort.list(ort->node_get_num_outputs, ort->node_get_outputs, node));
    TRY(values.add(made));
    TRY_ASSIGN(NodeText read_text, read_node(ort, node));
    text.nodes.push_back(std::move(read_text));
  }
  return text;
}

static Result<const Attribute*> find_attribute(const Calls& ort,
                                               const Node* node,
                                               const char* name) {
  TRY_ASSIGN(const Attribute* attribute,
             ort.get<const Attribute*>(ort->node_get_attribute_by_name, node, name));
  if (attribute == nullptr) return Error("the node has no attribute \"", name, "\"");
  return attribute;
}

Result<std::string> read_text(const Calls& ort, const Node* node, const char* name) {
  TRY_ASSIGN(const Attribute* attribute, find_attribute(ort, node, name));
  return bytes_of(ort, attribute, AttributeType::kString);
}

Result<int64_t> read_number(const Calls& ort, const Node* node, const char* name) {
  TRY_ASSIGN(const Attribute* attribute, find_attribute(ort, node, name));
  TRY_ASSIGN(const std::string bytes, bytes_of(ort, attribute, AttributeType::kInt));
  if (bytes.size() != sizeof(int64_t)) return Error("attribute \"", name, "\" is no number");
  return values_in<int64_t>(bytes)[0];
}

}  // namespace pruner::ort
