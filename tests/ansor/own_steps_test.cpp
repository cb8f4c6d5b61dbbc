#include "ansor/own_steps.h"

#include <gtest/gtest.h>

#include <set>

#include "golden.h"
#include "tensor/operators.h"

namespace pruner::ansor {
namespace {

Space space_of(const char* op, const char* target) {
  return make_space(make_task(*parse_operator(op), *parse_target(target, 0), op));
}

constexpr const char* kCpu = "llvm -mcpu=haswell --threads=2";
constexpr const char* kGpu = "cuda --model=a100";

std::string printed(const Space& space, const Candidate& candidate) {
  return steps_to_json(steps_of(space, candidate)).dump();
}

// Each decision of a drawn candidate, changed alone, changes the steps, so that a model that reads
// them can tell every two candidates of a task apart.
TEST(OwnSteps, TellCandidatesApart) {
  for (const auto& [op, target] : {std::pair{"matmul 64 96 128", kCpu},
                                   std::pair{"dense 16 320 64 +bias +relu", kCpu},
                                   std::pair{"conv2d 1 64 28 28 64 3 3 padding=1 +relu", kCpu},
                                   std::pair{"softmax 64 200", kCpu},
                                   std::pair{"matmul 64 96 128", kGpu},
                                   std::pair{"softmax 64 200", kGpu}}) {
    const Space space = space_of(op, target);
    Rng rng(3);
    for (int draw = 0; draw < 40; ++draw) {
      const Candidate candidate = sample(space, rng);
      const std::string steps = printed(space, candidate);
      const Sketch& sketch = space[candidate.sketch];
      for (size_t d = 0; d < candidate.decisions.size(); ++d) {
        for (const int32_t choice : sketch.decisions[d].choices) {
          if (choice == candidate.decisions[d]) continue;
          Candidate other = candidate;
          other.decisions[d] = choice;
          EXPECT_NE(printed(space, other), steps) << op << ": " << sketch.decisions[d].name;
        }
      }
    }
  }
}

// One candidate of each sketch, the first drawn, as it was decided and as steps.
TEST(OwnSteps, SayWhatWasDecided) {
  std::string text;
  for (const auto& [op, target] : {std::pair{"conv2d 1 64 28 28 64 3 3 padding=1 +relu", kCpu},
                                   std::pair{"softmax 64 200", kCpu},
                                   std::pair{"matmul 64 96 128", kGpu},
                                   std::pair{"softmax 64 200", kGpu}}) {
    const Space space = space_of(op, target);
    text += std::string(op) + ", " + target + "\n";
    for (size_t s = 0; s < space.sketches.size(); ++s) {
      Rng rng(5);
      Candidate candidate = sample(space, rng);
      while (candidate.sketch.value != static_cast<int32_t>(s)) candidate = sample(space, rng);
      text += print(space, candidate) + "\n";
      for (const Json& step : steps_to_json(steps_of(space, candidate)))
        text += "  " + step.dump() + "\n";
    }
  }
  EXPECT_GOLDEN("ansor/own_steps.txt", text);
}

}  // namespace
}  // namespace pruner::ansor
