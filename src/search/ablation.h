// The parts of a published search that a mode can do without, to see what each part is worth.
#pragma once

#include <optional>
#include <string_view>

#include "analysis/penalty.h"
#include "model/cost_model.h"

namespace pruner {

struct Ablation {
  Penalties penalties;    // penalties that the draft counts
  FeatureParts features;  // features that the learned model sees
  bool drafts = true;     // false: the learned model scores every candidate (Ansor's policy)
};

/// Returns `ablation` without one more part, a penalty, "statement", "dataflow" or "draft";
/// nullopt if no part has that name.
std::optional<Ablation> without_part(Ablation ablation, std::string_view name);

}  // namespace pruner
