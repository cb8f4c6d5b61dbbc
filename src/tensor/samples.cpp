// Chooses the elements to compare and draws the inputs to compare on.
#include <algorithm>
#include <cstring>
#include <limits>
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

namespace {

// `Domain` is the interval of a stage's values: from `low` to low + 1, or to 1 if `low` is
// negative, and at most to `most`.
struct Domain {
  double low = -1, most = 2;

  void narrow(const Domain& by) {
    low = std::max(low, by.low);
    most = std::min(most, by.most);
  }
  double at(double u) const { return low + u * (std::min(low < 0 ? 1 : low + 1, most) - low); }
};

constexpr Domain kPositive = {0.5}, kFromOne = {1}, kUnit = {-1, 1};

// Returns the domain in which a function is defined.
Domain domain_of(Intrinsic function) {
  switch (function) {
    case Intrinsic::kSqrt:
    case Intrinsic::kRsqrt:
    case Intrinsic::kLog:
    case Intrinsic::kPow: return kPositive;
    case Intrinsic::kAcosh: return kFromOne;
    case Intrinsic::kAcos:
    case Intrinsic::kAsin:
    case Intrinsic::kLog1p:
    case Intrinsic::kAtanh: return kUnit;
    default: return {};
  }
}

}  // namespace

// Divisors stay away from zero and arguments of functions in the functions' domains, and so do all
// stages that these values are computed from. An exponential is positive whatever goes in.
static std::vector<Domain> domains(const ComputeDag& dag) {
  std::vector<Domain> domains(dag.stages.size());
  const auto narrow_loads = [&](const Expr& e, const Domain& by) {
    visit(e, [&](const Expr& node) {
      if (const Load* load = as<Load>(node)) domains[load->tensor.value].narrow(by);
    });
  };
  for (size_t i = dag.stages.size(); i-- > 0;) {
    const Stage& stage = dag.stages[i];
    if (stage.is_placeholder()) continue;
    visit(stage.body, [&](const Expr& node) {
      const Binary* n = as<Binary>(node);
      if (n && n->op == BinaryOp::kDiv) narrow_loads(n->b, kPositive);
      if (const Call* call = as<Call>(node)) narrow_loads(call->args[0], domain_of(call->function));
    });
    const Call* root = as<Call>(stage.body);
    if (!root || root->function != Intrinsic::kExp) narrow_loads(stage.body, domains[i]);
  }
  return domains;
}

void repeat(const Tensor& drawn, std::span<std::byte> all) {
  if (all.empty()) return;
  size_t done = std::min(static_cast<size_t>(drawn.bytes()), all.size());
  std::memcpy(all.data(), drawn.data(), done);
  for (; done < all.size(); done *= 2)
    std::memcpy(all.data() + done, all.data(), std::min(done, all.size() - done));
}

std::vector<Tensor> random_inputs(const ComputeDag& dag,
                                  Rng& rng,
                                  int64_t most,
                                  const std::vector<bool>& skipped) {
  const std::vector<Domain> domain = domains(dag);
  std::vector<Tensor> inputs;
  for (StageId id : dag.inputs()) {
    const Stage& stage = dag[id];
    if (!skipped.empty() && skipped[inputs.size()]) {
      inputs.emplace_back();
      continue;
    }
    Tensor tensor(stage.dtype, {std::min(most, stage.num_elements())});
    const int64_t bound = stage.index_bound > 0 ? stage.index_bound : 16;
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      if (!is_float(stage.dtype)) {
        tensor.set_int(i, rng.below(stage.dtype == DType::kBool ? 2 : bound));
      } else {
        tensor.set(i, domain[id.value].at(rng.uniform()));
      }
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

std::vector<Tensor> random_inputs(const ComputeDag& dag, Rng& rng) {
  std::vector<Tensor> inputs = random_inputs(dag, rng, std::numeric_limits<int64_t>::max(), {});
  for (size_t i = 0; i < inputs.size(); ++i)
    inputs[i] = inputs[i].reshaped(dag[dag.inputs()[i]].shape());
  return inputs;
}

}  // namespace pruner
