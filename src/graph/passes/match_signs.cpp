// Products of unsigned and constant signed bytes (graph/functions/quantized_contractions.cpp)
// become products of signed bytes. This holds if the target multiplies signed bytes alone (sdot
// without i8mm), or if a change of signs before the product falls away. An unsigned byte with its
// upper bit changed is a signed byte that is 128 less, and
//   sum x w = sum (x - 128) w + 128 sum w
// The last sum is a constant for each output. Sums wrap around alike on both sides.
#include <algorithm>

#include "graph/ops/window.h"
#include "graph/passes.h"
#include "graph/rewriter.h"

namespace pruner {
namespace {

constexpr int64_t kShift = 128;

class SignMatcher {
 public:
  SignMatcher(Graph graph, bool unsigned_too) : r_(std::move(graph)), unsigned_too_(unsigned_too) {}
  Graph run() &&;

 private:
  ValueId signed_bytes(ValueId x);
  bool is_product(const Node& node) const;
  void match_conv(Node& node, ValueId x);
  void match_matmul(Node& node, ValueId x);
  void join_shifts(Node& node);

  /// A product of matrices whose shift is yet to be added.
  struct Shifted {
    ValueId product, sums;
  };

  Rewriter r_;
  const bool unsigned_too_;             // whether units multiply unsigned bytes, too
  std::map<ValueId, ValueId> signed_;   // signed form, per value of unsigned bytes
  std::map<ValueId, Shifted> shifted_;  // product and sums, per product with its shift
};

// Returns the sums of the product of `weight` with data that are all 128: one number for each index
// of dimension `dim`.
Tensor shifted_sums(const Tensor& weight, size_t dim) {
  const std::vector<int64_t>& shape = weight.shape();
  const int64_t run = element_count(std::span(shape).subspan(dim + 1)), n = shape[dim];
  Tensor sums(DType::kInt32, {n});
  for (int64_t i = 0; i < weight.num_elements(); ++i) {
    const int64_t at = i / run % n;
    sums.set_int(at, wrap_to(DType::kInt32, sums.get_int(at) + kShift * weight.get_int(i)));
  }
  return sums;
}

// Whether the node multiplies unsigned bytes by constant signed ones, as units do.
bool SignMatcher::is_product(const Node& node) const {
  const OpCall call{r_.graph(), node};
  const bool conv = node.op == "Conv" && !channels_last(call) && call.integer("group", 1) == 1;
  if ((!conv && node.op != "MatMul") || call.sums() != DType::kInt32) return false;
  if (call.input(0).dtype != DType::kUInt8 || call.input(0).constant) return false;
  const Value& weight = call.input(1);
  if (weight.dtype != DType::kInt8 || !weight.constant) return false;
  return conv ? !call.has(2) || call.input(2).constant.has_value() : weight.shape.size() == 2;
}

Tensor sum_of(const Tensor& a, const Tensor& b) {
  Tensor sums(DType::kInt32, a.shape());
  for (int64_t i = 0; i < a.num_elements(); ++i)
    sums.set_int(i, wrap_to(DType::kInt32, a.get_int(i) + b.get_int(i)));
  return sums;
}

// Returns x less 128; invalid if nothing is gained. If x was made of signed bytes, the result is
// those bytes.
ValueId SignMatcher::signed_bytes(ValueId x) {
  const Node* add = r_.producer(x);
  if (add != nullptr && add->op == "Add") {
    const Value& by = r_[add->inputs[1]];
    const Node* cast = r_.producer(add->inputs[0]);
    const bool flips = by.constant && by.constant->num_elements() == 1 &&
                       by.constant->get_int(0) == kShift && cast != nullptr &&
                       cast->op == "BitCast" && r_[cast->inputs[0]].dtype == DType::kInt8;
    if (flips) return cast->inputs[0];
  }
  if (unsigned_too_) return {};
  const auto [it, fresh] = signed_.try_emplace(x);
  if (!fresh) return it->second;
  const std::string name = r_[x].name;
  const ValueId bits =
      r_.add("BitCast", {x}, {{"to", std::string(dtype_name(DType::kInt8))}}, name);
  Tensor shift(DType::kInt8, {});
  shift.set_int(0, -kShift);
  return it->second = r_.add("Add", {bits, r_.add_constant(name + "/shift", shift)}, {}, name);
}

void SignMatcher::match_conv(Node& node, ValueId x) {
  Tensor bias = shifted_sums(*r_[node.inputs[1]].constant, 0);
  if (OpCall{r_.graph(), node}.has(2)) bias = sum_of(bias, *r_[node.inputs[2]].constant);
  const int64_t pad = OpCall{r_.graph(), node}.integer("pad_value", 0) - kShift;
  node.attributes["pad_value"] = pad;
  if (pad == 0) node.attributes.erase("pad_value");
  node.inputs = {x, node.inputs[1], r_.add_constant(node.name + "/bias", std::move(bias))};
}

void SignMatcher::match_matmul(Node& node, ValueId x) {
  const ValueId out = node.outputs[0];
  const ValueId sums =
      r_.add_constant(node.name + "/sums", shifted_sums(*r_[node.inputs[1]].constant, 1));
  node.inputs[0] = x;
  const ValueId product = r_.add(node);
  const ValueId whole = r_.add("Add", {product, sums}, {}, node.name);
  shifted_[whole] = {product, sums};
  r_.replace(out, whole);
}

// Makes one addition of two if another constant is added to a product of matrices and its shift.
void SignMatcher::join_shifts(Node& node) {
  const auto it = node.op == "Add" ? shifted_.find(node.inputs[0]) : shifted_.end();
  if (it == shifted_.end()) return;
  const Value& more = r_[node.inputs[1]];
  const Tensor& sums = *r_[it->second.sums].constant;
  if (!more.constant || more.shape != sums.shape()) return;
  node.inputs = {it->second.product,
                 r_.add_constant(node.name + "/sums", sum_of(sums, *more.constant))};
}

Graph SignMatcher::run() && {
  for (Node& node : r_.take_nodes()) {
    for (ValueId& id : node.inputs) id = r_.current(id);
    const ValueId x = is_product(node) ? signed_bytes(node.inputs[0]) : ValueId{};
    if (x.valid() && node.op == "MatMul") {
      match_matmul(node, x);
      continue;
    }
    if (x.valid()) match_conv(node, x);
    join_shifts(node);
    r_.emit(std::move(node));
  }
  return r_.finish();
}

}  // namespace

Graph match_signs(Graph graph, const PassOptions& options) {
  const DotRates& dots = options.target.dots;
  if (dots.int8_alike <= 1) return graph;
  return SignMatcher(std::move(graph), dots.int8 > 1).run();
}

}  // namespace pruner
