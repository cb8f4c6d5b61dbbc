#include "ansor/workload_table.h"

#include "golden.h"
#include "own_path.h"
#include "support/file.h"

namespace pruner::ansor {
namespace {

constexpr const char* kTask =
    R"json({"workload_key": "[\"00112233445566778899aabbccddeeff\", 4, 4]", "dag": [)json"
    R"json({"op": "A", "kind": "placeholder", "shape": [4], "dtype": "float32"}, )json"
    R"json({"op": "B", "kind": "compute", "tag": "", "axis": [["i", 4]], "reduce_axis": [], )json"
    R"json("body": ["(A[i] * 2.0)"], "attrs": {}, "output": true}]})json";

TEST(WorkloadTable, FindsADagByEitherFormOfItsKey) {
  WorkloadTable table;
  const std::string path = own_path("workload_table_test.jsonl");
  ASSERT_TRUE(write_file(path, std::string(kTask) + "\n\n" + kTask + "\n").ok());
  ASSERT_TRUE(table.add_file(path).ok());
  EXPECT_EQ(table.size(), 1);
  EXPECT_EQ(table.find(R"(["00112233445566778899aabbccddeeff", 4, 4])").variants.size(), 1u);
  EXPECT_EQ(table.find(R"(["00112233445566778899aabbccddeeff", [4], [4]])").variants.size(), 1u);
}

TEST(WorkloadTable, SaysWhyThereIsNoDag) {
  WorkloadTable table;
  EXPECT_EQ(table.find("nonsense").missing, "the workload key is no JSON");
  EXPECT_EQ(table.find(R"(["00112233445566778899aabbccddeeff"])").missing, "a hash without a DAG");
  EXPECT_EQ(table.find(R"(["some_function", 3])").missing, "unknown function \"some_function\"");
  EXPECT_EQ(table.find(R"(["matmul_layer", 3])").missing, "matmul_layer: argument 2 is missing");
  ASSERT_TRUE(
      table.add(*parse_json(R"({"workload_key": "[\"k\", [4]]", "dag": ["A = nonsense"]})")).ok());
  EXPECT_EQ(table.find(R"(["k", [4]])").missing, "its DAG: \"A = nonsense...\": no stage");
}

TEST(WorkloadTable, NamesTheLineThatIsNoTask) {
  WorkloadTable table;
  const std::string path = own_path("workload_table_test.bad");
  ASSERT_TRUE(write_file(path, std::string(kTask) + "\n{\"dag\"\n").ok());
  EXPECT_ERROR(table.add_file(path), ".bad:2: ");
  ASSERT_TRUE(write_file(path, "{}").ok());
  EXPECT_ERROR(table.add_file(path), "missing key \"workload_key\"");
}

// The key names a convolution; the steps tell which epilogue it had.
TEST(ReplayOfWorkload, TakesTheVariantThatTheStepsFit) {
  WorkloadTable table;
  const WorkloadEntry& conv = table.find(R"(["conv2d_layer", 1, 3, 8, 8, 4, 3, 3, 1, 1])");
  const auto last = [&](const std::string& text) {
    const auto nest = replay(conv, *steps_from_json(*parse_json("[" + text + "]")));
    return nest.ok() ? nest->structure->dag.stages.back().name : nest.error().message();
  };
  EXPECT_EQ(last(""), "compute");
  EXPECT_EQ(last(R"(["FU", 4, [0, 1]])"), "relu");
  EXPECT_EQ(last(R"(["FU", 5, [0, 1]])"), "T_add");
  EXPECT_EQ(last(R"(["CI", 5], ["FU", 6, [0, 1]])"), "relu");
  EXPECT_EQ(last(R"(["CI", 4], ["FU", 6, [0, 1]])"), "T_add");
  EXPECT_EQ(last(R"(["FU", 9, [0, 1]])"), "step 0, FU: stage 9 of 4");
}

}  // namespace
}  // namespace pruner::ansor
