#include "lower/passes/pass_programs.h"
#include "lower/program_builder.h"

namespace pruner {
namespace {

// y[j] is the sum of w[k, j] over k; w is to lie in blocks of four columns.
Program columns(int64_t count) {
  ProgramBuilder b("k");
  const TensorId w = b.input("w", {3, count}), y = b.output("y", {count});
  b.program.buffers[0].repack = {{1, 0}, {{1, 4}}};
  b.program.body = b.serial(count, [&](Expr j) {
    return b.block({b.store(y, {j}, float_imm(0)), b.serial(3, [&](Expr k) {
                      return b.add(y, {j}, b.read(w, {k, j}));
                    })});
  });
  b.program.ranges = {{0, count - 1}, {0, 2}};
  return b.program;
}

TEST(PackOperands, ReadsBlocksInTheirOrder) {
  for (const int64_t count : {8, 10}) {  // whole blocks, and a padded one
    const Program before = columns(count), after = pack_operands(before);
    expect_same_results(before, after);
    EXPECT_EQ(after.buffers[0].shape, (std::vector<int64_t>{(count + 3) / 4, 3, 4}));
    EXPECT_TRUE(after.buffers[0].repack.order.empty());
    EXPECT_NE(print(after).find("w[(i0 // 4), i1, (i0 %% 4)]"), std::string::npos) << print(after);
  }
}

TEST(PackOperands, KeepsWhatCandidatesCompute) {
  for (const char* op : {"dense 1 24 48 +bias", "conv2d 1 9 6 5 17 3 3 padding=1"})
    EXPECT_GT(changed_by("pack_operands", operator_task(op), 20).size(), 4) << op;
}

}  // namespace
}  // namespace pruner
