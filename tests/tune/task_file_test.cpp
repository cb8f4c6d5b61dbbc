#include "tune/task_file.h"

#include <unistd.h>

#include <filesystem>

#include "ansor/workload_table.h"
#include "golden.h"
#include "space/operator_task.h"

namespace pruner {
namespace {

struct TaskFile : testing::Test {
  ~TaskFile() override { std::filesystem::remove(path); }
  std::string path =
      (std::filesystem::temp_directory_path() / ("pruner_tasks_" + std::to_string(getpid())))
          .string();
};

TEST_F(TaskFile, IsReadBackAndByTheOptionForDags) {
  std::vector<WeightedTask> tasks;
  for (const char* op : kSmallOperators) tasks.push_back({operator_task(op), 3});
  ASSERT_TRUE(write_task_file(path, tasks).ok());
  const auto read = read_task_file(path);
  ASSERT_TRUE(read.ok()) << read.error().message();
  ASSERT_EQ(read->size(), tasks.size());
  ansor::WorkloadTable table;
  ASSERT_TRUE(table.add_file(path).ok());
  for (size_t i = 0; i < tasks.size(); ++i) {
    EXPECT_EQ((*read)[i].key, tasks[i].task.key);
    EXPECT_EQ((*read)[i].name, tasks[i].task.name);
    EXPECT_EQ((*read)[i].weight, 3);
    EXPECT_EQ(print((*read)[i].dag), print(tasks[i].task.dag));
    EXPECT_NE(table.dag(tasks[i].task.key), nullptr) << tasks[i].task.name;
  }
}

TEST_F(TaskFile, NamesTheLineThatIsNoTask) {
  ASSERT_TRUE(write_task_file(path, std::vector<WeightedTask>{{operator_task("relu 9"), 1}}).ok());
  std::string line = *read_file(path);
  ASSERT_TRUE(write_file(path, line + "{}\n").ok());
  EXPECT_ERROR(read_task_file(path), ":2: missing key \"workload_key\"");
  const std::string key = "\"workload_key\": \"";
  line.insert(line.find(key) + key.size(), "x");
  ASSERT_TRUE(write_file(path, line).ok());
  EXPECT_ERROR(read_task_file(path), ":1: the DAG is not that of its key");
}

}  // namespace
}  // namespace pruner
