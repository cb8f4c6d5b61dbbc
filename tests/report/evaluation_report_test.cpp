#include "report/evaluation_report.h"

#include <gtest/gtest.h>

namespace pruner {
namespace {

TEST(EvaluationReport, ShowsEveryMetricBesideARandomOrder) {
  ProgramTable table;
  for (uint64_t i = 0; i < 4; ++i) {
    ProgramFeatures features;
    features.rows.assign(kRowFeatures, static_cast<float>(i));
    table.add({"[\"a\"]", "cuda"}, i, features, 1e-3 * static_cast<double>(1 + i));
  }
  const std::vector<size_t> all = {0, 1, 2, 3};
  const Evaluation evaluation =
      evaluate_scores(std::vector<float>{3, 4, 2, 1}, table, all);  // the second first
  const std::string text = print(evaluation);
  EXPECT_TRUE(text.starts_with("4 programs of 1 tasks\n")) << text;
  for (const char* row : {"| pairwise comparison accuracy     |     0.8333 |   0.5000 |",
                          "| average peak score@1             |     0.5000 |   0.5208 |",
                          "| Top-5, mean of tasks             |     1.0000 |   1.0000 |"})
    EXPECT_NE(text.find(row), std::string::npos) << row << "\n" << text;
  const Json json = to_json(evaluation, table);
  EXPECT_EQ(json["tasks"][0]["workload_key"], "[\"a\"]");
  EXPECT_DOUBLE_EQ(json["top"]["1"].get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(json["tasks"][0]["top_s"]["1"].get<double>(), 2e-3);
}

TEST(EvaluationReport, ShowsEachNetworkAndWhatADraftKeeps) {
  Evaluation evaluation{.metrics = {}, .tasks = {}, .networks = {}, .keep = 4};
  evaluation.metrics.best_k_tasks = 2;
  evaluation.metrics.best_k = {0.9, 0.5, 0.1};
  evaluation.networks = {{"resnet_50 1x3x224x224", 27, 0, NetworkScore{.top = {0.8, 0.95}}},
                         {"bert_tiny 1x128", 10, 3, std::nullopt}};
  const std::string text = print(evaluation);
  for (const char* row : {"| Best-1 of 4, mean of tasks       |     0.9000 |   0.0000 |",
                          "| resnet_50 1x3x224x224            |   27/27 |  0.8000 |  0.0000 |",
                          "| bert_tiny 1x128                  |    7/10 |       - |       - |",
                          "no network has all of its tasks among those judged\n",
                          "Best-k: 2 tasks of more than 4 programs\n"})
    EXPECT_NE(text.find(row), std::string::npos) << row << "\n" << text;
  EXPECT_EQ(text.find("Best-5"), std::string::npos) << "of four that are kept";
  evaluation.weighted = true;
  EXPECT_NE(print(evaluation).find("Top-1, mean of networks"), std::string::npos);
  const Json json = to_json(evaluation, ProgramTable());
  EXPECT_EQ(json["networks"][1]["missing"], 3);
  EXPECT_FALSE(json["networks"][1].contains("top"));
  EXPECT_DOUBLE_EQ(json["networks"][0]["top"]["5"].get<double>(), 0.95);
  EXPECT_DOUBLE_EQ(json["best_k"]["1"].get<double>(), 0.9);
  EXPECT_TRUE(json["weighted"].get<bool>());
}

TEST(EvaluationReport, SaysWhatAModelHasSeen) {
  EXPECT_EQ(print(SeenCount{}), "the model's file does not say what it was trained on");
  EXPECT_EQ(print(SeenCount{true, 1, 2, 3}),
            "1 programs seen in training, 2 others of their workloads, 3 of others");
  EXPECT_NE(print(SeenCount{false, 1, 2, 3}).find("not known"), std::string::npos);
}

TEST(EvaluationReport, CountsWhatWasLeftOut) {
  EXPECT_EQ(print(LeftOut{}), "");
  EXPECT_EQ(print(LeftOut{.failed = 2, .twice = 1}),
            "2 failed trials, 1 programs that stand there twice");
}

TEST(EvaluationReport, ShowsWhereATrainingStands) {
  EXPECT_EQ(print(PretrainProgress{.now = {3, 2}, .steps = 12, .seconds = 61}),
            "  3/12: loss 2.0000; 1:01, ETA -");
  EXPECT_EQ(print(PretrainProgress{
                .now = {3, 2, 7e-4, 1.5, 0.9}, .steps = 12, .seconds = 61, .eta_s = 183}),
            "  3/12: loss 2.0000, validation 1.5000 (pairwise accuracy 0.9000), learning rate "
            "7.00e-04; 1:01, ETA 3:03");
}

}  // namespace
}  // namespace pruner
