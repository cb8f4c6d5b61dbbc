// Stands for a learned model that cannot be trained here (--allow-untrained).
#include "model/cost_model.h"

namespace pruner {

namespace {

class UntrainedModel : public CostModel {
 public:
  std::vector<float> predict(const Task&, const Space&, std::span<const Candidate>) override {
    return {};
  }
  Result<Unit> update(std::span<const Sample>) override { return Unit{}; }
};

}  // namespace

std::unique_ptr<CostModel> make_untrained_model() { return std::make_unique<UntrainedModel>(); }

}  // namespace pruner
