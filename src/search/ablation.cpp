#include "search/ablation.h"

namespace pruner {

std::optional<Ablation> without_part(Ablation ablation, std::string_view name) {
  if (const std::optional<Penalty> penalty = parse_penalty(name)) {
    ablation.penalties = ablation.penalties.without(*penalty);
  } else if (name == "statement") {
    ablation.features.rows = false;
  } else if (name == "dataflow") {
    ablation.features.dataflow = false;
  } else if (name == "draft") {
    ablation.drafts = false;
  } else {
    return std::nullopt;
  }
  return ablation;
}

}  // namespace pruner
