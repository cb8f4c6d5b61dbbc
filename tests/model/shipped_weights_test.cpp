#include "model/shipped_weights.h"

#include "golden.h"
#include "model/nn/network.h"
#include "model/synthetic.h"
#include "model/weights.h"

namespace pruner {
namespace {

TEST(ShippedWeights, AreThoseOfPaCMOnCpus) {
  const Result<ModelWeights> weights = load_weights(kShippedWeights, *find_architecture("pam"));
  ASSERT_TRUE(weights.ok()) << weights.error().message();
  ASSERT_TRUE(weights->trained_on.has_value());
  EXPECT_TRUE(weights->heads.empty());
  EXPECT_ERROR(load_weights(kShippedWeights, *find_architecture("mlp")),
               "shipped: weights of pacm, expected tenset-mlp");
}

}  // namespace
}  // namespace pruner
