#include "dataset/split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "golden.h"

namespace pruner {
namespace {

/// Tasks of 100, 40, 30, 20 and 10 programs; the first two are one workload on two targets.
struct Programs {
  std::vector<int32_t> task;
  std::vector<uint64_t> id;

  Programs() {
    const int sizes[] = {100, 40, 30, 20, 10};
    for (int t = 0; t < 5; ++t)
      for (int i = 0; i < sizes[t]; ++i) {
        task.push_back(t);
        id.push_back(0x1234567 * task.size());
      }
  }
  SplitColumns columns() const {
    return {task, id, {"a", "a", "b", "c", "d"}, {"k80", "v100", "k80", "v100", "v100"}};
  }
};

/// Task of the programs of each side.
std::set<int32_t> tasks_of(const std::vector<size_t>& side, const Programs& programs) {
  std::set<int32_t> tasks;
  for (const size_t p : side) tasks.insert(programs.task[p]);
  return tasks;
}

void expect_partition(const Split& split, size_t programs) {
  std::set<size_t> all(split.train.begin(), split.train.end());
  all.insert(split.test.begin(), split.test.end());
  EXPECT_EQ(all.size(), programs);
  EXPECT_EQ(split.train.size() + split.test.size(), programs);
  EXPECT_TRUE(std::ranges::is_sorted(split.train) && std::ranges::is_sorted(split.test));
}

TEST(Split, WithinTasksTakesItsShareOfEach) {
  const Programs programs;
  const Split found = *split(programs.columns(), {.train_ratio = 0.9, .seed = 1});
  expect_partition(found, 200);
  for (int t = 0; t < 5; ++t) {
    const auto of_task = [&](size_t p) { return programs.task[p] == t; };
    const auto size = std::ranges::count(programs.task, t);
    EXPECT_EQ(std::ranges::count_if(found.train, of_task), size * 9 / 10) << t;
  }
  EXPECT_EQ(split(programs.columns(), {.seed = 1})->train, found.train);
  EXPECT_NE(split(programs.columns(), {.seed = 2})->train, found.train);
}

TEST(Split, DoesNotDependOnTheOrderOfThePrograms) {
  const Programs programs;
  Programs reversed = programs;
  std::ranges::reverse(reversed.task);
  std::ranges::reverse(reversed.id);
  for (const SplitScheme scheme : {SplitScheme::kWithinTask, SplitScheme::kByTask}) {
    const SplitOptions options{.scheme = scheme, .train_ratio = 0.7, .seed = 3};
    std::set<uint64_t> ids, reversed_ids;
    const Split found = *split(programs.columns(), options);
    const Split of_reversed = *split(reversed.columns(), options);
    for (const size_t p : found.train) ids.insert(programs.id[p]);
    for (const size_t p : of_reversed.train) reversed_ids.insert(reversed.id[p]);
    EXPECT_EQ(ids, reversed_ids);
  }
}

TEST(Split, ByTaskKeepsWorkloadsWhole) {
  const Programs programs;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Split found = *split(programs.columns(),
                               {.scheme = SplitScheme::kByTask, .train_ratio = 0.8, .seed = seed});
    expect_partition(found, 200);
    const std::set<int32_t> train = tasks_of(found.train, programs);
    for (const int32_t task : tasks_of(found.test, programs)) EXPECT_FALSE(train.contains(task));
    EXPECT_EQ(train.contains(0), train.contains(1)) << "one workload on both sides";
    EXPECT_FALSE(found.train.empty() || found.test.empty());
  }
}

TEST(Split, ByTargetKeepsTargetsWhole) {
  const Programs programs;
  const Split found = *split(programs.columns(), {.scheme = SplitScheme::kByTarget});
  expect_partition(found, 200);
  const std::set<int32_t> train = tasks_of(found.train, programs);
  EXPECT_TRUE(train == (std::set<int32_t>{0, 2}) || train == (std::set<int32_t>{1, 3, 4}));
  SplitColumns one = programs.columns();
  one.target.assign(5, "k80");
  EXPECT_ERROR(split(one, {.scheme = SplitScheme::kByTarget}),
               "a split by_target needs records of two targets, there is one");
}

TEST(Split, KeepsEqualIdsTogether) {
  Programs programs;
  programs.id.assign(programs.id.size(), 7);
  const Split found = *split(programs.columns(), {.train_ratio = 0.5});
  EXPECT_EQ(found.train.size(), 200u);
}

TEST(DrawShare, TakesTenOrAllOfSmallTasks) {
  const Programs programs;
  std::vector<size_t> all;
  for (size_t p = 0; p < 200; ++p) all.push_back(p);
  const std::vector<size_t> drawn = draw_share(all, programs.columns(), 0.3, 5);
  const int expected[] = {30, 12, 10, 10, 10};
  for (int t = 0; t < 5; ++t) {
    EXPECT_EQ(std::ranges::count_if(drawn, [&](size_t p) { return programs.task[p] == t; }),
              expected[t]);
  }
}

TEST(SplitScheme, IsReadByItsName) {
  EXPECT_EQ(*parse_split_scheme("by_task"), SplitScheme::kByTask);
  EXPECT_EQ(split_scheme_name(SplitScheme::kByTarget), "by_target");
  EXPECT_ERROR(parse_split_scheme("by_file"),
               "split scheme \"by_file\" is unknown; use within_task, by_task or by_target");
}

}  // namespace
}  // namespace pruner
