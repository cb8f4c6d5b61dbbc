#include <filesystem>
#include <fstream>

#include "ansor/workload_table.h"
#include "golden.h"
#include "support/file.h"

namespace pruner::ansor {
namespace {

// print_program() gives TVM's own text for every state that was lowered by TVM.
TEST(PrintProgram, EqualsWhatTvmLowersTo) {
  const std::string folder = PRUNER_SHARED_DATA "/pruner-golden/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no golden programs under " << folder;
  int programs = 0, equal = 0;
  for (const char* name :
       {"add", "conv2d", "conv2d_s2", "matmul", "matmul_bias_relu", "reduce", "softmax"}) {
    WorkloadTable workloads;
    const Result<Unit> added = workloads.add_file(folder + name + ".dag.json");
    ASSERT_TRUE(added.ok()) << added.error().message();
    const Json golden = *parse_json(*read_file(folder + name + ".json"));
    for (const Json& state : golden["states"]) {
      const Json& i = state["record"]["i"];
      const auto steps = steps_from_json(i[1][1]);
      ASSERT_TRUE(steps.ok()) << steps.error().message();
      const auto nest = replay(workloads.find(i[0][0].get<std::string>()), *steps);
      ASSERT_TRUE(nest.ok()) << name << ": " << nest.error().message();
      ++programs;
      EXPECT_EQ(print_program(*nest), state["program"].get<std::string>())
          << name << " " << print_json(i[1][1]);
      equal += print_program(*nest) == state["program"].get<std::string>();
    }
  }
  EXPECT_EQ(equal, programs);
  EXPECT_GT(programs, 30);
}

}  // namespace
}  // namespace pruner::ansor
