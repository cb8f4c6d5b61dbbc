#include "ansor/own_points.h"

#include "ansor/cpu_steps.h"
#include "ansor/workloads.h"
#include "golden.h"

namespace pruner::ansor {
namespace {

const std::vector<int64_t> kHardware = {-1, 16, 64, 49152, 2147483647, 1024, 8, 32};

// A product as Ansor writes it for a GPU, with these lengths and widths of the fetches.
struct Tiles {
  std::string m = "[2, 128, 1, 1]", n = "[2, 4, 1, 1]", k = "[2, 4]", a = "1", b = "4",
              reduce_order = "10, 11, 3, 8, 12, 4, 9";
};
std::string matmul_steps(const Tiles& t) {
  return R"([["CHW", 2, "local"], ["SP", 2, 0, 512, )" + t.m + R"(, 1], ["SP", 2, 5, 512, )" + t.n +
         R"(, 1], ["SP", 2, 10, 512, )" + t.k + R"(, 1], ["RE", 2, [0, 5, 1, 6, 2, 7, )" +
         t.reduce_order +
         R"(]], ["FSP", 3, 0, 1, 3], ["FSP", 3, 4, 2, 3], ["RE", 3, [0, 4, 1, 5, 2, 6, 3, 7]], )"
         R"(["CA", 2, 3, 5], ["CHR", 1, "shared", [2]], ["CA", 2, 3, 6], )"
         R"(["CHR", 0, "shared", [3]], ["CA", 1, 4, 6], ["FU", 5, [0, 1]], ["AN", 5, 0, 5], )"
         R"(["FU", 5, [1, 2]], ["AN", 5, 1, 4], ["FU", 5, [2, 3]], ["AN", 5, 2, 6], )"
         R"(["FU", 3, [0, 1]], ["SP", 3, 0, 8, [)" +
         t.b + R"(], 1], ["AN", 3, 1, 2], ["FFSP", 3, 0, [2, 1], 1, 1], ["AN", 3, 1, 6], )" +
         R"(["FU", 1, [0, 1]], ["SP", 1, 0, 16, [)" + t.a +
         R"(], 1], ["AN", 1, 1, 2], ["FFSP", 1, 0, [2, 1], 1, 1], ["AN", 1, 1, 6], )"
         R"(["PR", 4, 0, "auto_unroll_max_step$512"]])";
}

Result<ReplayNest> replayed(const std::string& key, const std::string& steps) {
  Structures structures((*registered_workload(*parse_json(key)))[0]);
  TRY_ASSIGN(const std::vector<Step> list, steps_from_json(*parse_json(steps)));
  return replay(structures, list);
}

Space own_space(const ReplayNest& nest) {
  Target target;
  target.backend = Backend::kCuda;
  return make_space(make_task(nest.structure->task, target, ""));
}

// The point of a record, printed.
Result<std::string> point(const std::string& key, const std::string& steps) {
  TRY_ASSIGN(const ReplayNest nest, replayed(key, steps));
  OwnPoints points;
  TRY_ASSIGN(const NearestPoint found, points.find(nest, kHardware));
  if (!found.same()) return Error(found.other);
  return print(own_space(nest), found.candidate);
}
Result<std::string> matmul_point(const Tiles& tiles) {
  return point(R"(["matmul_layer", 512, 512, 512])", matmul_steps(tiles));
}

TEST(OwnPoints, OfAProductHaveTheRecordsTilesAndUnrolling) {
  const Result<std::string> found = matmul_point({});
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_GOLDEN("ansor/matmul_point.txt", *found + "\n");
}

TEST(OwnPoints, HoldTheSameRegionsAsTheRecord) {
  const std::string key = R"(["matmul_layer", 512, 512, 512])";
  for (const Tiles& tiles : {Tiles{}, Tiles{.m = "[1, 8, 2, 2]", .n = "[2, 16, 1, 4]", .a = "2"}}) {
    const auto nest = replayed(key, matmul_steps(tiles));
    ASSERT_TRUE(nest.ok()) << nest.error().message();
    OwnPoints points;
    const Result<NearestPoint> point = points.find(*nest, kHardware);
    ASSERT_TRUE(point.ok() && point->same());
    const Candidate* const found = &point->candidate;
    const Space space = own_space(*nest);
    int shared = 0;
    for (const NestStage& stage : make_loop_nest(space, *found).stages) {
      const std::string& name = space[found->sketch].dag[stage.stage].name;
      for (size_t s = 0; s < nest->regions.size(); ++s) {
        const bool same = nest->structure->dag.stages[s].name == name;
        if (!same || stage.scope != Scope::kShared) continue;
        EXPECT_EQ(stage.extents, nest->regions[s].extents) << name;
        ++shared;
      }
    }
    EXPECT_EQ(shared, 2);
  }
}

TEST(OwnPoints, SayWhatTheSpaceHasNot) {
  EXPECT_ERROR(matmul_point({.b = "3"}), "runs do not divide what is fetched of B.shared");
  EXPECT_ERROR(matmul_point({.m = "[4, 64, 1, 1]", .n = "[4, 4, 1, 1]"}),
               "too many virtual threads");
  EXPECT_ERROR(matmul_point({.m = "[2, 4, 1, 1]"}), "fewer threads than a warp");
  EXPECT_ERROR(matmul_point({.m = "[1, 4, 32, 1]", .n = "[1, 8, 1, 64]"}),
               "the accumulators exceed the registers");
  EXPECT_ERROR(matmul_point({.n = "[2, 4, 1, 128]"}),
               "inner of an axis 128: not among the choices");
  EXPECT_ERROR(matmul_point({.reduce_order = "10, 11, 3, 8, 12, 9, 4"}), "tiles in another order");
}

// A record that is no point becomes the nearest legal point, and `changed` names the differences.
TEST(OwnPoints, HaveALegalCandidateNearThem) {
  const auto nearest = [](const Tiles& tiles) {
    const auto nest = replayed(R"(["matmul_layer", 512, 512, 512])", matmul_steps(tiles));
    OwnPoints points;
    const Result<NearestPoint> found = points.find(*nest, kHardware);
    EXPECT_TRUE(found.ok());
    std::string why;
    EXPECT_TRUE(is_legal(own_space(*nest), found->candidate, &why)) << why;
    return std::pair(print(own_space(*nest), found->candidate), found->changed);
  };
  using Changed = std::set<std::string>;
  EXPECT_EQ(nearest({}).second, Changed{});
  const auto [narrow, width] = nearest({.b = "3"});
  EXPECT_EQ(width, Changed{"width of fetches"});
  EXPECT_TRUE(narrow.find("B.shared.vector=4") != std::string::npos) << narrow;
  const auto [wider, threads] = nearest({.m = "[2, 4, 1, 1]"});  // 16 threads
  EXPECT_TRUE(threads.contains("tiles")) << wider;
  const auto [ordered, loops] = nearest({.reduce_order = "10, 11, 3, 8, 12, 9, 4"});
  EXPECT_EQ(loops, Changed{"loops"});
  EXPECT_EQ(ordered, nearest({}).first);
}

// 2 threads, vectors of 32 bytes.
const std::vector<int64_t> kCpu = {2, 32, 64, 0, 0, 0, 0, 0};

Result<std::pair<std::string, NearestPoint>> cpu_point(const CpuTiles& tiles) {
  TRY_ASSIGN(const ReplayNest nest,
             replayed(R"(["matmul_layer", 64, 64, 64])", cpu_matmul_steps(tiles)));
  OwnPoints points;
  TRY_ASSIGN(const NearestPoint found, points.find(nest, kCpu));
  Target target;
  target.threads = 2;
  const Space space = make_space(make_task(nest.structure->task, target, ""));
  std::string why;
  EXPECT_TRUE(is_legal(space, found.candidate, &why)) << why;
  return std::pair(print(space, found.candidate), found);
}

TEST(OwnPoints, OfACpuHaveTheRecordsTilesLevelForLevel) {
  const auto found = cpu_point({});
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_EQ(found->second.other, "");
  EXPECT_EQ(found->first,
            "cache-tile: C.local.chunk=16 C.local.unroll=16 C.i.middle=2 C.i.inner=2 C.i.rows=4 "
            "C.j.middle=1 C.j.inner=2 C.j.vectors=2 C.parallel_order=0 C.order=0");
}

// A reduction that is done at once is our register tile.
TEST(OwnPoints, OfACpuAreOfTheStructureThatTheReductionHas) {
  const auto found = cpu_point({.k = {64}});
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_EQ(found->second.other, "");
  EXPECT_TRUE(found->first.starts_with("register-tile: ")) << found->first;
}

TEST(OwnPoints, OfACpuSayWhatTheyKeepAndWhatNot) {
  struct Case {
    CpuTiles tiles;
    const char* other;
    std::set<std::string> changed;
  };
  for (const Case& c :
       {Case{{.unroll = 512}, "unrolling 512: not among the choices", {"unrolling"}},
        Case{{.k = {4}}, "a chunk of 4: not among the choices", {"chunk"}},
        Case{{.n = {1, 2, 4}}, "a register tile of 0.5: not among the choices", {"tiles"}},
        Case{{.m = {1, 1, 16}, .n = {1, 1, 16}},
             "the register tile exceeds the registers",
             {"tiles"}}}) {
    const auto found = cpu_point(c.tiles);
    ASSERT_TRUE(found.ok()) << found.error().message();
    EXPECT_EQ(found->second.other, c.other);
    EXPECT_EQ(found->second.changed, c.changed) << found->first;
  }
}

TEST(OwnPoints, OfACpuThatRunsNothingInParallelAreTheNearest) {
  const auto nest = replayed(R"(["matmul_layer", 8, 8, 8])", R"([["AN", 2, 0, 3]])");
  ASSERT_TRUE(nest.ok());
  OwnPoints points;
  EXPECT_TRUE(points.find(*nest, kCpu).ok());
}

}  // namespace
}  // namespace pruner::ansor
