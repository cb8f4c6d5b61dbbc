// Tasks on a GPU for tests, and candidates that differ from the smallest in a few decisions.
#pragma once

#include "space/operator_task.h"
#include "space/space.h"

namespace pruner {

inline Target gpu_target() {
  const Result<Target> target = parse_target("cuda --arch=sm_80", 0);
  EXPECT_TRUE(target.ok()) << target.error().message();
  return *target;
}

inline Task gpu_task(const std::string& op) { return operator_task(op, gpu_target()); }

/// Convolutions with Winograd's forms: odd extents, less than a tile, images, paddings, epilogues.
inline const char* const kWinogradOperators[] = {"conv2d 1 8 8 8 8 3 3",
                                                 "conv2d 1 8 9 11 10 3 3 padding=1 +bias +relu",
                                                 "conv2d 2 9 5 7 8 3 3 +residual",
                                                 "conv2d 2 8 6 3 8 3 3 padding=0,2,1,0",
                                                 "conv2d 3 8 1 1 8 3 3 padding=1 +bias",
                                                 "conv2d 1 8 1 13 8 3 3 padding=1 +bias +relu",
                                                 "conv2d 2 19 7 3 12 3 3 padding=2 +bias +relu"};

/// Decisions by the end of their names: ".i.threads" -> 32.
using Decided = std::vector<std::pair<std::string, int32_t>>;

/// A tile of "matmul 32 48 64": 4 x 3 elements a thread, fetched in vectors of 4 and 2.
inline const Decided kProductTile = {{".i.vthreads", 2},
                                     {".i.threads", 4},
                                     {".i.inner", 2},
                                     {".j.threads", 8},
                                     {".j.outer", 3},
                                     {".k.outer", 2},
                                     {".k.inner", 4},
                                     {"A.shared.vector", 4},
                                     {"B.shared.vector", 2}};

/// The space of which fetches in runs that are no vectors are drawn, too.
inline Space space_of_runs(const Task& task) {
  Space space = make_space(task);
  for (Sketch& sketch : space.sketches)
    for (Decision& decision : sketch.decisions) decision.worth_drawing.clear();
  return space;
}

/// The first choice of each decision of a sketch, but for those given.
inline Candidate decided(const Space& space, int sketch, const Decided& values) {
  Candidate candidate{SketchId{sketch}, {}};
  size_t used = 0;
  for (const Decision& decision : space[candidate.sketch].decisions) {
    candidate.decisions.push_back(decision.choices.front());
    for (const auto& [name, value] : values) {
      if (!decision.name.ends_with(name)) continue;
      candidate.decisions.back() = value;
      ++used;
    }
  }
  EXPECT_GE(used, values.size()) << print(space, candidate);
  return candidate;
}

}  // namespace pruner
