#include "graph/folded_constants.h"

#include "graph/small_graph.h"

namespace pruner {
namespace {

// More bytes than those by which an input is known wherever it lies.
Tensor weight() { return Tensor(DType::kFloat32, {8, 8}); }

class FoldedConstantsTest : public testing::Test {
 protected:
  Tensor make(const std::string& operation, const std::vector<Tensor>& inputs) {
    return folded_.make(operation, inputs, [&] {
      ++made_;
      return std::vector<Tensor>{weight()};
    })[0];
  }

  FoldedConstants folded_;
  int made_ = 0;
};

TEST_F(FoldedConstantsTest, AreMadeOnceOfKeptMemory) {
  const Tensor kept = weight();
  folded_.keep(kept);
  const Tensor once = make("Transpose", {kept}), again = make("Transpose", {kept});
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(once.data(), again.data());
}

TEST_F(FoldedConstantsTest, AreMadeAnewByOtherOperationsShapesAndSmallInputs) {
  const Tensor kept = weight();
  folded_.keep(kept);
  make("Mul", {kept, floats({1}, {2})});
  make("Mul", {kept, floats({1}, {2})});
  EXPECT_EQ(made_, 1);
  make("Mul", {kept, floats({1}, {3})});
  make("Mul", {kept.reshaped({64}), floats({1}, {2})});
  make("Add", {kept, floats({1}, {2})});
  make("Mul", {floats({1}, {2}), kept});
  EXPECT_EQ(made_, 5);
}

TEST_F(FoldedConstantsTest, OfMemoryThatIsNotKeptAreNotKept) {
  const Tensor open = weight();
  make("Transpose", {open});
  make("Transpose", {open});
  make("Mul", {floats({1}, {2})});
  make("Mul", {floats({1}, {2})});
  EXPECT_EQ(made_, 4);
}

TEST_F(FoldedConstantsTest, AreInputsOfFurtherOnes) {
  const Tensor kept = weight();
  folded_.keep(kept);
  make("Concat", {make("Transpose", {kept})});
  make("Concat", {make("Transpose", {kept})});
  EXPECT_EQ(made_, 2);
}

TEST_F(FoldedConstantsTest, KeepTheirElementsFromWriters) {
  const Tensor kept = weight();
  folded_.keep(kept);
  Tensor mine = make("Transpose", {kept});
  mine = make("Transpose", {kept});
  mine.set(0, 5);
  EXPECT_EQ(make("Transpose", {kept}).get(0), 0);
}

}  // namespace
}  // namespace pruner
