#include "search/ablation.h"

#include <string>

namespace pruner {

Result<Ablation> parse_ablation(std::string_view name) {
  Ablation ablation;
  if (const std::optional<Penalty> penalty = parse_penalty(name)) {
    ablation.penalties = ablation.penalties.without(*penalty);
    return ablation;
  }
  if (name == "statement") {
    ablation.features.rows = false;
  } else if (name == "dataflow") {
    ablation.features.dataflow = false;
  } else if (name == "weights") {
    ablation.weights = false;
  } else if (name == "draft") {
    ablation.drafts = false;
  } else {
    std::string names;
    for (const std::string_view penalty : kPenaltyNames) names.append(penalty).append(", ");
    return Error(
        "nothing is named ", name, "; leave out ", names, "statement, dataflow, weights or draft");
  }
  return ablation;
}

}  // namespace pruner
