#include "analysis/draft.h"
#include "model/cost_model.h"
#include "support/parallel_for.h"

namespace pruner {

namespace {

// Candidates that a thread scores at once: some 0.2 ms of work.
constexpr int64_t kChunk = 16;

class DraftModel : public CostModel {
 public:
  DraftModel(int jobs, Penalties penalties) : jobs_(jobs), penalties_(penalties) {}

  std::vector<float> predict(const Task& task,
                             const Space& space,
                             std::span<const Candidate> batch) override {
    const int64_t size = static_cast<int64_t>(batch.size());
    std::vector<float> scores(batch.size());
    parallel_for((size + kChunk - 1) / kChunk, jobs_, [&](int64_t chunk) {
      for (int64_t i = chunk * kChunk; i < std::min(size, (chunk + 1) * kChunk); ++i) {
        const LoopNest nest = make_loop_nest(space, batch[static_cast<size_t>(i)]);
        const double latency_s = draft_latency_s(nest, task.target, penalties_);
        scores[static_cast<size_t>(i)] = static_cast<float>(1 / latency_s);
      }
    });
    return scores;
  }

  Result<Unit> update(std::span<const Sample>) override { return Unit{}; }

 private:
  int jobs_;
  Penalties penalties_;
};

}  // namespace

std::unique_ptr<CostModel> make_draft_model(int jobs, Penalties penalties) {
  return std::make_unique<DraftModel>(jobs, penalties);
}

}  // namespace pruner
