#include "dataset/collection.h"

#include <filesystem>
#include <map>
#include <set>

#include "golden.h"
#include "own_path.h"
#include "support/file.h"
#include "tensor/operators.h"
#include "tune/fake_measurer.h"
#include "tune/recorded.h"

namespace pruner {
namespace {

WeightedTask operator_task(const std::string& text) {
  return {make_task(*parse_operator(text), *parse_target("llvm -mcpu=haswell", 2), text), 1};
}

/// Collections into one file, on a machine that is a function.
struct CollectionTest : testing::Test {
  CollectionTest() { std::filesystem::remove(options.file); }
  ~CollectionTest() override { std::filesystem::remove(options.file); }

  TuneEnd run() {
    const auto collection =
        Collection::open(tasks, options, {machine, machine.stop, [](const Tuner&, const auto&) {}});
    EXPECT_TRUE(collection.ok()) << collection.error().message();
    return *(*collection)->run();
  }

  /// Records of each task, after a check that none is there twice.
  std::map<std::string, int> counts() const {
    std::map<std::string, int> counts;
    std::set<std::string> programs;
    const std::vector<Record> records = *read_intact_records(options.file);
    for (const Record& record : records) {
      EXPECT_EQ(record.origin, "collect");
      ++counts[record.task_name];
      std::string program = record.workload_key + record.sketch_name;
      for (const auto& [name, value] : record.decisions)
        program += " " + name + "=" + std::to_string(value);
      EXPECT_TRUE(programs.insert(program).second) << program;
    }
    return counts;
  }

  FakeMeasurer machine;
  std::vector<WeightedTask> tasks = {operator_task("matmul 64 64 64"),
                                     operator_task("matmul 512 512 512")};
  CollectOptions options{.file = own_path("collection.json"), .programs_per_task = 40, .forms = {}};
};

TEST_F(CollectionTest, GivesEveryTaskItsPrograms) {
  EXPECT_EQ(run(), TuneEnd::kNothingLeft);
  EXPECT_EQ(counts(),
            (std::map<std::string, int>{{"matmul 64 64 64", 40}, {"matmul 512 512 512", 40}}));
}

TEST_F(CollectionTest, GoesOnWhereItWasStopped) {
  machine.stop_after = 23;
  EXPECT_EQ(run(), TuneEnd::kInterrupted);
  EXPECT_EQ(read_intact_records(options.file)->size(), 23u);
  machine.stop = false;
  machine.stop_after = -1;
  run();
  EXPECT_EQ(machine.measured, 80);
  EXPECT_EQ(counts().size(), 2u);
  run();
  EXPECT_EQ(machine.measured, 80);  // nothing is left to do
  options.programs_per_task = 50;
  run();
  EXPECT_EQ(machine.measured, 100);
  EXPECT_EQ(counts()["matmul 64 64 64"], 50);
}

TEST_F(CollectionTest, EndsWhereASpaceHasNoMorePrograms) {
  tasks = {operator_task("relu 64")};
  options.programs_per_task = 100000;
  EXPECT_EQ(run(), TuneEnd::kNothingLeft);
  EXPECT_GT(machine.measured, 1);
  EXPECT_LT(machine.measured, 100000);
  counts();
}

TEST_F(CollectionTest, CountsOnlyWhatWasCollected) {
  run();
  std::string text = *read_file(options.file);
  for (size_t at = 0; (at = text.find("\"collect\"", at)) != std::string::npos; at += 8)
    text.replace(at, 9, "\"search\"");
  ASSERT_TRUE(write_file(options.file, text).ok());
  run();
  EXPECT_EQ(machine.measured, 160);
}

TEST_F(CollectionTest, LeavesAFileThatHoldsSomethingElse) {
  ASSERT_TRUE(write_file(options.file, "no record\n").ok());
  EXPECT_ERROR(Collection::open(tasks, options, {machine, machine.stop, {}}), "delete that line");
  EXPECT_EQ(*read_file(options.file), "no record\n");
}

}  // namespace
}  // namespace pruner
