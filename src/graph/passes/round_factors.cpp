// Contractions of float32 multiply tf32 where that is asked for: the attribute `factors` of their
// node says it, and with it the body of their stage, so that code for whatever unit computes what
// the interpreter does. Values stay float32 in memory. Grouped convolutions, which no unit takes,
// are left alone.
#include "graph/ops/op.h"
#include "graph/passes.h"

namespace pruner {
namespace {

bool is_for_units(const OpCall& call) {
  const std::string& op = call.node.op;
  if (op != "Conv" && op != "MatMul" && op != "Gemm") return false;
  if (call.sums() || call.input(0).dtype != DType::kFloat32) return false;
  if (op == "Conv") return call.integer("group", 1) == 1;
  return call.rank(0) >= 2 && call.rank(1) >= 2;
}

}  // namespace

Graph round_factors(Graph graph, const PassOptions& options) {
  if (options.precision != Precision::kTf32 ||
      row_of(options.precision).support(options.target) == Support::kNone)
    return graph;
  for (Node& node : graph.nodes)
    if (is_for_units({graph, node})) node.attributes["factors"] = std::string("tf32");
  return graph;
}

}  // namespace pruner
