// label: cuda-fake
// Modules for CUDA of several shapes: each shape has kernels of its own.
#include <functional>

#include "deploy/loaded_module.h"
#include "deploy/module.h"
#include "fakes/fake_cuda.h"
#include "golden.h"
#include "graph/networks/network_builder.h"
#include "graph/partition_range.h"
#include "network_case.h"
#include "pruner/module.hpp"
#include "support/temporary_folder.h"

namespace pruner {
namespace {

// A convolution of every other place and its mean, times a vector of 2 n + 1 numbers.
Graph network_at(const SymbolValues& values) {
  const int64_t batch = values[0], n = values[1];
  NetworkBuilder b("image", NetworkOptions());
  const ValueId x = b.input("x", {batch, 3, n, n}, DType::kFloat32);
  const ValueId scale = b.input("scale", {2 * n + 1}, DType::kFloat32);
  const ValueId y =
      b.relu(b.conv("first", x, {.channels = 8, .kernel = 3, .stride = 2, .padding = 1}));
  const ValueId axes = b.integers("axes", {1, 2, 3});
  const ValueId mean = b.node("ReduceMean", {y, axes}, {{"keepdims", int64_t{0}}});
  const ValueId column = b.node("Reshape", {mean, b.integers("column", {batch, 1})});
  return b.finish({{y, "image"}, {b.node("Mul", {column, scale}), "scaled"}});
}

class CudaRanges : public testing::Test {
 protected:
  Result<NetworkRanges> ranges(const std::vector<Symbol>& symbols) const {
    return partition_each(symbols, [this](const SymbolValues& values, const auto& /*hints*/) {
      return partition(network_at(values), target_);
    });
  }
  /// Builds a module of the ranges, and gives it to `use` on the fake driver.
  void with_module(NetworkRanges network, const std::function<void(LoadedModule&)>& use) const {
    Partition greatest = network.ranges.front().largest;
    const Phase phase{
        "main", std::move(greatest), std::make_shared<const NetworkRanges>(std::move(network))};
    const TemporaryFolder folder = *TemporaryFolder::make("");
    const std::string path = folder.path("range.so");
    const FakeCuda cuda;
    {
      const auto built =
          build_module(std::span(&phase, 1), target_, nullptr, {.jobs = 2, .work_dir = ""}, path);
      ASSERT_TRUE(built.ok()) << built.error().message();
      Result<LoadedModule> module = load_module(path);
      ASSERT_TRUE(module.ok()) << module.error().message();
      use(*module);
    }
    EXPECT_EQ(cuda.end(), "");
  }
  const Target target_ = *parse_target("cuda --arch=sm_80", 0);
};

// Runs the module at one shape, against the interpreter.
void expect_right_at(LoadedModule& module, const SymbolValues& values) {
  SCOPED_TRACE("batch " + std::to_string(values[0]) + ", n " + std::to_string(values[1]));
  const Result<TensorSpecs> specs = module.specs_at(values);
  ASSERT_TRUE(specs.ok()) << specs.error().message();
  EXPECT_EQ(specs->inputs[1].shape, (std::vector<int64_t>{2 * values[1] + 1}));
  const std::vector<Tensor> inputs = seeded_inputs(specs->inputs, 3);
  const auto expected = interpret_graph(network_at(values), inputs);
  ASSERT_TRUE(expected.ok()) << expected.error().message();
  const auto outputs = module.run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message();
  EXPECT_EQ((*outputs)[0].shape(), (*expected)[0].shape());
  expect_close(*outputs, *expected);
}

TEST_F(CudaRanges, RunAtEachShape) {
  const std::vector<Symbol> symbols = {{"batch", 1, 2, {}}, {"n", 5, 8, {}}};
  Result<NetworkRanges> network = ranges(symbols);
  ASSERT_TRUE(network.ok()) << network.error().message();
  EXPECT_EQ(network->ranges.size(), 8u);
  EXPECT_EQ(network->ranges.front().box.max, (SymbolValues{2, 8}));
  with_module(*std::move(network), [](LoadedModule& module) {
    for (int repeated = 0; repeated < 3; ++repeated)  // launched, recorded, replayed
      for (int64_t batch = 1; batch <= 2; ++batch)
        for (int64_t n = 5; n <= 8; ++n) expect_right_at(module, {batch, n});
    EXPECT_ERROR(module.specs_at(std::vector<int64_t>{3, 5}), "batch is 3");
  });
}

// More shapes than have kernels: those that matter, and no others.
TEST_F(CudaRanges, HaveTheExtentsThatMatter) {
  EXPECT_ERROR(ranges({{"batch", 1, 2, {}}, {"n", 5, 100, {}}}),
               "for at most 64 shapes; say at which it is to run, as --dim batch=1..2@1,2");
  const Result<NetworkRanges> some = ranges({{"batch", 1, 1, {}}, {"n", 5, 100, {5, 64, 100}}});
  ASSERT_TRUE(some.ok()) << some.error().message();
  std::vector<SymbolValues> shapes;
  for (const PartitionRange& range : some->ranges) shapes.push_back(range.box.min);
  EXPECT_EQ(shapes, (std::vector<SymbolValues>{{1, 100}, {1, 64}, {1, 5}}));
}

// The ends of the range are no such extents: the module's range ends where its shapes do.
TEST_F(CudaRanges, EndWhereTheirShapesDo) {
  Result<NetworkRanges> network = ranges({{"batch", 1, 1, {}}, {"n", 5, 100, {7, 9}}});
  ASSERT_TRUE(network.ok()) << network.error().message();
  EXPECT_EQ(network->symbols[1].min, 7);
  EXPECT_EQ(network->symbols[1].max, 9);
  with_module(*std::move(network), [](LoadedModule& module) {
    for (const int64_t n : {9, 7}) expect_right_at(module, {1, n});
    EXPECT_ERROR(module.specs_at(SymbolValues{1, 8}), "no plan for batch=1, n=8");
    EXPECT_ERROR(module.specs_at(SymbolValues{1, 100}),
                 "n is 100; the module was compiled for 7 to 9");
  });
}

}  // namespace
}  // namespace pruner
