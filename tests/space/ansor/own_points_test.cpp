#include "space/ansor/own_points.h"

#include "golden.h"
#include "space/ansor/workloads.h"

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
  TRY_ASSIGN(const Candidate candidate, points.find(nest, kHardware));
  return print(own_space(nest), candidate);
}
Result<std::string> matmul_point(const Tiles& tiles) {
  return point(R"(["matmul_layer", 512, 512, 512])", matmul_steps(tiles));
}

TEST(OwnPoints, OfAProductHaveTheRecordsTilesAndUnrolling) {
  const Result<std::string> found = matmul_point({});
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_GOLDEN("space/ansor/matmul_point.txt", *found + "\n");
}

TEST(OwnPoints, HoldTheSameRegionsAsTheRecord) {
  const std::string key = R"(["matmul_layer", 512, 512, 512])";
  for (const Tiles& tiles : {Tiles{}, Tiles{.m = "[1, 8, 2, 2]", .n = "[2, 16, 1, 4]", .a = "2"}}) {
    const auto nest = replayed(key, matmul_steps(tiles));
    ASSERT_TRUE(nest.ok()) << nest.error().message();
    OwnPoints points;
    const Result<Candidate> found = points.find(*nest, kHardware);
    ASSERT_TRUE(found.ok()) << found.error().message();
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
  EXPECT_ERROR(matmul_point({.b = "3"}), "like a point, but fetched in runs that are no vectors");
  EXPECT_ERROR(matmul_point({.a = "16"}), "like a point, but fetched in runs that are no vectors");
  EXPECT_ERROR(matmul_point({.m = "[4, 64, 1, 1]", .n = "[4, 4, 1, 1]"}),
               "too many virtual threads");
  EXPECT_ERROR(matmul_point({.m = "[2, 4, 1, 1]"}), "fewer threads than a warp");
  EXPECT_ERROR(matmul_point({.m = "[1, 4, 32, 1]", .n = "[1, 8, 1, 64]"}),
               "the accumulators exceed the registers");
  EXPECT_ERROR(matmul_point({.n = "[2, 4, 1, 128]"}), "an inner tile 128: not among the choices");
  EXPECT_ERROR(matmul_point({.reduce_order = "10, 11, 3, 8, 12, 9, 4"}), "tiles in another order");
}

TEST(OwnPoints, AreNotLookedForOnACpu) {
  EXPECT_ERROR(point(R"(["matmul_layer", 8, 8, 8])", R"([["AN", 2, 0, 3]])"), "the loops of a CPU");
}

}  // namespace
}  // namespace pruner::ansor
