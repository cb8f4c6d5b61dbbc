#include "tensor/check_accesses.h"

#include <gtest/gtest.h>

#include "golden.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

// A stage "y" over i < 16 and j < 4 that reads x[16], of m[16, 4], of the integers at[16] below 16
// and any[16], of any value.
Result<Unit> check(const std::string& body) {
  const Result<Json> json = parse_json(R"json([
    {"op": "x", "kind": "placeholder", "shape": [16], "dtype": "float32"},
    {"op": "m", "kind": "placeholder", "shape": [16, 4], "dtype": "float32"},
    {"op": "at", "kind": "placeholder", "shape": [16], "dtype": "int32", "index_bound": 16},
    {"op": "any", "kind": "placeholder", "shape": [16], "dtype": "int64"},
    {"op": "y", "kind": "compute", "tag": "", "axis": [["i", 16], ["j", 4]], "reduce_axis": [],
     "body": [")json" + body + R"json("], "attrs": {}, "output": true}])json");
  EXPECT_TRUE(json.ok()) << body;
  const Result<ComputeDag> dag = dag_from_json(*json);
  EXPECT_TRUE(dag.ok()) << body << ": " << dag.error().message();
  return dag.ok() ? check_accesses(*dag) : Result<Unit>(dag.error());
}

TEST(CheckAccesses, ReadsThatStayInside) {
  for (const char* body : {"x[i]",
                           "x[((i * 4) + j) // 4]",
                           "x[((i * 7) % 16)]",
                           "m[(((i * 4) + j) // 4), (((i * 4) + j) % 4)]",
                           "x[(15 - i)]",
                           "x[min((i + j), 15)]",
                           "x[max(min(any[i], 15), 0)]",
                           "x[(any[i] % 16)]",
                           "x[at[i]]",
                           "x[cast<int64>(at[max((i - 1), 0)])]",
                           "x[select((any[i] >= 0) && (any[i] < 16), any[i], 0)]"}) {
    const Result<Unit> result = check(body);
    EXPECT_TRUE(result.ok()) << body << ": " << result.error().message();
  }
}

TEST(CheckAccesses, ReadsThatConditionsGuard) {
  for (const char* body :
       {"tir.if_then_else(((i >= 1) && (i < 15)), x[(i - 1)], 0f)",
        "tir.if_then_else(((i < 1) || (i >= 15)), 0f, x[(i + 1)])",
        "tir.if_then_else(!(i < 3), x[(i - 3)], 0f)",
        "tir.if_then_else((i == 3), x[(i * 5)], 0f)",
        "tir.if_then_else(((i + j) < 16), x[(i + j)], 0f)",
        "tir.if_then_else((((i - j) >= 0) && ((i - j) < 16)), x[(i - j)], 0f)",
        "tir.if_then_else(((i * 4) < 61), x[i], x[(i - 1)])",
        "tir.if_then_else((((i // 4) >= 1) && ((i % 4) >= 1)), x[((((i // 4) - 1) * 3) + ((i % "
        "4) - 1))], 0f)",
        "tir.if_then_else((i >= 20), x[i + 100], 0f)"}) {
    const Result<Unit> result = check(body);
    EXPECT_TRUE(result.ok()) << body << ": " << result.error().message();
  }
}

TEST(CheckAccesses, ReadsThatLeaveTheTensor) {
  EXPECT_ERROR(check("x[(i + 1)]"),
               "stage y: reads x at (i + 1), which may be 1 to 16, expected 0 to 15");
  for (const char* body : {"x[(i - 1)]",
                           "x[(i + 1000000)]",
                           "m[i, (j + i)]",
                           "x[any[i]]",
                           "x[(at[i] + 1)]",
                           "x[at[(i + 1)]]",
                           "x[max(any[i], 0)]",
                           "x[max(min((any[i] + 1000), 15), (i - 1))]",
                           "x[(i * 4611686018427387904)]",
                           "tir.if_then_else((i >= 1), x[i], x[(i - 1)])",
                           "tir.if_then_else(((i >= 1) || (j >= 1)), x[(i - 1)], 0f)",
                           "tir.if_then_else((x[i] > 0f), x[(i - 1)], 0f)",
                           "tir.if_then_else((i < 15), x[(i + 2)], 0f)",
                           "tir.if_then_else(((any[i] - 5) >= 0), x[min(any[i], 15)], 0f)"}) {
    EXPECT_ERROR(check(body), "stage y: reads ") << body;
  }
}

TEST(CheckAccesses, OwnOperators) {
  for (const char* text : {"matmul 30 40 50 +bias +relu",
                           "batch_matmul 2 30 40 50",
                           "coded_matmul 1 64 64 bits=4 block=32",
                           "conv2d 1 8 14 14 8 3 3 stride=2 padding=1 +bias",
                           "conv2d 1 8 14 14 8 3 3 padding=0,1,2,1 dilation=2 groups=2",
                           "conv3d 1 8 7 7 7 8 3 3 3 padding=1",
                           "conv2d_nchw 1 8 14 14 8 3 3 padding=1",
                           "conv2d_transpose 1 8 14 14 8 4 4 stride=2 padding=1",
                           "conv2d_transpose 1 8 15 14 8 3 3 stride=3 padding=1 groups=2",
                           "conv2d_transpose 1 8 14 14 8 4 4 stride=2 padding=1 phases=1",
                           "conv2d_transpose 1 8 64 40 8 16 7 stride=8,5 padding=4,2 phases=1",
                           "depthwise_conv2d 1 8 14 14 3 3 padding=1 multiplier=2",
                           "max_pool2d 1 8 14 14 3 3 stride=2 padding=1",
                           "avg_pool2d 1 8 14 14 3 3 stride=2 padding=1",
                           "softmax 10 100",
                           "layernorm 10 100",
                           "sum 10 100",
                           "add 3 4 5",
                           "gelu 3 4 5"}) {
    const Result<ComputeDag> dag = parse_operator(text);
    ASSERT_TRUE(dag.ok()) << text << ": " << dag.error().message();
    const Result<Unit> result = check_accesses(*dag);
    EXPECT_TRUE(result.ok()) << text << ": " << result.error().message();
  }
}

}  // namespace
}  // namespace pruner
