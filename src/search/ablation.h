// A mode without one of its parts, to see what the part is worth.
#pragma once

#include <string_view>

#include "analysis/penalty.h"
#include "model/cost_model.h"
#include "support/result.h"

namespace pruner {

struct Ablation {
  Penalties penalties;    // penalties that the draft counts
  FeatureParts features;  // features that the learned model sees
  bool weights = true;    // false: the learned model starts without the program's weights
  bool drafts = true;     // false: the learned model scores every candidate (Ansor's policy)
};

/// Parses the name of the part that is left out: a penalty, "statement", "dataflow", "weights" or
/// "draft". The error lists the names.
Result<Ablation> parse_ablation(std::string_view name);

}  // namespace pruner
