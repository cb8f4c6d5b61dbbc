// label: codegen
#include "deploy/check_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "golden.h"
#include "graph/networks/network_builder.h"

namespace pruner {
namespace {

constexpr int64_t kRows = 5, kColumns = 37;

const float* input(void* const* args) { return static_cast<const float*>(args[0]); }
float* output(void* const* args) { return static_cast<float*>(args[1]); }
constexpr int64_t kCount = kRows * kColumns;

void right(void* const* args, void*, PrunerPool*) {
  for (int64_t i = 0; i < kCount; ++i) output(args)[i] = input(args)[i] * 2;
}
void wrong_at_the_end(void* const* args, void*, PrunerPool* pool) {
  right(args, nullptr, pool);
  output(args)[kCount - 1] += 1;
}
void leaves_one_out(void* const* args, void*, PrunerPool*) {
  for (int64_t i = 0; i < kCount; ++i)
    if (i != 11) output(args)[i] = input(args)[i] * 2;
}
void writes_behind(void* const* args, void*, PrunerPool* pool) {
  right(args, nullptr, pool);
  output(args)[kCount] = 1;
}
void reads_far_before(void* const* args, void*, PrunerPool* pool) {
  right(args, nullptr, pool);
  output(args)[0] = input(args)[-1500] * 2;
}
void aborts(void* const*, void*, PrunerPool*) { abort(); }

class TestKernel : public LoadedKernel {
 public:
  explicit TestKernel(PrunerKernel entry) : entry_(entry) {}
  PrunerKernel entry() const override { return entry_; }

 private:
  PrunerKernel entry_;
};

/// x doubled.
Partition doubling(const Target& target) {
  NetworkBuilder b("doubling", NetworkOptions());
  const ValueId x = b.input("x", {kRows, kColumns}, DType::kFloat32);
  return *partition(b.finish({{b.node("Add", {x, x}), "y"}}), target);
}

class CheckKernels : public testing::Test {
 protected:
  PreparedKernel prepared(PrunerKernel entry) {
    PreparedKernel kernel{&artifact_, std::make_unique<TestKernel>(entry), {}};
    kernel.constants.emplace_back();
    return kernel;
  }
  /// Returns the fault that is found in each kernel.
  std::vector<std::optional<std::string>> check(const std::vector<PrunerKernel>& entries,
                                                int jobs) {
    std::vector<PreparedKernel> kernels;
    for (const PrunerKernel entry : entries) kernels.push_back(prepared(entry));
    std::vector<KernelCall> calls;
    for (const PreparedKernel& kernel : kernels) calls.push_back({&kernel, &partition_, 0});
    const auto found = find_wrong_kernels(calls, target_, jobs);
    EXPECT_TRUE(found.ok());
    return *found;
  }

  const Target target_ = host_target(2);
  const Partition partition_ = doubling(target_);
  const Artifact artifact_ = {.backend = target_.backend,
                              .object = {},
                              .symbol = "kernel",
                              .arguments = {{DType::kFloat32, {kRows, kColumns}, false, {}},
                                            {DType::kFloat32, {kRows, kColumns}, true, {}}},
                              .launches = {}};
};

TEST_F(CheckKernels, SaysWhatIsWrongWithEachAndGoesOnAfterACrash) {
  for (const int jobs : {1, 2}) {
    const auto found = check(
        {right, wrong_at_the_end, leaves_one_out, writes_behind, reads_far_before, aborts, right},
        jobs);
    ASSERT_EQ(found.size(), 7U);
    EXPECT_FALSE(found[0]) << *found[0];
    EXPECT_THAT(found[1].value_or(""), testing::HasSubstr("[4, 36] is "));
    EXPECT_EQ(found[2], "[0, 11] is not written");
    EXPECT_EQ(found[3], "it writes outside of its output");
    EXPECT_THAT(found[4].value_or(""),
                testing::HasSubstr("SIGSEGV: it touches byte -6000 of input 0"));
    EXPECT_THAT(found[5].value_or(""), testing::HasSubstr("SIGABRT"));
    EXPECT_FALSE(found[6]) << *found[6];
  }
}

// The kernels of two products that are joined write beside each other into one tensor.
TEST_F(CheckKernels, LooksAtWhatLiesBesideASlice) {
  NetworkBuilder b("slices", NetworkOptions());
  const ValueId x = b.input("x", {2, 4, 8, 8}, DType::kFloat32);
  const ValueId first = b.conv("first", x, {.channels = 4, .kernel = 3, .padding = 1});
  const ValueId second = b.conv("second", x, {.channels = 4, .kernel = 3, .padding = 1});
  const ValueId joined = b.concat({first, second});
  const Graph graph = b.finish({{b.conv("last", joined, {.channels = 4, .kernel = 1}), "y"}});
  const Partition partition = *pruner::partition(graph, target_);
  size_t sliced = partition.groups.size();
  for (size_t g = 0; g < partition.groups.size(); ++g)
    if (partition[partition.groups[g].output].slice) sliced = g;
  ASSERT_LT(sliced, partition.groups.size());
  // A kernel that takes the slice for a dense tensor.
  Artifact artifact = artifact_;
  artifact.arguments.clear();
  for (const ValueId id : partition.groups[sliced].inputs)
    artifact.arguments.push_back({DType::kFloat32, partition[id].shape, false, {}});
  artifact.arguments.push_back(
      {DType::kFloat32, partition[partition.groups[sliced].output].shape, true, {}});
  Result<PreparedKernel> kernel = [&]() -> Result<PreparedKernel> {
    PreparedKernel made{&artifact,
                        std::make_unique<TestKernel>([](void* const* args, void*, PrunerPool*) {
                          // Dense rows where every other one is another slice's.
                          std::memset(args[2], 0, sizeof(float) * 2 * 4 * 8 * 8);
                        }),
                        {}};
    made.constants.resize(2);
    for (size_t i = 1; i < made.constants.size(); ++i) {
      TRY_ASSIGN(GuardedBuffer buffer, GuardedBuffer::make(4096));
      made.constants[i] = std::make_shared<const GuardedBuffer>(std::move(buffer));
    }
    return made;
  }();
  ASSERT_TRUE(kernel.ok());
  ASSERT_EQ(artifact.arguments.size(), 3U);
  const KernelCall calls[] = {{&*kernel, &partition, sliced}};
  const auto found = find_wrong_kernels(calls, target_, 1);
  ASSERT_TRUE(found.ok());
  EXPECT_THAT((*found)[0].value_or(""),
              testing::AnyOf(testing::HasSubstr("beside its output"),
                             testing::HasSubstr("outside of its output")));
}

TEST(CheckRunnable, SaysWhatThisMachineCannotRun) {
  EXPECT_TRUE(check_runnable(host_target(1)).ok());
  Target other = host_target(1);
  other.isa = other.isa == Isa::kX86 ? Isa::kArm : Isa::kX86;
  EXPECT_FALSE(check_runnable(other).ok());
}

}  // namespace
}  // namespace pruner
