// Schedules of one task on another: classes, adaptation, pools, and the policy that measures them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "golden.h"
#include "search/search.h"
#include "space/operator_task.h"
#include "transfer/adapt.h"
#include "transfer/kernel_class.h"
#include "transfer/pool.h"

namespace pruner {
namespace {

TEST(KernelClass, IsTheOperatorsInTheirOrder) {
  EXPECT_EQ(kernel_class("conv2d 1x56x56x64 3x3 s1 -> 64 +bias +residual +relu"),
            "conv2d+bias+residual+relu");
  EXPECT_EQ(kernel_class("conv2d 1 64 56 56 64 3 3 padding=1 +bias +max_pool2d=3,2,1"),
            "conv2d+bias+max_pool2d");
  EXPECT_EQ(kernel_class("softmax 1536 128"), "softmax");
  EXPECT_NE(kernel_class("matmul 1x8x8 8x8 +bias +relu"),
            kernel_class("matmul 1x8x8 8x8 +relu +bias"));
}

TEST(KernelClass, HasAnAnchor) {
  EXPECT_EQ(anchor_of("conv2d 1x56x56x64 3x3 s1 -> 64 +bias +relu"), "conv2d");
  EXPECT_EQ(anchor_of("mul+add+relu+conv2d 1x56x56x64 1x1 s1 -> 128 +bias +relu"), "conv2d");
  EXPECT_EQ(anchor_of("softmax 1536 128"), "softmax");
}

Record record_of(const Task& task, const Space& space, const Candidate& candidate, double cost_s) {
  MeasureResult result;
  result.costs_s = {cost_s};
  return make_record(task, space, candidate, result);
}

class Adapted : public testing::TestWithParam<std::pair<const char*, const char*>> {};

// Whatever is drawn for one shape becomes a legal schedule of the same form on the other.
TEST_P(Adapted, IsLegalAndOfTheSameForm) {
  const auto [from_text, to_text] = GetParam();
  const Task from = operator_task(from_text), to = operator_task(to_text);
  const Space from_space = make_space(from), to_space = make_space(to);
  const Candidate rest = default_schedule(to, to_space);
  Rng rng(3);
  int adapted = 0;
  std::map<std::string, int> failures;
  for (int i = 0; i < 200; ++i) {
    const Candidate drawn = sample(from_space, rng);
    const Result<Candidate> candidate =
        adapt(record_of(from, from_space, drawn, 1), to_space, rest);
    if (!candidate.ok()) {
      ++failures[candidate.error().message()];
      continue;
    }
    ++adapted;
    std::string why;
    EXPECT_TRUE(is_legal(to_space, *candidate, &why)) << why;
    EXPECT_EQ(to_space[candidate->sketch].form, from_space[drawn.sketch].form);
  }
  EXPECT_GT(adapted, 150) << testing::PrintToString(failures);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes,
    Adapted,
    testing::Values(std::pair{"matmul 512 512 512", "matmul 128 768 320"},
                    std::pair{"matmul 64 64 64", "matmul 61 67 71"},
                    std::pair{"conv2d 1 64 56 56 64 3 3 padding=1 +bias +relu",
                              "conv2d 1 96 17 17 48 3 3 padding=1 +bias +relu"},
                    std::pair{"conv2d 1 256 14 14 1024 1 1 +bias +relu",
                              "conv2d 1 64 56 56 256 1 1 +bias +relu"},
                    std::pair{"depthwise_conv2d 1 144 56 56 3 3 padding=1 +bias +relu",
                              "depthwise_conv2d 1 32 112 112 3 3 padding=1 +bias +relu"},
                    std::pair{"dense 1 1000 2048 +bias", "dense 1 10 512 +bias"}));

TEST(Adapt, GivesATaskItsOwnScheduleBack) {
  const Task task = operator_task("conv2d 1 64 28 28 64 3 3 padding=1 +bias +relu");
  const Space space = make_space(task);
  const Candidate rest = default_schedule(task, space);
  Rng rng(4);
  for (int i = 0; i < 100; ++i) {
    const Candidate drawn = sample(space, rng);
    const Result<Candidate> same = adapt(record_of(task, space, drawn, 1), space, rest);
    ASSERT_TRUE(same.ok()) << same.error().message();
    EXPECT_EQ(*same, drawn);
  }
}

TEST(Adapt, SaysWhichSketchIsMissing) {
  const Task winograd = operator_task("conv2d 1 64 28 28 64 3 3 padding=1 +bias +relu");
  const Task direct = operator_task("conv2d 1 64 28 28 64 1 1 +bias +relu");
  const Space from = make_space(winograd, std::vector<std::string>{"winograd-2x2"});
  const Space to = make_space(direct);
  Rng rng(5);
  EXPECT_ERROR(
      adapt(record_of(winograd, from, sample(from, rng), 1), to, default_schedule(direct, to)),
      "no sketch winograd-2x2");
}

/// A file of the best schedules of some operators.
TransferSource source_of(const std::string& name, const std::vector<std::string>& operators) {
  std::vector<Record> records;
  Rng rng(6);
  for (const std::string& text : operators) {
    const Task task = operator_task(text);
    const Space space = make_space(task, std::vector<std::string>{"direct"});
    const Candidate fast = sample(space, rng), slow = sample(space, rng);
    records.push_back(record_of(task, space, slow, 2));
    records.push_back(record_of(task, space, fast, 1));
  }
  return make_source(name, records, "");
}

TEST(Pool, OffersTheBestOfEachTaskOfTheClassAndThenOfTheAnchor) {
  const std::vector<TransferSource> sources = {
      source_of("a", {"matmul 128 128 128 +relu", "matmul 256 64 64 +relu", "matmul 64 64 64"}),
      source_of("b", {"softmax 64 64", "matmul 96 96 96 +relu"})};
  EXPECT_EQ(sources[0].best.size(), 3u);
  EXPECT_EQ(sources[0].count("matmul+relu"), 2);
  const Task task = operator_task("matmul 120 72 200 +relu");
  const Space space = make_space(task);
  const Offers found = offers_for(sources, task, space);
  int64_t not_adaptable = 0;
  for (const auto& [why, count] : found.not_adaptable) not_adaptable += count;
  ASSERT_EQ(static_cast<int64_t>(found.offers.size()) + not_adaptable, 4);
  for (size_t i = 0; i < found.offers.size(); ++i) {
    const Offer& offer = found.offers[i];
    EXPECT_TRUE(is_legal(space, offer.candidate));
    const bool last = i + 1 == found.offers.size();
    EXPECT_EQ(kernel_class(offer.task), last ? "matmul" : "matmul+relu") << "the class comes first";
  }
}

TEST(Pool, ChoosesTheSourceWithMostToGive) {
  const std::vector<TransferSource> sources = {
      source_of("softmaxes", {"softmax 64 64", "softmax 128 64", "softmax 256 64"}),
      source_of("matmuls", {"matmul 96 96 96 +relu", "softmax 32 64"})};
  std::vector<WeightedTask> tasks;
  tasks.push_back({operator_task("matmul 512 512 512 +relu"), 3});
  tasks.push_back({operator_task("softmax 16 16"), 1});
  EXPECT_EQ(best_source(sources, tasks, SourceRule::kPublished), 1u);
  EXPECT_EQ(best_source(sources, tasks), 1u);
  tasks.erase(tasks.begin());
  EXPECT_EQ(best_source(sources, tasks, SourceRule::kPublished), 0u) << "it has more of them";
  EXPECT_EQ(best_source(sources, tasks), 1u) << "its one is nearer";
}

TEST(TransferPolicy, MeasuresTheDefaultAndEachOfferOnce) {
  const Task task = operator_task("matmul 128 96 64");
  const Space space = make_space(task);
  Rng rng(7);
  std::vector<Candidate> offered = sample_legal(space, 7, rng);
  offered.push_back(offered.front());
  const auto draft = make_draft_model();
  History history;
  SearchMemory memory;
  const SearchModels models{*draft};
  const SearchOptions options;
  CandidateSet measured;
  for (int round = 0; round < 4; ++round) {
    for (const Candidate& c : kTransferPolicy.next_batch(
             {task, space, history, memory, 3, models, options, offered}, rng)) {
      EXPECT_TRUE(measured.insert(c).second);
      history.add(c, 1);
    }
  }
  CandidateSet expected(offered.begin(), offered.end());
  expected.insert(default_schedule(task, space));
  EXPECT_EQ(measured, expected);
}

TEST(PrunerPolicy, BeginsWithWhatIsOffered) {
  const Task task = operator_task("matmul 128 96 64");
  const Space space = make_space(task);
  Rng rng(8);
  const std::vector<Candidate> offered = sample_legal(space, 4, rng);
  const auto draft = make_draft_model();
  History history;
  SearchMemory memory;
  const SearchModels models{*draft};
  const SearchOptions options;
  const std::vector<Candidate> batch =
      kPrunerPolicy.next_batch({task, space, history, memory, 10, models, options, offered}, rng);
  for (const Candidate& c : offered) EXPECT_TRUE(std::ranges::find(batch, c) != batch.end());
  EXPECT_EQ(batch.size(), 10u);
}

}  // namespace
}  // namespace pruner
