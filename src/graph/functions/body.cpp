#include "graph/functions/body.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/evaluate.h"

namespace pruner {

DType Term::dtype() const { return body->graph_[id].dtype; }

std::vector<int64_t> Term::shape() const { return body->graph_[id].shape; }

int64_t Term::extent(int64_t d) const {
  if (d < 0) d += rank();
  return d >= 0 && d < rank() ? shape()[d] : 1;
}

const std::optional<Tensor>& Term::constant() const { return body->graph_[id].constant; }

Body::Body(Graph& graph, const Node& call, int64_t opset)
    : graph_(graph),
      node_(call),
      call_{graph, node_},
      opset_(opset),
      first_value_(graph.values.size()),
      written_(call.outputs.size(), false) {}

Term Body::input(size_t i) { return made(has(i) ? node_.inputs[i] : ValueId{}); }

ValueId Body::new_value(const std::string& op) {
  // The number counts from the body's first value: an import of a part has the same names.
  const auto has_name = [&](ValueId id) { return !graph_[id].name.empty(); };
  const auto output = std::ranges::find_if(node_.outputs, has_name);
  const std::string& like = output == node_.outputs.end() ? node_.name : graph_[*output].name;
  std::string name = fmt::format("{}/{}_{}", like, op, graph_.values.size() - first_value_);
  graph_.values.push_back({std::move(name), {}, {}, std::nullopt});
  return ValueId{static_cast<int32_t>(graph_.values.size()) - 1};
}

DType Body::dtype(const char* attribute, DType fallback) {
  if (!call_.has_attribute(attribute)) return fallback;
  const int64_t number = call_.integer(attribute, 0);
  const auto row = std::ranges::find(kDTypes, number, &DTypeRow::onnx);
  if (row != std::end(kDTypes)) return row->dtype;
  fail(Error("the element type ", number, " of ", attribute, " is not supported"));
  return fallback;
}

Term Body::add(const std::string& op, std::vector<Term> inputs, Attributes attributes) {
  return add_many(op, std::move(inputs), 1, std::move(attributes))[0];
}

std::vector<Term> Body::add_many(const std::string& op,
                                 std::vector<Term> inputs,
                                 size_t outputs,
                                 Attributes attributes) {
  Node node{op, node_.name, {}, {}, std::move(attributes)};
  for (const Term& input : inputs) node.inputs.push_back(input.id);
  std::vector<Term> terms;
  for (size_t i = 0; i < outputs; ++i) {
    node.outputs.push_back(new_value(op));
    terms.push_back(made(node.outputs.back()));
  }
  if (error_) return terms;
  const Result<Unit> appended = append_call(graph_, std::move(node), opset_);
  if (!appended.ok()) fail(appended.error());
  return terms;
}

Term Body::constant(Tensor tensor) {
  const ValueId id = new_value("constant");
  graph_[id].dtype = tensor.dtype();
  graph_[id].shape = tensor.shape();
  graph_[id].constant = std::move(tensor);
  return made(id);
}

Term Body::scalar(double value, DType dtype) {
  Tensor tensor(dtype, {});
  tensor.set(0, value);
  return constant(std::move(tensor));
}

Term Body::integers(std::span<const int64_t> values) {
  Tensor tensor(DType::kInt64, {static_cast<int64_t>(values.size())});
  std::ranges::copy(values, tensor.values<int64_t>().begin());
  return constant(std::move(tensor));
}

Term Body::cast(Term x, DType to) {
  return x.dtype() == to ? x : add("Cast", {x}, {{"to", std::string(dtype_name(to))}});
}

Term Body::reshape(Term x, std::vector<int64_t> shape) {
  return add("Reshape", {x, integers(shape)});
}

Term Body::transpose(Term x, std::vector<int64_t> order) {
  return add("Transpose", {x}, {{"perm", std::move(order)}});
}

Term Body::unsqueeze(Term x, int64_t axis) { return add("Unsqueeze", {x, integers({{axis}})}); }

Term Body::slice(Term x, int64_t axis, int64_t start, int64_t end) {
  return add("Slice", {x, integers({{start}}), integers({{end}}), integers({{axis}})});
}

Term Body::concat(std::vector<Term> parts, int64_t axis) {
  return add("Concat", std::move(parts), {{"axis", axis}});
}

Term Body::reduce(const std::string& op, Term x, std::span<const int64_t> axes) {
  return add(op, {x, integers(axes)});
}

void Body::output(size_t i, Term value) {
  if (!wants(i) || error_) return;
  written_[i] = true;
  const Result<Unit> appended =
      append_call(graph_, {"Identity", node_.name, {value.id}, {node_.outputs[i]}, {}}, opset_);
  if (!appended.ok()) fail(appended.error());
}

void Body::fail(Error error) {
  if (!error_) error_ = std::move(error);
}

Result<Unit> Body::finish() const {
  if (error_) return *error_;
  for (size_t i = 0; i < written_.size(); ++i) {
    if (wants(i) && !written_[i]) return Error("output ", i, " of ", node_.op, " is not supported");
  }
  return Unit{};
}

static Term binary(const char* op, Term a, Term b) { return a.body->add(op, {a, b}); }
static Term number(Term like, double value) { return like.body->scalar(value, like.dtype()); }

Term operator+(Term a, Term b) { return binary("Add", a, b); }
Term operator-(Term a, Term b) { return binary("Sub", a, b); }
Term operator*(Term a, Term b) { return binary("Mul", a, b); }
Term operator/(Term a, Term b) { return binary("Div", a, b); }
Term operator+(Term a, double b) { return a + number(a, b); }
Term operator-(Term a, double b) { return a - number(a, b); }
Term operator-(double a, Term b) { return number(b, a) - b; }
Term operator*(Term a, double b) { return a * number(a, b); }
Term operator/(Term a, double b) { return a / number(a, b); }

Result<Unit> append_call(Graph& graph, Node call, int64_t opset) {
  const Function* function = find_function(call.op);
  if (function == nullptr) {
    TRY(infer_node(graph, call));
    graph.nodes.push_back(std::move(call));
    return Unit{};
  }
  const auto body_of = [&]() -> Result<Unit> {
    TRY(check_call(call, function->attributes, function->min_inputs, function->max_inputs));
    Body body(graph, call, opset);
    function->body(body);
    return body.finish();
  };
  const Result<Unit> made = body_of();
  if (made.ok()) return Unit{};
  return Error(node_label(graph, call), ": ", made.error().message());
}

}  // namespace pruner
