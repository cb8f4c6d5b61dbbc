// Finds the nodes of a model that cannot be read. The import goes on after each of them: the
// node's outputs become inputs.
#include <map>

#include "graph/evaluate.h"
#include "graph/found_values.h"
#include "graph/onnx/checks.h"
#include "graph/onnx/importer.h"
#include "graph/onnx/tensor_proto.h"

namespace pruner {

// Returns the value that `declared` describes; nothing if `declared` leaves something out.
static std::optional<Value> declared_value(const onnx::ValueInfoProto& declared) {
  const onnx::TypeProto_Tensor& type = declared.type().tensor_type();
  const std::optional<DType> dtype = dtype_from_onnx(type.elem_type());
  if (!dtype || !type.has_shape()) return std::nullopt;
  Value value{declared.name(), *dtype, {}, std::nullopt};
  for (const auto& dim : type.shape().dim()) {
    if (!dim.has_dim_value() || dim.dim_value() < 0) return std::nullopt;
    value.shape.push_back(dim.dim_value());
  }
  if (!is_tensor_shape(value.shape)) return std::nullopt;
  return value;
}

// Adds the output of a node that cannot be read as the file declares it; else nobody can read the
// name.
void Importer::assume(const std::string& name,
                      const onnx::ValueInfoProto* declared,
                      NameScope& scope) {
  scope.names.erase(name);
  if (declared == nullptr) return;
  std::optional<Value> value = declared_value(*declared);
  if (!value) return;
  graph_.values.push_back(*std::move(value));
  const ValueId id{static_cast<int32_t>(graph_.values.size()) - 1};
  graph_.inputs.push_back(id);
  scope.names.emplace(name, id);
}

Result<NodeSurvey> Importer::survey() {
  const onnx::GraphProto& graph = model_.graph();
  TRY_ASSIGN(const int64_t opset, check_versions(model_));
  const CallFrame frame{opset, {}};
  NameScope scope{&frame, nullptr, "", 0};
  // Values that cannot be read have no name in `scope`. The nodes that read such a value get the
  // value's reason.
  std::map<std::string, std::string> reasons;
  const auto note = [&](const std::string& name, const Result<Unit>& added) {
    if (!added.ok()) reasons[name] = added.error().message();
  };
  for (const auto& proto : graph.initializer())
    note(proto.name(), add_initializer(proto, true, scope));
  for (const auto& input : graph.input()) {
    if (scope.find(input.name()) == nullptr) note(input.name(), add_input(input, scope));
  }
  std::map<std::string, const onnx::ValueInfoProto*> declared;
  for (const auto& value : graph.value_info()) declared[value.name()] = &value;
  for (const auto& value : graph.output()) declared[value.name()] = &value;

  TRY_ASSIGN(const Body* body, body_of(graph.node(), names_in(graph.output())));
  NodeSurvey survey{graph.node_size(), {}, {}};
  FoundValues found;
  for (const int i : body->order) {
    const onnx::NodeProto& node = graph.node(i);
    const size_t first = graph_.nodes.size();
    Result<Unit> added = add_node(node, *body, scope);
    bool finds = false;
    for (size_t n = first; added.ok() && n < graph_.nodes.size(); ++n) {
      const Result<bool> makes = found.add(graph_, graph_.nodes[n]);
      finds |= makes.ok() && *makes;
      if (!makes.ok()) added = makes.error();
    }
    if (finds) survey.found.push_back(i);
    if (added.ok()) continue;
    std::string reason = added.error().message();
    for (const std::string& name : node.input()) {
      if (const auto it = reasons.find(name); it != reasons.end()) reason = it->second;
    }
    survey.unsupported.push_back({i, node.name(), operator_name(node), reason});
    for (const std::string& name : node.output()) {
      const auto it = declared.find(name);
      assume(name, it == declared.end() ? nullptr : it->second, scope);
      if (scope.find(name) == nullptr)
        reasons[name] = "reads \"" + name + "\", whose type and shape the file does not declare";
    }
  }
  return survey;
}

}  // namespace pruner
