#include "report/training_curve.h"

#include "golden.h"

namespace pruner {
namespace {

const std::vector<TrainingPoint> kCurve = {
    {1, 5.5, 7e-4, 2.25, 0.75}, {2, 3, 7e-4, 2, 0.8}, {3, 2.5, 3.5e-4, 2.5, 0.875}};

TEST(TrainingTsv, HasALineAnEpoch) {
  EXPECT_EQ(training_tsv(kCurve),
            "epoch\tloss\tvalidation_loss\tpairwise_accuracy\tlearning_rate\n"
            "1\t5.5\t2.25\t0.75\t0.0007\n"
            "2\t3\t2\t0.8\t0.0007\n"
            "3\t2.5\t2.5\t0.875\t0.00035\n");
  EXPECT_EQ(training_tsv(std::vector<TrainingPoint>{{10, 0.5}}),
            "trees\tloss\tvalidation_loss\tpairwise_accuracy\tlearning_rate\n10\t0.5\t\t\t\n");
}

TEST(TrainingSvg, DrawsWhatThereIs) {
  EXPECT_GOLDEN("report/training.svg", training_svg(kCurve, "pam_k80"));
  const std::string trees = training_svg(std::vector<TrainingPoint>{{10, 0.5}, {20, 0.25}}, "xgb");
  EXPECT_NE(trees.find(">loss<"), std::string::npos);
  EXPECT_EQ(trees.find("learning rate"), std::string::npos);
  EXPECT_EQ(trees.find("nan"), std::string::npos);
}

}  // namespace
}  // namespace pruner
