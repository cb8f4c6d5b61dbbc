#include "measure/kernel_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "measure/workload.h"
#include "tensor/dag_builder.h"
#include "tensor/interpreter.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

// A task, what is right, and its kernels' artifact; what a kernel would do is done by hand.
class KernelCheckTest : public testing::Test {
 protected:
  void set(const std::string& op) { set(*parse_operator(op)); }
  void set(ComputeDag dag) {
    Task task = make_task(std::move(dag), host_target(1), "");
    workload_ = *make_workload(std::move(task), {});
    right_ = interpret(workload_.task.dag, workload_.inputs).front();
    artifact_ = {};
    for (const Tensor& input : workload_.inputs)
      artifact_.arguments.push_back({input.dtype(), input.shape(), false, {}});
    artifact_.arguments.push_back({right_.dtype(), right_.shape(), true, {}});
    artifact_.workspace_bytes = 100;
  }

  // Twice an integer each.
  void set_integers() {
    DagBuilder b;
    const StageId x = b.placeholder("x", {256, 256}, DType::kInt32);
    const StageId y = b.compute("y", {256, 256}, [&](std::span<const Expr> v) {
      return b.at(x, {v[0], v[1]}) * int_imm(2, DType::kInt32);
    });
    set(b.finish({y}));
  }

  // One candidate, which leaves `output` in its first run.
  struct Candidate {
    KernelArguments arguments;
    KernelCheck check;
    Candidate(const Workload& workload, const Artifact& artifact)
        : arguments(*make_arguments(workload, artifact)),
          check(workload, artifact, arguments, Rng(1)) {}
    void write(const Tensor& output) {
      std::memcpy(arguments.pointers.back(), output.data(), static_cast<size_t>(output.bytes()));
    }
    std::optional<std::string> run(const Tensor& output) {
      write(output);
      return check.find_wrong();
    }
  };
  Candidate candidate() const { return Candidate(workload_, artifact_); }

  // An element that no candidate's sample has.
  int64_t unseen() const {
    const std::vector<int64_t>& seen = workload_.outputs[0].elements;
    for (int64_t e = right_.num_elements() / 3;; ++e) {
      if (!std::ranges::binary_search(seen, e)) return e;
    }
  }
  Tensor with_error(int64_t element) const {
    Tensor wrong = right_.clone();
    wrong.set(element, right_.get(element) + 10);
    return wrong;
  }

  Workload workload_;
  Tensor right_;
  Artifact artifact_;
};

TEST_F(KernelCheckTest, ComparesAllElementsWithAnotherKernels) {
  set("matmul 512 512 4");
  const Tensor wrong = with_error(unseen());
  EXPECT_EQ(candidate().run(right_), std::nullopt);
  const auto found = candidate().run(wrong);
  ASSERT_TRUE(found.has_value());
  EXPECT_NE(found->find("(1 of 262144 differ from another kernel's)"), std::string::npos) << *found;
  EXPECT_NE(found->find("[170, "), std::string::npos) << *found;
}

TEST_F(KernelCheckTest, FindsThatTheKernelBeforeWasWrong) {
  set("matmul 512 512 4");
  const Tensor wrong = with_error(unseen());
  EXPECT_EQ(candidate().run(wrong), std::nullopt) << "a sample misses it";
  Candidate right = candidate();
  EXPECT_EQ(right.run(right_), std::nullopt);
  EXPECT_TRUE(right.check.refuted());
  Candidate again = candidate();
  EXPECT_TRUE(again.run(wrong).has_value());
  EXPECT_FALSE(again.check.refuted());
}

TEST_F(KernelCheckTest, AllowsSumsInAnotherOrder) {
  set("matmul 512 512 4");
  Tensor other = right_.clone();
  for (float& value : other.values<float>()) value = value * (1 + 0x1p-20f) + 0x1p-20f;
  EXPECT_EQ(candidate().run(right_), std::nullopt);
  Candidate near = candidate();
  EXPECT_EQ(near.run(other), std::nullopt);
  EXPECT_FALSE(near.check.refuted());
}

TEST_F(KernelCheckTest, WantsWholeNumbersToBeTheSame) {
  set_integers();
  Tensor wrong = right_.clone();
  const int64_t element = unseen();
  wrong.set_int(element, right_.get_int(element) + 1);
  EXPECT_EQ(candidate().run(right_), std::nullopt);
  EXPECT_TRUE(candidate().run(wrong).has_value());
}

TEST_F(KernelCheckTest, LooksAtEachRun) {
  set("matmul 512 512 4");
  Candidate kernel = candidate();
  EXPECT_EQ(kernel.run(right_), std::nullopt);
  kernel.check.refill();
  kernel.write(right_);
  EXPECT_EQ(kernel.check.find_wrong_again(), std::nullopt);
  kernel.check.refill();
  kernel.write(with_error(unseen()));
  EXPECT_TRUE(kernel.check.find_wrong_again().has_value());
  kernel.check.refill();
  kernel.write(right_);
  EXPECT_EQ(kernel.check.find_wrong_again(), std::nullopt) << "the others were right";
}

// Every bit pattern is a value of an integer, also the pattern of the first filling: -1.
TEST_F(KernelCheckTest, FindsAnIntegerThatIsNeverWritten) {
  set_integers();
  const int64_t element = unseen();
  right_.set_int(element, -1);
  Candidate kernel = candidate();
  EXPECT_EQ(kernel.run(right_), std::nullopt);
  kernel.check.refill();
  Tensor left = right_.clone();
  std::memset(left.values<int32_t>().data() + element, 0x5a, sizeof(int32_t));
  kernel.write(left);
  EXPECT_TRUE(kernel.check.find_wrong_again().has_value());
}

TEST_F(KernelCheckTest, SeesWritesOnBothSidesOfABuffer) {
  set("matmul 16 15 16");  // 960 bytes, and 3,072 before them in their page
  for (const int64_t at : {-1, -64, -3072}) {
    Candidate kernel = candidate();
    ASSERT_EQ(kernel.run(right_), std::nullopt);
    static_cast<std::byte*>(kernel.arguments.pointers.back())[at] = std::byte{1};
    EXPECT_EQ(kernel.check.find_wrong_again(), "wrote outside output 0 (float32 16x15)") << at;
  }
  Candidate kernel = candidate();
  ASSERT_EQ(kernel.run(right_), std::nullopt);
  kernel.arguments.workspace().data()[100] = std::byte{1};
  EXPECT_EQ(kernel.check.find_wrong_again(), "wrote outside the workspace");
}

}  // namespace
}  // namespace pruner
