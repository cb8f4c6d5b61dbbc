#include "graph/onnx/constructs.h"

#include <algorithm>

#include "graph/ops/op.h"

namespace pruner {

const Construct* find_construct(std::string_view op) {
  for (const std::span<const Construct> rows : {control_flow(), sequences(), numbers()}) {
    const auto row = std::ranges::find(rows, op, &Construct::op);
    if (row != rows.end()) return &*row;
  }
  return nullptr;
}

bool ConstructCall::has(size_t i) const {
  if (i >= inputs.size()) return false;
  const auto* id = std::get_if<ValueId>(&inputs[i]);
  return id == nullptr || id->valid();
}

Result<ValueId> ConstructCall::tensor(size_t i) const {
  if (!has(i)) return error(proto.op_type(), " needs its input ", i);
  if (const auto* id = std::get_if<ValueId>(&inputs[i])) return *id;
  return error("input ", i, " is a sequence, expected a tensor");
}

Result<std::vector<ValueId>> ConstructCall::sequence(size_t i) const {
  if (!has(i)) return error(proto.op_type(), " needs its input ", i);
  if (const auto* list = std::get_if<std::vector<ValueId>>(&inputs[i])) return *list;
  return error("input ", i, " is a tensor, expected a sequence");
}

Result<std::vector<int64_t>> ConstructCall::known_integers(ValueId id, const char* what) const {
  const std::optional<Tensor>& tensor = value(id).constant;
  if (!tensor) return error(computed_at_run_time(importer.graph(), id, what).message());
  if (is_float(tensor->dtype())) return error(what, " has to hold integers");
  std::vector<int64_t> values;
  for (int64_t i = 0; i < tensor->num_elements(); ++i) values.push_back(tensor->get_int(i));
  return values;
}

Result<int64_t> ConstructCall::known(ValueId id, const char* what) const {
  TRY_ASSIGN(const std::vector<int64_t> values, known_integers(id, what));
  if (values.size() == 1) return values[0];
  return error(what, " has ", values.size(), " elements, expected one");
}

int64_t ConstructCall::integer(const char* attribute, int64_t fallback) const {
  const BoundAttribute found = find_attribute(proto, attribute, scope);
  return found.proto == nullptr ? fallback : found.proto->i();
}

std::vector<int64_t> ConstructCall::integers(const char* attribute) const {
  const BoundAttribute found = find_attribute(proto, attribute, scope);
  if (found.proto == nullptr) return {};
  return {found.proto->ints().begin(), found.proto->ints().end()};
}

Result<std::pair<const onnx::GraphProto*, const NameScope*>> ConstructCall::graph(
    const char* attribute) const {
  const BoundAttribute found = find_attribute(proto, attribute, scope);
  if (found.proto == nullptr || !found.proto->has_g())
    return error(proto.op_type(), " has no graph \"", attribute, "\"");
  return std::pair(&found.proto->g(), found.scope != nullptr ? found.scope : &scope);
}

}  // namespace pruner
