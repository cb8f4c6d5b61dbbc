#include "tensor/task.h"

#include "naive.h"

namespace pruner {
namespace {

TEST(MakeTask, ComputesKeyAndFlops) {
  const ComputeDag dag = operator_dag("matmul 2 3 4");
  const Task task = make_task(dag, Target{}, "mm");
  EXPECT_EQ(task.key, workload_key(dag));
  EXPECT_EQ(task.flops, 48);
  EXPECT_EQ(task.name, "mm");
}

}  // namespace
}  // namespace pruner
