// A product with a constant matrix of bytes or half bytes, and few rows of data, takes as long as
// the matrix comes from memory. The matrix stays in codes there (CodedMatMul), which become floats
// when they are multiplied. With more rows each code would become a float more than once, so
// fold_constants makes a matrix of floats.
#include <cmath>
#include <map>
#include <numeric>

#include "graph/evaluate.h"
#include "graph/passes.h"
#include "support/ceil_div.h"

namespace pruner {
namespace {

constexpr int64_t kMostRows = 8;
constexpr int64_t kLeastBlock = 16;  // codes; a scale has a quarter of the bytes of 16 codes

/// A constant matrix [k, n], as CodedMatMul takes it.
struct Coded {
  Tensor codes = {}, scales = {};
  Tensor zeros = {};  // without elements if all are `zero`
  int64_t bits = 8, block = 1, zero = 0;

  int64_t k() const { return codes.shape()[0]; }
  int64_t n() const { return codes.shape()[1]; }
};

bool is_node(const Node* node, std::string_view op) { return node != nullptr && node->op == op; }

bool are_constant(const Graph& graph, const Node& node) {
  return std::ranges::all_of(node.inputs,
                             [&](ValueId id) { return !id.valid() || graph[id].constant; });
}

// Returns scales or zero points of [blocks given, n], or one number, as [blocks, n]. A given block
// becomes `shorter` blocks; the last given block may be cut.
Tensor repeated(const Tensor& steps, int64_t blocks, int64_t n, int64_t shorter) {
  Tensor all(steps.dtype(), {blocks, n});
  for (int64_t i = 0; i < all.num_elements(); ++i) {
    const int64_t from = steps.num_elements() == 1 ? 0 : i / n / shorter * n + i % n;
    if (is_float(steps.dtype())) {
      all.set(i, steps.get(from));
    } else {
      all.set_int(i, steps.get_int(from));
    }
  }
  return all;
}

// Returns the numbers, scales and zero points of the matrix [k, n] (or [n, k] if `transposed`) that
// a Dequantize or DequantizeBlocks makes floats; nothing if the steps are along n, or the blocks
// are short.
std::optional<Coded> blocks_of(const OpCall& call, bool transposed) {
  const auto oriented = [&](size_t i) {
    const Tensor& tensor = *call.input(i).constant;
    if (tensor.num_elements() == 1) return tensor.reshaped({1, 1});
    return transposed ? permuted(tensor, {{1, 0}}) : tensor;
  };
  for (size_t i = 0; i < call.num_inputs(); ++i)
    if (call.has(i) && call.rank(i) != 2 && element_count(call.shape(i)) != 1) return std::nullopt;
  if (call.rank(0) != 2 || is_float(call.input(0).dtype) || is_code(call.input(0).dtype) ||
      dtype_bytes(call.input(0).dtype) > 1)
    return std::nullopt;
  Coded coded{.codes = oriented(0), .scales = oriented(1)};
  if (call.has(2)) coded.zeros = oriented(2);
  int64_t given = coded.k();
  if (call.node.op == "DequantizeBlocks") {
    if (*call.axis("axis", 0, 2) != (transposed ? 1 : 0)) return std::nullopt;
    given = std::min(given, call.integer("block_size", 0));
  }
  coded.block = std::gcd(coded.k(), given);
  if (coded.block < kLeastBlock) return std::nullopt;
  const std::vector<int64_t> expected = {ceil_div(coded.k(), given), coded.n()};
  for (Tensor* steps : {&coded.scales, &coded.zeros}) {
    if (steps->num_elements() == 0) continue;
    if (steps->num_elements() != 1 && steps->shape() != expected) return std::nullopt;
    *steps = repeated(*steps, coded.k() / coded.block, coded.n(), given / coded.block);
  }
  return coded;
}

// Replaces zero points that are all equal by one whole number.
void join_zeros(Coded& coded) {
  const Tensor& zeros = coded.zeros;
  if (zeros.num_elements() == 0) return;
  const double first = zeros.get(0);
  bool equal = first == std::floor(first);
  for (int64_t i = 0; equal && i < zeros.num_elements(); ++i) equal = zeros.get(i) == first;
  if (!equal) return;
  coded.zero = static_cast<int64_t>(first);
  coded.zeros = Tensor();
}

// Gives the numbers a sign, and packs numbers of up to 4 bits as halves of bytes if `halves`. Zero
// points move along.
void take_signs(Coded& coded, bool halves) {
  const DType type = coded.codes.dtype();
  const int64_t n = coded.n(), rows = halves ? coded.k() / 2 : coded.k();
  const int64_t middle = is_signed_int(type) ? 0 : halves ? 8 : 128;
  Tensor bytes(DType::kInt8, {rows, n});
  const auto* from = static_cast<const uint8_t*>(coded.codes.data());
  auto* to = static_cast<uint8_t*>(bytes.data());
  const auto code = [&](int64_t at) { return static_cast<uint8_t>(from[at] - middle); };
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t j = 0; j < n; ++j) {
      const int64_t at = row * (halves ? 2 : 1) * n + j;
      *to++ = halves ? static_cast<uint8_t>((code(at) & 15) | code(at + n) << 4) : code(at);
    }
  }
  coded.codes = std::move(bytes);
  coded.bits = halves ? 4 : 8;
  coded.zero -= middle;
  if (coded.zeros.num_elements() == 0) return;
  Tensor zeros(is_float(coded.zeros.dtype()) ? DType::kFloat32 : DType::kInt8, coded.zeros.shape());
  for (int64_t i = 0; i < zeros.num_elements(); ++i)
    zeros.set(i, coded.zeros.get(i) - static_cast<double>(middle));
  coded.zeros = std::move(zeros);
}

