#include "ansor/nest.h"

#include "ansor/run_nest.h"
#include "ansor/workloads.h"
#include "golden.h"

namespace pruner::ansor {
namespace {

ComputeDag workload(const std::string& key) { return (*registered_workload(*parse_json(key)))[0]; }

std::vector<Step> steps(const std::string& text) {
  return *steps_from_json(*parse_json("[" + text + "]"));
}

// The last stage's values, in the order of its elements, as a nest without steps computes them.
std::vector<double> outputs(const ReplayNest& nest, const NestRun& run) {
  const int last = nest.structure->dag.size() - 1;
  const std::vector<int64_t> shape = nest.structure->dag[StageId{last}].shape();
  std::vector<double> values;
  std::vector<int64_t> index(shape.size(), 0);
  for (bool more = true; more;) {
    EXPECT_TRUE(run.written(last, index));
    values.push_back(run.at(last, index));
    more = false;
    for (size_t d = shape.size(); d-- > 0 && !more;) {
      more = ++index[d] < shape[d];
      if (!more) index[d] = 0;
    }
  }
  return values;
}

Result<ReplayNest> replayed(const std::string& key, const std::string& text) {
  Structures structures(workload(key));
  return replay(structures, steps(text));
}

void expect_same_values(const std::string& key, const std::string& text) {
  const auto plain = replayed(key, ""), nest = replayed(key, text);
  ASSERT_TRUE(plain.ok());
  ASSERT_TRUE(nest.ok()) << nest.error().message();
  EXPECT_EQ(outputs(*nest, NestRun(*nest)), outputs(*plain, NestRun(*plain))) << text;
}

constexpr const char* kMatmul = R"(["matmul_layer", 6, 9, 10])";
constexpr const char* kConv = R"(["conv2d_layer", 1, 3, 7, 7, 4, 3, 3, 2, 1])";

TEST(MakeNest, ComputesTheSameForEverySplitWithAndWithoutRest) {
  for (const char* lengths : {"[3]", "[4]", "[7]", "[20]", "[2, 2]", "[5, 3]"}) {
    for (const char* inner : {"1", "0"}) {
      const std::string split = std::string(", 0, ") + lengths + ", " + inner + "]";
      expect_same_values(kMatmul, R"(["SP", 2, 0)" + split);
      expect_same_values(kMatmul, R"(["SP", 2, 1)" + split);
      expect_same_values(kMatmul, R"(["SP", 2, 2)" + split);
    }
  }
}

TEST(MakeNest, ComputesTheSameForFusedAndSplitLoops) {
  expect_same_values(kMatmul,
                     R"(["FU", 2, [0, 1]], ["SP", 2, 0, 0, [7], 1], ["RE", 2, [2, 0, 1]])");
  expect_same_values(kConv, R"(["FU", 3, [0, 1, 2, 3]], ["AN", 3, 0, 3], ["FU", 3, [1, 2, 3]])");
  expect_same_values(kConv, R"(["CI", 1], ["FU", 3, [1, 2, 3]], ["SP", 3, 1, 0, [5, 2], 1])");
}

TEST(MakeNest, ComputesTheSameForCpuTiles) {
  expect_same_values(kMatmul,
                     R"(["CHW", 2, "local"], ["SP", 2, 0, 6, [1, 2, 1], 1], )"
                     R"(["SP", 2, 4, 10, [1, 1, 5], 1], ["SP", 2, 8, 9, [3], 1], )"
                     R"(["RE", 2, [0, 4, 1, 5, 8, 2, 6, 9, 3, 7]], ["FSP", 3, 0, 1, 2], )"
                     R"(["FSP", 3, 3, 2, 2], ["RE", 3, [0, 3, 1, 4, 2, 5]], ["CA", 2, 3, 3], )"
                     R"(["FU", 3, [0, 1]], ["AN", 3, 0, 3], ["AN", 2, 9, 2])");
  expect_same_values(kConv, R"(["CA", 1, 3, 1])");
  expect_same_values(kConv, R"(["SP", 3, 2, 4, [3], 1], ["CA", 1, 3, 2])");
}

std::string gpu_matmul(const std::string& m, const std::string& n, const std::string& k) {
  return R"(["CHW", 2, "local"], ["SP", 2, 0, 0, )" + m + R"(, 1], ["SP", 2, 5, 0, )" + n +
         R"(, 1], ["SP", 2, 10, 0, )" + k +
         R"(, 1], ["RE", 2, [0, 5, 1, 6, 2, 7, 10, 11, 3, 8, 12, 4, 9]], ["FSP", 3, 0, 1, 3], )"
         R"(["FSP", 3, 4, 2, 3], ["RE", 3, [0, 4, 1, 5, 2, 6, 3, 7]], ["CA", 2, 3, 5], )"
         R"(["CHR", 1, "shared", [2]], ["CA", 2, 3, 6], ["CHR", 0, "shared", [3]], )"
         R"(["CA", 1, 4, 6], ["FU", 5, [0, 1]], ["AN", 5, 0, 5], ["FU", 5, [1, 2]], )"
         R"(["AN", 5, 1, 4], ["FU", 5, [2, 3]], ["AN", 5, 2, 6], ["FU", 3, [0, 1]], )"
         R"(["SP", 3, 0, 0, [2], 1], ["AN", 3, 1, 2], ["FFSP", 3, 0, [2, 1], 1, 1], )"
         R"(["AN", 3, 1, 6], ["FU", 1, [0, 1]], ["SP", 1, 0, 0, [1], 1], ["AN", 1, 1, 2], )"
         R"(["FFSP", 1, 0, [2, 1], 1, 1], ["AN", 1, 1, 6], ["PR", 4, 0, "auto_unroll_max_step$64"])";
}

TEST(MakeNest, ComputesTheSameForGpuTiles) {
  expect_same_values(kMatmul, gpu_matmul("[1, 3, 1, 1]", "[5, 1, 1, 2]", "[3, 1]"));
  expect_same_values(kMatmul, gpu_matmul("[2, 1, 1, 3]", "[1, 2, 5, 1]", "[1, 3]"));
  expect_same_values(kMatmul, gpu_matmul("[1, 2, 1, 1]", "[1, 4, 1, 1]", "[2, 2]"));  // with rests
}

TEST(MakeNest, GivesScopesRegionsAndLoops) {
  const auto nest = replayed(kMatmul, gpu_matmul("[1, 3, 1, 1]", "[5, 1, 1, 2]", "[3, 1]"));
  ASSERT_TRUE(nest.ok());
  const ComputeDag& dag = nest->structure->dag;
  std::vector<std::string> names;
  for (const Stage& stage : dag.stages) names.push_back(stage.name);
  EXPECT_EQ(names, (std::vector<std::string>{"A", "A.shared", "B", "B.shared", "C.local", "C"}));
  EXPECT_EQ(nest->state.stages[1].scope, StorageScope::kShared);
  EXPECT_EQ(nest->regions[1].extents, (std::vector<int64_t>{3, 3}));   // 3 rows, 3 of k
  EXPECT_EQ(nest->regions[3].extents, (std::vector<int64_t>{3, 10}));  // all columns of a block
  EXPECT_EQ(nest->regions[4].extents, (std::vector<int64_t>{1, 2}));   // the region of one thread
  EXPECT_EQ(nest->loops[0].annotation, Annotation::kBlockX);
  EXPECT_EQ(nest->loops[0].extent, 2);
  EXPECT_EQ(nest->loops[1].annotation, Annotation::kVThread);
  EXPECT_EQ(nest->loops[1].extent, 5);
}

TEST(MakeNest, FactorsAReduction) {
  const char* kSum = R"(["reduction_layer", [4, 24], 1, false])";
  expect_same_values(kSum, R"(["SP", 1, 1, 24, [6], 1], ["RF", 1, 2, 1])");
  expect_same_values(kSum, R"(["SP", 1, 1, 24, [6], 1], ["RF", 1, 1, 0], ["CA", 1, 2, 0])");
  const auto nest = replayed(kSum, R"(["SP", 1, 1, 24, [6], 1], ["RF", 1, 2, 1])");
  ASSERT_TRUE(nest.ok());
  EXPECT_EQ(nest->structure->dag[StageId{1}].shape(), (std::vector<int64_t>{4, 6}));
  EXPECT_ERROR(replayed(kSum, R"(["SP", 1, 1, 24, [7], 1], ["RF", 1, 2, 1])"), "leaves a rest");
}

TEST(MakeNest, ReducesOverThreads) {
  const auto nest = replayed(R"(["reduction_layer", [4, 24], 1, false])",
                             R"(["SP", 1, 1, 24, [8], 1], ["AN", 1, 2, 6], ["AN", 1, 0, 5])");
  ASSERT_TRUE(nest.ok()) << nest.error().message();
  std::vector<StatementKind> kinds;
  for (const ReplayStatement& s : nest->statements) kinds.push_back(s.kind);
  EXPECT_EQ(kinds,
            (std::vector{StatementKind::kThreadInit,
                         StatementKind::kThreadUpdate,
                         StatementKind::kAllReduce,
                         StatementKind::kThreadStore}));
}

TEST(MakeNest, ReducesTheBodyItselfOverThreadsAlone) {
  const auto nest =
      replayed(R"(["reduction_layer", [4, 24], 1, false])", R"(["AN", 1, 1, 6], ["AN", 1, 0, 5])");
  ASSERT_TRUE(nest.ok()) << nest.error().message();
  ASSERT_EQ(nest->statements.size(), 2u);
  EXPECT_EQ(nest->statements[0].kind, StatementKind::kAllReduce);
  EXPECT_EQ(nest->statements[0].loads.size(), 1u);
  EXPECT_NE(
      print_program(*nest).find("tvm_thread_allreduce((uint32)1, data[blockIdx.x, threadIdx.x]"),
      std::string::npos)
      << print_program(*nest);
}

TEST(MakeNest, SaysWhyAPlaceIsImpossible) {
  EXPECT_ERROR(replayed(R"(["matmul_add", 4, 4, 4, "float32"])", R"(["CA", 2, 4, 0], ["CI", 4])"),
               "computed at an inlined stage");
  EXPECT_ERROR(replayed(kMatmul, R"(["CI", 2])"), "a reduction can't be inlined");
  EXPECT_ERROR(replayed(R"(["relu_layer", 8])", R"(["CI", 1])"), "it is reduced or an output");
}

}  // namespace
}  // namespace pruner::ansor
