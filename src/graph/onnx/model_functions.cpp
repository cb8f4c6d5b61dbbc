#include "graph/onnx/model_functions.h"

#include <google/protobuf/unknown_field_set.h>

#include <algorithm>

namespace pruner {

// Calls within calls; each takes some of the program's stack.
static constexpr size_t kDeepest = 200;

bool is_standard(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

std::string operator_name(const onnx::NodeProto& node) {
  return is_standard(node.domain()) ? node.op_type() : node.domain() + "::" + node.op_type();
}

// Fields that are newer than the protobuf classes of some installations; the classes keep fields
// that they do not know.
static constexpr int kNodeOverload = 8, kFunctionOverload = 13, kFunctionDefaults = 11;

// Returns the contents of a field of texts or messages as bytes, whether the classes know the field
// or not.
static std::vector<std::string> field_bytes(const google::protobuf::Message& message, int number) {
  std::vector<std::string> found;
  const auto* reflection = message.GetReflection();
  if (const auto* field = message.GetDescriptor()->FindFieldByNumber(number)) {
    if (!field->is_repeated()) return {reflection->GetString(message, field)};
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      found.push_back(reflection->GetRepeatedMessage(message, field, i).SerializeAsString());
    }
    return found;
  }
  const auto& fields = reflection->GetUnknownFields(message);
  for (int i = 0; i < fields.field_count(); ++i) {
    const google::protobuf::UnknownField& field = fields.field(i);
    if (field.number() == number &&
        field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
      found.push_back(field.length_delimited());
    }
  }
  return found;
}

static std::string overload_of(const google::protobuf::Message& message, int number) {
  const std::vector<std::string> texts = field_bytes(message, number);
  return texts.empty() ? "" : texts.back();
}

static std::string plain(const std::string& domain) { return is_standard(domain) ? "" : domain; }

ModelFunctions::Key ModelFunctions::key_of(const onnx::NodeProto& node) {
  return {plain(node.domain()), node.op_type(), overload_of(node, kNodeOverload)};
}

static std::string print(const std::tuple<std::string, std::string, std::string>& key) {
  const auto& [domain, name, overload] = key;
  return (domain.empty() ? "" : domain + "::") + name + (overload.empty() ? "" : ":" + overload);
}

const ModelFunction* ModelFunctions::find(const onnx::NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  const auto it = functions_.find(key_of(node));
  return it == functions_.end() ? nullptr : &it->second;
}

std::vector<const onnx::GraphProto*> subgraphs(const onnx::NodeProto& node) {
  std::vector<const onnx::GraphProto*> graphs;
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.has_g()) graphs.push_back(&attribute.g());
    for (const onnx::GraphProto& graph : attribute.graphs()) graphs.push_back(&graph);
  }
  return graphs;
}

Result<Unit> ModelFunctions::check_calls(const NodeList& nodes,
                                         std::vector<Key>& path,
                                         std::set<Key>& checked) const {
  for (const onnx::NodeProto& node : nodes) {
    if (find(node) != nullptr) TRY(check_call(key_of(node), path, checked));
    for (const onnx::GraphProto* graph : subgraphs(node)) {
      TRY(check_calls(graph->node(), path, checked));
    }
  }
  return Unit{};
}

Result<Unit> ModelFunctions::check_call(const Key& key,
                                        std::vector<Key>& path,
                                        std::set<Key>& checked) const {
  if (const auto first = std::ranges::find(path, key); first != path.end()) {
    std::string circle;
    for (auto it = first; it != path.end(); ++it) circle += print(*it) + " calls ";
    return Error("function ", print(key), " calls itself: ", circle, print(key));
  }
  if (path.size() >= kDeepest)
    return Error("functions call one another more than ", kDeepest, " deep, up to ", print(key));
  if (!checked.insert(key).second) return Unit{};
  path.push_back(key);
  TRY(check_calls(functions_.at(key).proto->node(), path, checked));
  path.pop_back();
  return Unit{};
}

Result<ModelFunctions> ModelFunctions::of(const onnx::ModelProto& model) {
  ModelFunctions functions;
  for (const onnx::FunctionProto& proto : model.functions()) {
    const Key key{plain(proto.domain()), proto.name(), overload_of(proto, kFunctionOverload)};
    ModelFunction function{&proto, {}};
    for (const std::string& bytes : field_bytes(proto, kFunctionDefaults)) {
      if (!function.defaults.emplace_back().ParseFromString(bytes))
        return Error("function ", print(key), " has a default attribute that cannot be parsed");
    }
    if (!functions.functions_.try_emplace(key, std::move(function)).second)
      return Error("function ", print(key), " is there twice");
  }
  std::vector<Key> path;
  std::set<Key> checked;
  for (const auto& [key, function] : functions.functions_) {
    TRY(functions.check_call(key, path, checked));
  }
  return functions;
}

}  // namespace pruner