class Keeper {
 public:
  explicit Keeper(Graph graph) : graph_(std::move(graph)), made_by_(graph_.values.size(), nullptr) {
    old_ = std::exchange(graph_.nodes, {});
    for (const Node& node : old_)
      for (const ValueId id : node.outputs) made_by_[static_cast<size_t>(id.value)] = &node;
  }

  Graph run() && {
    for (const Node& node : old_)
      if (!keep(node)) graph_.nodes.push_back(node);
    return remove_dead(std::move(graph_));
  }

 private:
  const Node* maker(ValueId id) const {
    return id.valid() && static_cast<size_t>(id.value) < made_by_.size()
               ? made_by_[static_cast<size_t>(id.value)]
               : nullptr;
  }

  ValueId add_value(const std::string& name, DType dtype, std::vector<int64_t> shape) {
    graph_.values.push_back({name, dtype, std::move(shape), std::nullopt});
    return ValueId{static_cast<int32_t>(graph_.values.size()) - 1};
  }
  ValueId add_constant(const std::string& name, const Tensor& tensor) {
    if (tensor.num_elements() == 0) return {};
    const ValueId id = add_value(name, tensor.dtype(), tensor.shape());
    graph_[id].constant = tensor;
    return id;
  }

  // Returns the codes of a product's second operand.
  std::optional<Coded> coded_operand(const Node& node, bool transposed) const {
    const Node* from = maker(node.inputs[1]);
    while (is_node(from, "Identity") || is_node(from, "Transpose")) {
      if (from->op == "Transpose") {
        const OpCall call{graph_, *from};
        const std::vector<int64_t> order = call.integers("perm");
        if (call.rank() != 2) return std::nullopt;
        transposed ^= order.empty() || order[0] == 1;
      }
      from = maker(from->inputs[0]);
    }
    const bool decodes = is_node(from, "Dequantize") || is_node(from, "DequantizeBlocks");
    if (!decodes || !are_constant(graph_, *from)) return std::nullopt;
    std::optional<Coded> coded = blocks_of({graph_, *from}, transposed);
    if (!coded) return std::nullopt;
    join_zeros(*coded);
    take_signs(*coded, row_of(coded->codes.dtype()).bits <= 4 && coded->block % 2 == 0);
    return coded;
  }

  bool keep(const Node& node) {
    const OpCall call{graph_, node};
    const bool gemm = node.op == "Gemm", matmul = node.op == "MatMul";
    if ((!gemm && !matmul) || call.sums() || call.integer("transA", 0) != 0) return false;
    if (call.number("alpha", 1) != 1 || call.number("beta", 1) != 1) return false;
    if (call.rank(0) < 2 || call.input(0).constant || call.input(0).dtype != DType::kFloat32)
      return false;
    if (element_count(call.shape(0)) > kMostRows * call.shape(0).back()) return false;
    const std::optional<Coded> coded = coded_operand(node, call.integer("transB", 0) != 0);
    if (!coded) return false;
    const std::string name = graph_[node.inputs[1]].name;  // a copy: values move as some are added
    std::vector<ValueId> inputs = {node.inputs[0],
                                   add_constant(name + "/codes", coded->codes),
                                   add_constant(name + "/scales", coded->scales)};
    Attributes attributes = {{"bits", coded->bits}, {"block_size", coded->block}};
    if (coded->zeros.num_elements() > 0) {
      inputs.push_back(add_constant(name + "/zeros", coded->zeros));
    } else if (coded->zero != 0) {
      attributes["zero"] = coded->zero;
    }
    const bool biased = gemm && call.has(2);
    const Value out = call.output();
    const ValueId product =
        biased ? add_value(out.name + "/product", out.dtype, out.shape) : node.outputs[0];
    graph_.nodes.push_back({"CodedMatMul", node.name, inputs, {product}, attributes});
    if (biased)
      graph_.nodes.push_back({"Add", node.name, {product, node.inputs[2]}, node.outputs, {}});
    return true;
  }

  Graph graph_;
  std::vector<Node> old_;
  std::vector<const Node*> made_by_;  // node that makes the value, per value
};

}  // namespace

Graph keep_codes(Graph graph) {
  const bool has_any = std::ranges::any_of(graph.nodes, [](const Node& node) {
    return node.op == "Dequantize" || node.op == "DequantizeBlocks";
  });
  return has_any ? Keeper(std::move(graph)).run() : std::move(graph);
}

}  // namespace pruner
