#include "model/cost_model.h"

#include "golden.h"

namespace pruner {
namespace {

TEST(MakeCostModel, KnowsTheModelsOfThisBuild) {
  EXPECT_TRUE(make_cost_model("draft", {}).ok());
  EXPECT_TRUE(make_cost_model("random", {}).ok());
}

TEST(MakeCostModel, SaysWhichToUseInstead) {
  EXPECT_ERROR(make_cost_model("pam", {}),
               "cost model pam is not in this build; use draft or random");
  EXPECT_ERROR(make_cost_model("mlp-no-update", {}), "not in this build; use draft or random");
  EXPECT_ERROR(make_cost_model("pamm", {}), "cost model pamm is unknown; use draft or random");
}

}  // namespace
}  // namespace pruner
