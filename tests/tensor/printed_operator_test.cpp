#include "tensor/printed_operator.h"

#include <gtest/gtest.h>

#include <sstream>

#include "golden.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

std::string key(const std::string& text) {
  const Result<ComputeDag> dag = parse_operator(text);
  EXPECT_TRUE(dag.ok()) << text << ": " << dag.error().message();
  return dag.ok() ? workload_key(*dag) : text;
}

TEST(PrintedOperator, IsTheSameTaskAsTheWordsOfOp) {
  const std::pair<const char*, const char*> kPairs[] = {
      {"conv2d 1x56x56x64 3x3 s1 p1 -> 64 +bias +relu",
       "conv2d 1 64 56 56 64 3 3 padding=1 +bias +relu"},
      {"conv2d 1x7x7x1024 3x3 s1 p1 d2 g32 -> 1024",
       "conv2d 1 1024 5 5 1024 3 3 padding=1 dilation=2 groups=32"},
      {"conv2d 1x56x56x8 3x3 s2 p0x0x1x1 -> 4", "conv2d 1 4 28 28 8 3 3 stride=2 padding=0,0,1,1"},
      {"conv2d_nchw 2x3x9x9 1x3 s1x2 -> 4", "conv2d_nchw 2 4 9 4 3 1 3 stride=1,2"},
      {"conv3d 1x4x6x6x8 3x3x3 s1 p1 -> 4", "conv3d 1 4 4 6 6 8 3 3 3 padding=1"},
      {"conv2d_transpose 1x4x4x16 4x4 s2 p1 -> 8", "conv2d_transpose 1 8 8 8 16 4 4 padding=1"},
      {"conv2d_transpose 1x4x4x16 4x4 s2 p1 -> 8 phases=1 +bias",
       "conv2d_transpose 1 8 8 8 16 4 4 padding=1 phases=1 +bias"},
      {"depthwise_conv2d 1x8x8x4 3x3 s1 p1 -> 8",
       "depthwise_conv2d 1 4 8 8 3 3 padding=1 multiplier=2"},
      {"max_pool2d 1x9x9x4 3x3 s2", "max_pool2d 1 4 4 4 3 3 stride=2"},
      {"dense 16x32 -> 8 +bias", "dense 16 8 32 +bias"},
      {"dense 16x32 -> 8 bits=16", "dense 16 8 32 bits=16"},
      {"coded_matmul 16x32 -> 8 of 4 bits in 16", "coded_matmul 16 8 32 bits=4 block=16"},
      {"matmul 16x32 32x8", "matmul 16 8 32"},
      {"matmul 2x16x32 2x32x8 +relu", "batch_matmul 2 16 8 32 +relu"},
      {"matmul 1x16x32 32x8 +bias", "batch_matmul 1 16 8 32 weights=1 +bias"},
      {"softmax 2x16x32", "softmax 2 16 32"},
      {"rms_norm 16x32", "rms_norm 16 32"}};
  for (const auto& [printed, words] : kPairs) EXPECT_EQ(key(printed), key(words)) << printed;
}

// A stride leaves a border of the data unread; the words of --op know the least data only.
TEST(PrintedOperator, HasTheDataAsTheyAre) {
  const ComputeDag dag = *parse_operator("conv2d 1x56x56x64 3x3 s2 p1 -> 64");
  EXPECT_EQ(dag[dag.inputs()[0]].shape(), (std::vector<int64_t>{1, 56, 56, 64}));
  EXPECT_EQ(dag[dag.outputs()[0]].shape(), (std::vector<int64_t>{1, 28, 28, 64}));
}

TEST(PrintedOperator, SaysWhereToTuneWhatIsNoneOfOp) {
  for (const char* text : {"mul+add+relu+conv2d 1x7x7x992 1x1 s1 -> 128 +bias",
                           "conv2d 1x7x7x448 1x1 s1 -> 1792 +bias +sigmoid +mul",
                           "conv2d 1x7x7x448 1x1 s1",
                           "conv2d 1x7x7 1x1 s1 -> 4",
                           "matmul 1x7x7x96 96x96",
                           "matmul 16x8T 16x8",
                           "attention 1x128x12x64 of 128 keys",
                           "dense 16x32",
                           "+bi30 7x09",
                           "conv2d 1x8x8x0 3x3 s1 p1 -> 4",
                           "depthwise_conv2d 1x8x8x0 3x3 s1 p1 -> 4",
                           "conv2d 1x8x8x4 3x3 s0 p1 -> 4",
                           "conv2d 1x8x8x4 3x3 s1 p9000000000000000000 -> 4",
                           "softmax 2x16 x",
                           "global_avg_pool 1x8x8x4"})
    EXPECT_ERROR(parse_operator(text), "only networks have such a task; tune it there");
}

TEST(PrintedOperator, IsToldByItsSecondWord) {
  EXPECT_TRUE(is_printed({"relu", "8x8"}));
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"relu", "8", "8"}, {"relu"}, {"matmul", "M=8"}, {"x", "8x"}, {"x", "x8"}, {"x", "8xa"}})
    EXPECT_FALSE(is_printed(words));
}

}  // namespace
}  // namespace pruner
