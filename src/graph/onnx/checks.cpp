#include "graph/onnx/checks.h"

#include <optional>

#include "graph/functions/body.h"
#include "graph/onnx/constructs.h"
#include "graph/onnx/node_order.h"
#include "graph/onnx/tensor_proto.h"
#include "graph/ops/op.h"
#include "support/log.h"

namespace pruner {

static constexpr int64_t kNewestIr = 14;

Result<int64_t> standard_opset(const OpsetImports& imports, int64_t fallback) {
  std::optional<int64_t> opset;
  for (const auto& import : imports) {
    if (!is_standard(import.domain())) continue;
    if (opset && *opset != import.version())
      return Error("imports two opsets of ONNX's operators, ", *opset, " and ", import.version());
    opset = import.version();
  }
  if (opset && (*opset < 1 || *opset > kNewestOpset)) {
    return Error("has operators of opset ",
                 *opset,
                 "; those from 1 to ",
                 kNewestOpset,
                 " are known: export the model to one of these");
  }
  return opset.value_or(fallback);
}

Result<int64_t> check_versions(const onnx::ModelProto& model) {
  if (model.ir_version() > kNewestIr || model.ir_version() < 1) {
    log_warning(
        "the file's IR version is {}; those from 1 to {} are known", model.ir_version(), kNewestIr);
  }
  // ONNX: a model that imports nothing means version 1.
  const Result<int64_t> opset = standard_opset(model.opset_import(), 1);
  if (!opset.ok()) return Error("the model ", opset.error().message());
  return opset;
}

namespace {

// Nodes by the operators that nobody has: "com.microsoft::FusedThing".
class UnknownOperators {
 public:
  explicit UnknownOperators(const ModelFunctions& functions) : functions_(functions) {}

  void add(const NodeList& nodes) {
    for (const onnx::NodeProto& node : nodes) {
      if (const ModelFunction* function = functions_.find(node)) {
        if (seen_.insert(function).second) add(function->proto->node());
      } else if (!is_known(operator_name(node))) {
        unknown_[operator_name(node)].push_back(label(node));
      }
      // The import does not know yet which graph of an If is taken.
      if (operator_name(node) == "If") continue;
      for (const onnx::GraphProto* graph : subgraphs(node)) add(graph->node());
    }
  }

  Result<Unit> check() const {
    if (unknown_.empty()) return Unit{};
    std::string list;
    for (const auto& [op, nodes] : unknown_) {
      list += (list.empty() ? "" : "; ") + op + " (node " + nodes[0];
      if (nodes.size() > 1) list += " and " + std::to_string(nodes.size() - 1) + " more";
      list += ")";
    }
    const char* subject = unknown_.size() == 1 ? " operator is" : " operators are";
    return Error(unknown_.size(), subject, " not supported: ", list);
  }

 private:
  // Only the import itself adds operators of the program, such as pruner::Found.
  static bool is_known(const std::string& op) {
    if (is_own_operator(op)) return false;
    return find_graph_op(op) != nullptr || find_function(op) != nullptr ||
           find_construct(op) != nullptr;
  }

  const ModelFunctions& functions_;
  std::set<const ModelFunction*> seen_;
  std::map<std::string, std::vector<std::string>> unknown_;
};

}  // namespace

Result<Unit> Importer::check_operators(const onnx::GraphProto& graph) const {
  UnknownOperators unknown(file_.functions());
  unknown.add(graph.node());
  return unknown.check();
}

// "FLOAT 1x3x?", or nothing where it agrees with the value.
static std::string contradiction(const onnx::ValueInfoProto& declared, const Value& value) {
  const onnx::TypeProto_Tensor& type = declared.type().tensor_type();
  bool agrees =
      !dtype_from_onnx(type.elem_type()) || *dtype_from_onnx(type.elem_type()) == value.dtype;
  std::string text = onnx_type_name(type.elem_type());
  if (!type.has_shape()) return agrees ? "" : text;
  const auto rank = static_cast<size_t>(type.shape().dim_size());
  agrees &= rank == value.shape.size();
  text += rank == 0 ? " scalar" : " ";
  for (size_t d = 0; d < rank; ++d) {
    const auto& dim = type.shape().dim(static_cast<int>(d));
    text += (d == 0 ? "" : "x") + (dim.has_dim_value() ? std::to_string(dim.dim_value()) : "?");
    // Some exporters write 0, or less, for an extent that they do not know.
    if (d < value.shape.size() && dim.dim_value() > 0) agrees &= dim.dim_value() == value.shape[d];
  }
  return agrees ? "" : text;
}

void warn_of_declared_types(const onnx::ModelProto& model,
                            const Graph& graph,
                            const NameScope& scope) {
  int count = 0;
  std::string first;
  const auto look_at = [&](const onnx::ValueInfoProto& declared) {
    const Entry* entry = scope.find(declared.name());
    const ValueId* id = entry == nullptr ? nullptr : std::get_if<ValueId>(entry);
    if (id == nullptr || !id->valid() || !declared.type().has_tensor_type()) return;
    const Value& value = graph[*id];
    const std::string text = contradiction(declared, value);
    if (text.empty() || ++count > 1) return;
    first = "\"" + declared.name() + "\" is " + onnx_type_name(dtype_to_onnx(value.dtype)) + " " +
            print_shape(value.shape) + ", declared " + text;
  };
  for (const auto& declared : model.graph().output()) look_at(declared);
  for (const auto& declared : model.graph().value_info()) look_at(declared);
  if (count == 0) return;
  const std::string more = count == 1 ? "" : fmt::format(" (and {} more)", count - 1);
  log_warning("the file declares another type than its nodes make: {}{}", first, more);
}

}  // namespace pruner
