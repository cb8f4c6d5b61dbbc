// label: codegen
#include "deploy/network_race.h"

#include <gtest/gtest.h>

#include "analysis/draft.h"
#include "deploy/loaded_module.h"
#include "graph/evaluate.h"
#include "graph/networks/network_builder.h"
#include "search/search.h"
#include "support/temporary_folder.h"

namespace pruner {
namespace {

TEST(SpeedupOf, HasTheSignTestsInterval) {
  std::vector<double> ratios;
  for (int i = 10; i > 0; --i) ratios.push_back(i);
  const Speedup ten = speedup_of(ratios);  // at most one of 10 coins shows heads: 11 in 1,024
  EXPECT_EQ(ten.median, 5.5);
  EXPECT_EQ(ten.low, 2);
  EXPECT_EQ(ten.high, 9);
  for (int i = 11; i <= 20; ++i) ratios.push_back(i);
  const Speedup twenty = speedup_of(ratios);
  EXPECT_EQ(twenty.low, 6);
  EXPECT_EQ(twenty.high, 15);
  const Speedup two = speedup_of({3, 1});  // too few to leave one out
  EXPECT_EQ(two.low, 1);
  EXPECT_EQ(two.high, 3);
  EXPECT_EQ(speedup_of({2}).high, 2);
}

/// Two products, one after the other: two tasks.
Graph two_products() {
  NetworkBuilder b("two", NetworkOptions());
  const ValueId x = b.input("x", {64, 256}, DType::kFloat32);
  const ValueId y = b.node("MatMul", {x, b.weight("v", {256, 512}, 256, 1)});
  return b.finish({{b.node("MatMul", {y, b.weight("w", {512, 128}, 512, 1)}), "y"}});
}

/// The slowest by draft of some candidates.
Candidate slow_one(const Space& space) {
  Rng rng(0);
  const auto seconds = [&](const Candidate& c) {
    return draft_latency_s(make_loop_nest(space, c), space.target);
  };
  return std::ranges::max(sample_legal(space, 64, rng), {}, seconds);
}

class BuildFastest : public testing::Test {
 protected:
  BuildFastest() {
    phase_.partition = *partition(two_products(), target_);
    for (const Group& group : phase_.partition.groups) keys_.push_back(group.key);
  }

  /// The slow schedule for one of the tasks, the default one for the other.
  NamedChoice slow_at(const std::string& name, size_t task) const {
    return {name, [key = keys_[task]](const Task& at, const Space& space) {
              return at.key == key ? std::optional(slow_one(space)) : std::nullopt;
            }};
  }

  Result<std::optional<NetworkRace>> fastest_of(std::span<const NamedChoice> choices,
                                                const std::string& path) const {
    return build_fastest(std::span(&phase_, 1), target_, choices, {.work_dir = ""}, path);
  }

  const Target target_ = *parse_target("llvm -mcpu=haswell", 2);
  const TemporaryFolder folder_ = *TemporaryFolder::make("");
  const std::string path_ = folder_.path("module.so");
  Phase phase_{.name = "main", .partition = {}};
  std::vector<std::string> keys_;
};

TEST_F(BuildFastest, TakesForEachTaskWhatIsFasterInTheNetwork) {
  ASSERT_EQ(keys_.size(), 2u);
  const NamedChoice choices[] = {slow_at("first", 0), slow_at("last", 1)};
  const Result<std::optional<NetworkRace>> raced = fastest_of(choices, path_);
  ASSERT_TRUE(raced.ok()) << raced.error().message();
  ASSERT_TRUE(raced->has_value());
  const NetworkRace& race = **raced;
  EXPECT_EQ(race.fastest, "mixed");
  ASSERT_EQ(race.taken_over.size(), 1u);
  EXPECT_EQ(race.taken_over[0].task, phase_.partition.groups[0].name);
  EXPECT_EQ(race.taken_over[0].choice, "last");
  EXPECT_LT(race.ms, race.last_ms);
  EXPECT_GT(race.over_last.low, 1);
  Result<LoadedModule> module = load_module(path_);
  ASSERT_TRUE(module.ok()) << module.error().message();
  const std::vector<Tensor> inputs = seeded_inputs(module->inputs(), 1);
  const Tensor got = (*module->run(inputs))[0];
  const Tensor expected = (*interpret_graph(two_products(), inputs))[0];
  for (int64_t i = 0; i < got.num_elements(); ++i)
    ASSERT_NEAR(got.get(i), expected.get(i), 1e-4) << i;
}

TEST_F(BuildFastest, IsTheLastModuleIfThatIsTheFastest) {
  const NamedChoice choices[] = {slow_at("first", 0), {"last", nullptr}};
  const Result<std::optional<NetworkRace>> raced = fastest_of(choices, path_);
  ASSERT_TRUE(raced.ok()) << raced.error().message();
  ASSERT_TRUE(raced->has_value());
  const NetworkRace& race = **raced;
  EXPECT_NE(race.fastest, "first");
  EXPECT_LE(race.ms, race.last_ms);
  EXPECT_TRUE(load_module(path_).ok());
}

// A schedule that is not legal has no module.
TEST_F(BuildFastest, RacesNothingWithoutTheModuleOfTheLastChoice) {
  const ScheduleChoice illegal = [](const Task&, const Space& space) {
    Candidate candidate = slow_one(space);
    for (size_t d = 0; is_legal(space, candidate) && d < candidate.decisions.size(); ++d)
      candidate.decisions[d] = 7;
    EXPECT_FALSE(is_legal(space, candidate));
    return std::optional(candidate);
  };
  const NamedChoice choices[] = {{"first", nullptr}, {"last", illegal}};
  const Result<std::optional<NetworkRace>> race = fastest_of(choices, path_);
  ASSERT_TRUE(race.ok()) << race.error().message();
  EXPECT_FALSE(race->has_value());
  EXPECT_TRUE(load_module(path_).ok());
  const NamedChoice without_first[] = {{"first", illegal}, {"last", nullptr}};
  EXPECT_FALSE(fastest_of(without_first, path_).ok());
  const NamedChoice without_others[] = {{"first", nullptr}, {"other", illegal}, {"last", nullptr}};
  EXPECT_TRUE(fastest_of(without_others, path_)->has_value());
}

TEST_F(BuildFastest, NamesThePathThatCannotBeWritten) {
  const NamedChoice choices[] = {{"first", nullptr}, {"last", nullptr}};
  const Result<std::optional<NetworkRace>> race = fastest_of(choices, "/nonexistent/module.so");
  ASSERT_FALSE(race.ok());
  EXPECT_EQ(race.error().message(), "/nonexistent/module.so: No such file or directory");
}

}  // namespace
}  // namespace pruner
