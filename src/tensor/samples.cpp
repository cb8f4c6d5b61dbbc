// Which elements to compare, and the inputs to compare on.
#include <algorithm>
#include <numeric>
#include <set>

#include "tensor/interpreter.h"

namespace pruner {

std::vector<int64_t> sample_elements(std::span<const int64_t> shape, int64_t count, Rng& rng) {
  const int64_t total =
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  if (total <= count) {
    std::vector<int64_t> all(static_cast<size_t>(total));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  std::set<int64_t> chosen;
  const auto choose = [&](auto index_of_dim) {
    int64_t position = 0;
    for (size_t d = 0; d < shape.size(); ++d) position = position * shape[d] + index_of_dim(d);
    chosen.insert(position);
  };
  const auto anywhere = [&](size_t d) { return rng.below(shape[d]); };
  // Bit d of a corner's number is the end of dim d; of more than eight dims the first eight.
  const size_t corners = size_t{1} << std::min<size_t>(shape.size(), 8);
  for (size_t corner = 0; corner < corners; ++corner) {
    choose([&](size_t d) { return corner >> d & 1 ? shape[d] - 1 : 0; });
  }
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const int64_t middle = shape[axis] / 2;
    for (int64_t edge : {int64_t{0}, std::max<int64_t>(middle - 1, 0), middle, shape[axis] - 1}) {
      for (int i = 0; i < 4; ++i) choose([&](size_t d) { return d == axis ? edge : anywhere(d); });
    }
  }
  while (static_cast<int64_t>(chosen.size()) < count) choose(anywhere);
  return {chosen.begin(), chosen.end()};
}

// Stages whose values must stay away from zero: divisors, and what a root or a logarithm is taken
// of, with all that they are computed from. An exponential is positive whatever goes in.
static std::vector<bool> must_be_positive(const ComputeDag& dag) {
  std::vector<bool> positive(dag.stages.size(), false);
  const auto mark_loads = [&](const Expr& e) {
    visit(e, [&](const Expr& node) {
      if (const Load* load = as<Load>(node)) positive[load->tensor.value] = true;
    });
  };
  for (size_t i = dag.stages.size(); i-- > 0;) {
    const Stage& stage = dag.stages[i];
    if (stage.is_placeholder()) continue;
    visit(stage.body, [&](const Expr& node) {
      if (const Binary* n = as<Binary>(node); n && n->op == BinaryOp::kDiv) mark_loads(n->b);
      const Call* call = as<Call>(node);
      if (!call) return;
      const bool rooted = call->function == Intrinsic::kSqrt || call->function == Intrinsic::kRsqrt;
      const bool powered = call->function == Intrinsic::kLog || call->function == Intrinsic::kPow;
      if (rooted || powered) mark_loads(call->args[0]);
    });
    const Call* root = as<Call>(stage.body);
    if (positive[i] && !(root && root->function == Intrinsic::kExp)) mark_loads(stage.body);
  }
  return positive;
}

std::vector<Tensor> random_inputs(const ComputeDag& dag, Rng& rng) {
  const std::vector<bool> positive = must_be_positive(dag);
  std::vector<Tensor> inputs;
  for (StageId id : dag.inputs()) {
    const Stage& stage = dag[id];
    Tensor tensor(stage.dtype, stage.shape());
    const bool away_from_zero = positive[id.value];
    const int64_t bound = stage.index_bound > 0 ? stage.index_bound : 16;
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      if (!is_float(stage.dtype)) {
        tensor.set_int(i, rng.below(stage.dtype == DType::kBool ? 2 : bound));
      } else {
        tensor.set(i, away_from_zero ? rng.uniform() + 0.5 : rng.uniform() * 2 - 1);
      }
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

}  // namespace pruner
