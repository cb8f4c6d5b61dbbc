// A mode without one of its parts, to see what the part is worth.
#pragma once

#include <string_view>

#include "analysis/penalty.h"
#include "model/cost_model.h"
#include "support/result.h"

namespace pruner {

struct Ablation {
  Penalties penalties;    // that the draft counts
  FeatureParts features;  // that the learned model sees
  bool weights = true;    // that come with the program; otherwise the learned model knows nothing
  bool drafts = true;     // otherwise the learned model looks at every candidate: Ansor's policy
};

/// What is left out, by name: a penalty, "statement", "dataflow", "weights" or "draft". The error
/// lists them.
Result<Ablation> parse_ablation(std::string_view name);

}  // namespace pruner
