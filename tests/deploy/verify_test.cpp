// label: codegen
#include "deploy/verify.h"

#include "golden.h"
#include "network_case.h"
#include "support/temporary_folder.h"

namespace pruner {
namespace {

class VerifyTest : public testing::Test {
 protected:
  VerifyTest() : folder_(*TemporaryFolder::make("")), path_(folder_.path("module.so")) {}

  Partition cut(const Graph& graph) const { return *partition(graph, target_); }
  void build(const Graph& graph) {
    const auto built = build_module(cut(graph), target_, nullptr, {.work_dir = ""}, path_);
    ASSERT_TRUE(built.ok()) << built.error().message();
  }

  Result<Agreement> verify(Partition other) const {
    const Phase phases[] = {{"main", std::move(other)}};
    return verify_module(path_, phases, target_, 2);
  }

  Target target_ = host_target(2);
  TemporaryFolder folder_;
  std::string path_;
};

TEST_F(VerifyTest, OtherSchedulesGiveTheSame) {
  build(small_convolutional());
  const Result<Agreement> found = verify(cut(small_convolutional()));
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_TRUE(found->ok()) << found->error;
  EXPECT_EQ(found->bound, 5e-4);
  EXPECT_EQ(found->integers, 0);
}

TEST_F(VerifyTest, FindsAnotherWeight) {
  build(small_convolutional());
  Partition other = cut(small_convolutional());
  for (PlannedValue& value : other.values) {
    if (!value.constant || value.constant->dtype() != DType::kFloat32) continue;
    Tensor tensor = value.constant->clone();
    tensor.set(0, tensor.get(0) + 1);
    value.constant = tensor;
  }
  const Result<Agreement> found = verify(std::move(other));
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_FALSE(found->ok()) << found->error;
  EXPECT_FALSE(found->output.empty());
}

TEST_F(VerifyTest, SaysThatItIsAnotherNetwork) {
  build(small_convolutional());
  EXPECT_ERROR(verify(cut(small_video())), "the module's are ");
}

TEST_F(VerifyTest, ComparesIntegers) {
  build(small_sorting());
  const Result<Agreement> found = verify(cut(small_sorting()));
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_GT(found->integers, 0);
  EXPECT_EQ(found->differing, 0);
  Agreement wrong = *found;
  wrong.differing = wrong.integers;
  EXPECT_FALSE(wrong.ok());
}

}  // namespace
}  // namespace pruner
