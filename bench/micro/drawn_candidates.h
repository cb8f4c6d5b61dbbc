// Operators of four kinds, and products by tensor cores; candidates drawn of each: what the
// benchmarks of hot functions walk through.
#pragma once

#include <vector>

#include "space/space.h"
#include "tensor/operators.h"

namespace pruner {

inline constexpr const char* kOperators[] = {
    "matmul 512 512 512",
    "conv2d 1 64 56 56 64 3 3 padding=1 +bias +relu",
    "depthwise_conv2d 1 32 112 112 3 3 padding=1 +bias +relu",
    "softmax 1536 128",
    "matmul 4096 4096 4096 bits=16",
    "dense 512 768 3072 bits=8 +bias +relu",
};
inline constexpr int64_t kFirstOfWarps = 4;  // drawn programs by tensor cores, on a GPU

struct DrawnCandidates {
  explicit DrawnCandidates(int64_t op, const Target& target = host_target(2))
      : task(make_task(*parse_operator(kOperators[op]), target, kOperators[op])),
        space(make_space(task)) {
    if (op >= kFirstOfWarps)
      std::erase_if(space.drawn, [&](SketchId id) { return !space[id].name.starts_with("m16n8"); });
    Rng rng(1);
    for (int i = 0; i < 256; ++i) candidates.push_back(sample(space, rng));
  }
  const Candidate& next() { return candidates[++at % candidates.size()]; }

  Task task;
  Space space;
  std::vector<Candidate> candidates;
  size_t at = 0;
};

}  // namespace pruner
