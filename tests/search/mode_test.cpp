#include "search/mode.h"

#include "golden.h"

namespace pruner {
namespace {

TEST(SearchMode, IsFoundByBothOfItsNames) {
  EXPECT_EQ(*find_mode("pruner"), *find_mode("pam"));
  EXPECT_ERROR(find_mode("prunner"), "cost model prunner is unknown; use one of pam (pruner), ");
}

TEST(SearchMode, SaysHowItsModelChanges) {
  const auto update_of = [](const char* name) { return update_mode(**find_mode(name)); };
  EXPECT_EQ(update_of("ansor"), "online");
  EXPECT_EQ(update_of("moa-pruner"), "momentum");
  EXPECT_EQ(update_of("tenset-mlp"), "offline");
  EXPECT_EQ(update_of("draft-only"), "draft only");
  EXPECT_EQ(update_of("random"), "random");
}

TEST(SearchMode, NeedsWeightsWhereMakingItsModelsDoes) {
  for (const SearchMode& mode : kSearchModes)
    EXPECT_EQ(needs_weights(mode), !make_models(mode, {}).ok()) << mode.name;
}

}  // namespace
}  // namespace pruner
