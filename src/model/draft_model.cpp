#include "analysis/draft.h"
#include "analysis/statements.h"
#include "model/cost_model.h"
#include "support/ceil_div.h"
#include "support/parallel_for.h"

namespace pruner {

namespace {

// Candidates that a thread scores at once: some 0.2 ms of work.
constexpr int64_t kChunk = 16;

class DraftModel : public CostModel {
 public:
  explicit DraftModel(const DraftOptions& options) : options_(options) {}

  std::vector<float> predict(const Task& task,
                             const Space& space,
                             std::span<const Candidate> batch) override {
    const int64_t size = static_cast<int64_t>(batch.size());
    std::vector<float> scores(batch.size());
    parallel_for(ceil_div(size, kChunk), options_.jobs, [&](int64_t chunk) {
      for (int64_t i = chunk * kChunk; i < std::min(size, (chunk + 1) * kChunk); ++i) {
        const LoopNest nest = make_loop_nest(space, batch[i]);
        scores[i] = static_cast<float>(score(nest, task.target));
      }
    });
    return scores;
  }

  Result<Unit> update(std::span<const Sample>) override { return Unit{}; }

 private:
  double score(const LoopNest& nest, const Target& target) const {
    if (!target.is_gpu() || options_.form == DraftForm::kOurs)
      return 1 / draft_latency_s(nest, target, options_.penalties);
    constexpr double kMsPerS = 1e3;
    return kMsPerS *
           draft_score(make_statements(nest), target.gpu, options_.form, options_.penalties);
  }

  DraftOptions options_;
};

}  // namespace

std::unique_ptr<CostModel> make_draft_model(const DraftOptions& options) {
  return std::make_unique<DraftModel>(options);
}

}  // namespace pruner
