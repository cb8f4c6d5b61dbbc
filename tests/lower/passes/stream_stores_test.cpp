#include "lower/passes/pass_programs.h"
#include "lower/program_builder.h"

namespace pruner {
namespace {

TEST(StreamStores, MarksStoresOfNotedBuffersOnly) {
  ProgramBuilder b("k");
  const TensorId x = b.input("x", {4}), y = b.output("y", {4}), z = b.output("z", {4});
  b.program.body = b.serial(4, [&](Expr i) {
    return b.block({b.store(y, {i}, b.read(x, {i})), b.store(z, {i}, b.read(x, {i}))});
  });
  b.program.ranges = {{0, 3}};
  b.program.buffers[static_cast<size_t>(y.value)].stream = true;
  const Program after = stream_stores(b.program);
  expect_same_results(b.program, after);
  EXPECT_NE(print(after).find("y[i0] =(streaming) x[i0]"), std::string::npos) << print(after);
  EXPECT_NE(print(after).find("z[i0] = x[i0]"), std::string::npos) << print(after);
}

TEST(StreamStores, KeepsWhatCandidatesCompute) {
  Task task = operator_task("matmul 33 49 100 +bias");
  task.target.l2_bytes = 1024;  // less than the output, else there is nothing to decide
  EXPECT_GT(changed_by("stream_stores", task, 20).size(), 4);
}

}  // namespace
}  // namespace pruner
