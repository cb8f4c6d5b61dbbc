#include <gtest/gtest.h>

#include "golden.h"
#include "lower/warp_programs.h"

namespace pruner {
namespace {

TEST(LockstepWarp, MultipliesByEveryInstruction) {
  for (const NamedMatmul& p : warp_matmuls()) {
    SCOPED_TRACE(p.name);
    const Program program = warp_matmul(p.matmul);
    const Result<Unit> valid = verify(program);
    ASSERT_TRUE(valid.ok()) << valid.error().message() << print(program);
    std::vector<Tensor> args = warp_arguments(program);
    const Result<Unit> ran = interpret(program, args, {.unwritten = true});
    ASSERT_TRUE(ran.ok()) << ran.error().message();
    expect_product(p.matmul, args);
  }
}

WarpMatmul half() {
  return {.instruction =
              find_mma_instruction("m16n8k16", DType::kFloat16, DType::kFloat16, DType::kFloat32)};
}

Result<Unit> run(const WarpMatmul& g, WarpPlant plant) {
  const Program program = warp_matmul(g, plant);
  TRY(verify(program));
  std::vector<Tensor> args = warp_arguments(program);
  return interpret(program, args);
}

TEST(LockstepWarp, FindsWhatIsWrongWithCopies) {
  EXPECT_TRUE(run(half(), WarpPlant::kNothing).ok());
  EXPECT_ERROR(run(half(), WarpPlant::kNoWait),
               "race on a.shared[0, 0, 0]: thread 0 reads it before thread 0, which copies to it, "
               "has waited for that in block 0");
  EXPECT_ERROR(run(half(), WarpPlant::kNoCommit), "has waited for that");
  EXPECT_ERROR(run(half(), WarpPlant::kNoBarrier), "it between two barriers of block 0");
  EXPECT_ERROR(run(half(), WarpPlant::kTooFewStages), "has waited for that");
  EXPECT_ERROR(run(half(), WarpPlant::kPastEnd), "a: index 56 of dim 0 is not below 56");
}

}  // namespace
}  // namespace pruner
