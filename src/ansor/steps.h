// Ansor's transform steps: JSON list of a record <-> values. A list that is read, printed and read
// again is the same list; what no version of the format knows is an error that names the step.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "support/json.h"

namespace pruner::ansor {

/// Annotation says what is done with a loop, in the order of the format's numbers.
enum class Annotation : uint8_t {
  kNone,
  kUnroll,
  kVectorize,
  kParallel,
  kVThread,
  kBlockX,
  kThreadX,
  kBlockY,
  kThreadY,
  kBlockZ,
  kThreadZ,
  kTensorize,
};

// Stage and iterator numbers are those that hold when the step is applied.
struct AnnotationStep {  // AN
  int stage, iter;
  Annotation annotation;
};
struct FuseStep {  // FU: contiguous iterators become one
  int stage;
  std::vector<int> iters;
};
struct PragmaStep {  // PR
  int stage, iter;
  std::string pragma;  // "auto_unroll_max_step$<n>" or a name
};
struct ReorderStep {  // RE: place k gets iterator order[k]
  int stage;
  std::vector<int> order;
};
struct SplitStep {  // SP: n lengths make n + 1 loops
  int stage, iter;
  int64_t extent;  // 0: unknown; for information only
  std::vector<int64_t> lengths;
  bool inner_to_outer;  // the lengths are those of the inner loops; the outermost gets the rest
};
struct FollowSplitStep {  // FSP: the lengths of an earlier split
  int stage, iter;
  int source;  // number of that step
  int n_split;
};
struct FollowFusedSplitStep {  // FFSP: in two, by the product of earlier splits' lengths
  int stage, iter;
  std::vector<int> sources;
  int level;
  bool factor;  // the product is the inner extent
};
// The stride of the iterator becomes factor * k + offset elements, for some k.
struct StorageAlignStep {  // SA
  int stage, iter, factor, offset;
};
// The stage is computed inside that loop of a later stage.
struct ComputeAtStep {  // CA
  int stage, target_stage, target_iter;
};
// The stage's body takes the place of its loads.
struct ComputeInlineStep {  // CI
  int stage;
};
// The stage is computed at root: no other stage's loops are around it.
struct ComputeRootStep {  // CR
  int stage;
};
struct CacheReadStep {  // CHR: a copy after `stage` that the readers read instead
  int stage;
  std::string scope;
  std::vector<int> readers;
};
struct CacheWriteStep {  // CHW: `stage` computes into a new stage before it, and copies
  int stage;
  std::string scope;
};
// A reduce iterator becomes axis factor_iter (< 0: from the end) of a new stage that reduces the
// rest.
struct RfactorStep {  // RF
  int stage, iter, factor_iter;
};

using Step = std::variant<AnnotationStep,
                          FuseStep,
                          PragmaStep,
                          ReorderStep,
                          SplitStep,
                          FollowSplitStep,
                          FollowFusedSplitStep,
                          StorageAlignStep,
                          ComputeAtStep,
                          ComputeInlineStep,
                          ComputeRootStep,
                          CacheReadStep,
                          CacheWriteStep,
                          RfactorStep>;

/// The steps of a list, or which of them is none and why.
Result<std::vector<Step>> steps_from_json(const Json& list);
Json steps_to_json(std::span<const Step> steps);

/// The letters that a step starts with: "SP".
const char* code_of(const Step& step);

}  // namespace pruner::ansor
