#include "model/cost_model.h"

namespace pruner {

namespace {

class RandomModel : public CostModel {
 public:
  explicit RandomModel(uint64_t seed) : rng_(seed) {}

  std::vector<float> predict(const Task&, const Space&, std::span<const Candidate> batch) override {
    std::vector<float> scores(batch.size());
    for (float& score : scores) score = static_cast<float>(rng_.uniform());
    return scores;
  }

  Result<Unit> update(std::span<const Sample>) override { return Unit{}; }

 private:
  Rng rng_;
};

}  // namespace

std::unique_ptr<CostModel> make_random_model(uint64_t seed) {
  return std::make_unique<RandomModel>(seed);
}

}  // namespace pruner
