#include "model/cost_model.h"

#include <algorithm>

namespace pruner {

namespace {

struct CostModelRow {
  std::string_view name;
  std::unique_ptr<CostModel> (*make)(const CostModelOptions& options);
};

constexpr CostModelRow kCostModels[] = {
    {"draft", [](const CostModelOptions& o) { return make_calibrated_draft_model(o.jobs); }},
    {"random", [](const CostModelOptions& o) { return make_random_model(o.seed); }},
};

// The modes of the reference's command line: known words, and no typing errors.
constexpr std::string_view kOtherModels[] = {
    "pam",
    "pam-no-update",
    "pam-siamese-update",
    "pacm",
    "mlp",
    "mlp-no-update",
    "tenset-mlp",
    "tlp",
    "xgb",
    "xgb-no-update",
    "lgbm",
    "lgbm-no-update",
    "tab",
    "tab-no-update",
};

}  // namespace

std::string cost_model_names() {
  std::string names;
  for (const CostModelRow& row : kCostModels) {
    if (!names.empty()) names += &row == std::end(kCostModels) - 1 ? " or " : ", ";
    names += row.name;
  }
  return names;
}

Result<std::unique_ptr<CostModel>> make_cost_model(std::string_view name,
                                                   const CostModelOptions& options) {
  for (const CostModelRow& row : kCostModels) {
    if (row.name == name) return row.make(options);
  }
  if (std::ranges::find(kOtherModels, name) != std::end(kOtherModels)) {
    return Error("cost model ", name, " is not in this build; use ", cost_model_names());
  }
  return Error("cost model ", name, " is unknown; use ", cost_model_names());
}

}  // namespace pruner
