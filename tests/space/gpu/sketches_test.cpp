#include "golden.h"
#include "space/gpu/gpu_task.h"
#include "tensor/dag_builder.h"

namespace pruner {
namespace {

int direct_sketches(const Task& task) {
  const Space space = make_space(task);
  return static_cast<int>(std::ranges::count(space.sketches, std::string("direct"), &Sketch::form));
}

// Ansor's own counts of its CUDA sketches.
TEST(GpuSketches, AreAsManyAsAnsors) {
  EXPECT_EQ(direct_sketches(gpu_task("matmul 512 512 512")), 1);
  EXPECT_EQ(direct_sketches(gpu_task("matmul 8 8 1024")), 2);
  EXPECT_EQ(direct_sketches(gpu_task("conv2d 1 512 7 7 512 3 3 padding=1 +bias +relu")), 1);
  EXPECT_EQ(direct_sketches(gpu_task("max_pool2d 1 512 7 7 2 2 stride=2 padding=1")), 1);
  EXPECT_EQ(direct_sketches(gpu_task("sum 10 1024")), 2);
  EXPECT_EQ(direct_sketches(gpu_task("softmax 1024 1024")), 4);
}

StageId add_product(DagBuilder& b, const std::string& name, StageId left, StageId right) {
  const std::vector<int64_t> l = b.shape(left), r = b.shape(right);
  return b.reduce(
      name,
      {l[0], r[1]},
      {l[1]},
      Combiner::kSum,
      [&](std::span<const Expr> i, std::span<const Expr> k) {
        return b.at(left, {i[0], k[0]}) * b.at(right, {k[0], i[1]});
      },
      "matmul");
}

TEST(GpuSketches, AreAsManyAsAnsorsOfTwoProducts) {
  DagBuilder b;
  const StageId a = b.placeholder("A", {512, 512}), c = b.placeholder("C", {512, 512}),
                e = b.placeholder("E", {512, 512});
  const StageId first = add_product(b, "D", a, c);
  const StageId second = add_product(b, "F", first, e);
  EXPECT_EQ(direct_sketches(make_task(b.finish({second}), gpu_target(), "chained")), 1);
}

TEST(GpuSketches, AreAsManyAsAnsorsOfASumOfAll) {
  DagBuilder b;
  const StageId a = b.placeholder("A", {512, 512});
  const StageId sum = b.reduce(
      "sum",
      {},
      {512, 512},
      Combiner::kSum,
      [&](std::span<const Expr>, std::span<const Expr> k) {
        return b.at(a, {k[0], k[1]});
      },
      "comm_reduce");
  EXPECT_EQ(direct_sketches(make_task(b.finish({sum}), gpu_target(), "sum")), 2);
}

// A device file may take a unit away.
TEST(GpuSketches, HaveNoTensorCoresWithoutARate) {
  const auto has_warps = [](const Target& target) {
    const Space space = make_space(operator_task("matmul 64 64 64 bits=16", target));
    return std::ranges::any_of(space.sketches, [](const Sketch& sketch) {
      return sketch.name == "m16n8k16-tile" || sketch.name == "m16n8k8-tile";
    });
  };
  Target target = *parse_target("cuda --arch=sm_80", 0);
  EXPECT_TRUE(has_warps(target));
  target.gpu.tensor_rates.f16_f32 = 0;
  EXPECT_FALSE(has_warps(target));
}

TEST(GpuSketches, PrintAsThemselves) {
  EXPECT_GOLDEN("space/gpu/matmul_sketches.txt", print(make_space(gpu_task("matmul 32 48 64"))));
  EXPECT_GOLDEN("space/gpu/softmax_sketches.txt", print(make_space(gpu_task("softmax 6 64"))));
}

}  // namespace
}  // namespace pruner
