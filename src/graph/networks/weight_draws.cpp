#include "graph/networks/weight_draws.h"

#include "graph/folded_constants.h"
#include "graph/ops/op.h"

namespace pruner {

Tensor draw(Rng& rng, std::vector<int64_t> shape, const Uniform& from) {
  Tensor tensor(DType::kFloat32, std::move(shape));
  for (float& x : tensor.values<float>())
    x = static_cast<float>(from.mean + from.spread * (2 * rng.uniform() - 1));
  return tensor;
}

Tensor WeightDraws::draw(Rng& rng, std::vector<int64_t> shape, const Uniform& from) {
  const Key key{rng, element_count(shape), from};
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = drawn_.find(key); known != drawn_.end()) {
      rng = known->second.rng;
      return known->second.tensor.reshaped(std::move(shape));
    }
  }
  const Tensor tensor = read_only(pruner::draw(rng, std::move(shape), from));
  const std::lock_guard lock(mutex_);
  if (bytes_ + tensor.bytes() > kMostKeptBytes) return tensor;
  const auto [known, is_new] = drawn_.try_emplace(key, Drawn{tensor, rng});
  if (is_new) bytes_ += tensor.bytes();
  return known->second.tensor.reshaped(tensor.shape());
}

}  // namespace pruner
