#include "ansor/bounds.h"

#include "ansor/workloads.h"
#include "golden.h"

namespace pruner::ansor {
namespace {

// Regions of the stage `padded` of a convolution of stride 2 by the place where it is computed.
std::vector<int64_t> padded_region(const std::string& text) {
  const auto key = parse_json(R"(["conv2d_layer", 2, 3, 8, 8, 4, 3, 3, 2, 1])");
  Structures structures((*registered_workload(*key))[0]);
  const auto nest = replay(structures, *steps_from_json(*parse_json("[" + text + "]")));
  EXPECT_TRUE(nest.ok()) << nest.error().message();
  return nest.ok() ? nest->regions[1].extents : std::vector<int64_t>{};
}

TEST(InferBounds, CoversWhatTheLoopsInsideRead) {
  using Extents = std::vector<int64_t>;
  EXPECT_EQ(padded_region(""), (Extents{2, 3, 9, 9}));  // the tenth row is never read
  EXPECT_EQ(padded_region(R"(["CA", 1, 3, 0])"), (Extents{1, 3, 9, 9}));
  EXPECT_EQ(padded_region(R"(["CA", 1, 3, 2])"), (Extents{1, 3, 3, 9}));
  EXPECT_EQ(padded_region(R"(["CA", 1, 3, 3])"), (Extents{1, 3, 3, 3}));
  EXPECT_EQ(padded_region(R"(["CA", 1, 3, 4])"), (Extents{1, 1, 3, 3}));
  EXPECT_EQ(padded_region(R"(["CA", 1, 3, 6])"), (Extents{1, 1, 1, 1}));
}

TEST(InferBounds, CountsThreadsAsInsideOfASharedBuffer) {
  using Extents = std::vector<int64_t>;
  const std::string threads = R"(["CHR", 1, "shared", [3]], ["CI", 1], ["AN", 4, 0, 5], )"
                              R"(["AN", 4, 2, 6], ["CA", 2, 4, 3])";
  const auto key = parse_json(R"(["conv2d_layer", 2, 3, 8, 8, 4, 3, 3, 2, 1])");
  Structures structures((*registered_workload(*key))[0]);
  const auto nest = replay(structures, *steps_from_json(*parse_json("[" + threads + "]")));
  ASSERT_TRUE(nest.ok()) << nest.error().message();
  EXPECT_EQ(nest->regions[2].extents, (Extents{1, 3, 9, 3})) << "of all rows: threads walk them";
}

TEST(InferBounds, RefusesAPlaceThatIsNotAroundTheReader) {
  const auto key = parse_json(R"(["matmul_add", 4, 4, 4, "float32"])");
  Structures structures((*registered_workload(*key))[0]);
  const auto steps = steps_from_json(
      *parse_json(R"([["CHW", 4, "local"], ["CHW", 2, "local"], ["CA", 2, 6, 0]])"));
  EXPECT_ERROR(replay(structures, *steps), "which is not around its reader matmul");
}

}  // namespace
}  // namespace pruner::ansor
