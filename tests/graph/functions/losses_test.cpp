#include "graph/small_graph.h"

namespace pruner {
namespace {

using V = std::vector<double>;

// Two rows of three classes at two places.
const Tensor kScores = floats({2, 3, 2}, {1, 2, 2, 2, 3, 2, 0, 1, 2, 2, 1, 2});
const Tensor kTargets = integers({2, 2}, {2, 1, 0, 2});
const Tensor kWeights = floats({3}, {0.2, 0.3, 0.1});

Attributes reduced(const char* how) { return {{"reduction", std::string(how)}}; }

TEST(NegativeLogLikelihoodLoss, TakesWhatTheTargetsName) {
  const char* op = "NegativeLogLikelihoodLoss";
  EXPECT_EQ(values_of(run_op(op, {kScores, kTargets}, reduced("none"))), (V{-3, -2, 0, -2}));
  EXPECT_EQ(values_of(run_op(op, {kScores, kTargets}, reduced("sum"))), (V{-7}));
  EXPECT_EQ(values_of(run_op(op, {kScores, kTargets})), (V{-1.75}));
  expect_near(run_op(op, {kScores, kTargets, kWeights}, reduced("sum")), floats({}, {-1.1}));
  expect_near(run_op(op, {kScores, kTargets, kWeights}), floats({}, {-1.1 / 0.7}));
}

TEST(NegativeLogLikelihoodLoss, LeavesOutWhatIsIgnored) {
  const char* op = "NegativeLogLikelihoodLoss";
  const Tensor targets = integers({2, 2}, {2, -100, 0, 2});
  Attributes attributes = {{"ignore_index", int64_t{-100}}};
  expect_near(run_op(op, {kScores, targets}, attributes), floats({}, {-5.0 / 3}));
  expect_near(run_op(op, {kScores, targets, kWeights}, attributes), floats({}, {-0.5 / 0.4}));
  attributes["reduction"] = std::string("none");
  EXPECT_EQ(values_of(run_op(op, {kScores, targets}, attributes)), (V{-3, 0, 0, -2}));
}

TEST(SoftmaxCrossEntropyLoss, IsOfTheLogarithmsOfSoftmax) {
  const Tensor scores = floats({1, 2}, {0, std::log(3)});
  const Tensor target = integers({1}, {1}, DType::kInt32);
  expect_near(run_op("SoftmaxCrossEntropyLoss", {scores, target}), floats({}, {-std::log(0.75)}));
}

TEST(Losses, RefuseTargetsOfAnotherShape) {
  EXPECT_EQ(refusal("NegativeLogLikelihoodLoss", {kScores, integers({2}, {0, 1})}),
            "node \"it\": targets of 2 do not fit scores of 2x3x2");
  EXPECT_EQ(refusal("NegativeLogLikelihoodLoss", {kScores, kTargets}, reduced("most")),
            "node \"it\": reduction is \"most\", expected none, sum or mean");
}

}  // namespace
}  // namespace pruner
