#include "space/metaschedule.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "space/gpu/gpu_task.h"
#include "space/operator_task.h"
#include "tensor/operator_dags.h"

namespace pruner {
namespace {

Target amx_target() {
  const Result<Target> target = parse_target("llvm -mcpu=sapphirerapids --threads=2", 0);
  EXPECT_TRUE(target.ok()) << target.error().message();
  return *target;
}

Task byte_product(int64_t terms) {
  DagBuilder b;
  const StageId data = b.placeholder("data", {64, terms}, DType::kUInt8);
  const StageId weight = b.placeholder("weight", {96, terms}, DType::kInt8, true);
  return make_task(
      b.finish({add_dense(b, data, weight, DType::kInt32)}), amx_target(), "byte product");
}

// Legal ones of it, drawn.
std::vector<Candidate> legal_draws(const Space& space, int draws = 500) {
  const MetaScheduleSpace own(space);
  Rng rng(3);
  std::vector<Candidate> legal;
  for (int i = 0; i < draws; ++i) {
    const Candidate candidate = own.draw(rng);
    if (own.contains(candidate) && is_legal(space, candidate)) legal.push_back(candidate);
  }
  return legal;
}

std::set<std::string> sketches_of(const Space& space) {
  std::set<std::string> names;
  for (const Candidate& candidate : legal_draws(space)) names.insert(space[candidate.sketch].name);
  return names;
}

using Names = std::set<std::string>;

TEST(MetaScheduleSpace, HasNoFormsNorInstructionsThatItsRulesLack) {
  const Task conv = operator_task("conv2d 1 64 56 56 64 3 3 padding=1 +bias +relu");
  EXPECT_EQ(sketches_of(make_space(conv)), (Names{"register-tile", "cache-tile"})) << "Winograd's";
  const Task bfloat16 =
      operator_task("conv2d 1 64 14 14 64 3 3 padding=1 bits=16 exponent=8", amx_target());
  ASSERT_GT(make_space(bfloat16).sketches.size(), 2u);
  EXPECT_EQ(sketches_of(make_space(bfloat16)), (Names{"register-tile", "cache-tile"})) << "AMX's";
  const Task f32 = operator_task("dense 64 256 256", amx_target());
  EXPECT_EQ(sketches_of(make_space(f32)), (Names{"register-tile", "cache-tile"})) << "parts of it";
  const Task very_long = operator_task("matmul 64 64 8192");
  EXPECT_EQ(sketches_of(make_space(very_long)), (Names{"register-tile", "cache-tile"}));
}

TEST(MetaScheduleSpace, TensorizesBytesByVnniAlone) {
  const Space space = make_space(byte_product(128));
  EXPECT_EQ(sketches_of(space), (Names{"quad-tile", "quad-cache-tile"}));
  EXPECT_EQ(sketches_of(make_space(byte_product(126))), (Names{"register-tile"}))
      << "4 terms do not divide 126, nor does a chunk";
}

Task a100_task(const std::string& op) {
  return operator_task(op, *parse_target("cuda --arch=sm_80", 0));
}

TEST(MetaScheduleSpace, TensorizesHalvesAndBytesByTensorCoresAlone) {
  const auto names = [](const char* op) { return sketches_of(make_space(a100_task(op))); };
  EXPECT_EQ(names("matmul 128 128 128 bits=16"), (Names{"m16n8k16-tile", "m16n8k8-tile"}));
  EXPECT_EQ(names("conv2d 1 64 14 14 64 3 3 padding=1 bits=16"),
            (Names{"implicit-gemm+m16n8k16-tile", "implicit-gemm+m16n8k8-tile"}));
  EXPECT_EQ(names("dense 128 128 128 bits=8"), (Names{"m16n8k32-tile"}));
  EXPECT_EQ(names("matmul 128 128 128 bits=16 exponent=8"), (Names{"block-tile"})) << "bfloat16";
}

// wmma's are 16 x 16; warps of m16n8k8 have multiples of 32 x 32, in a pipeline of three.
TEST(MetaScheduleSpace, WarpsHaveWholeTilesOfItsInstructions) {
  const Space space = make_space(a100_task("matmul 96 160 256 bits=16"));
  std::set<std::string> seen;
  for (const Candidate& candidate : legal_draws(space)) {
    const Sketch& sketch = space[candidate.sketch];
    const bool small = sketch.name == "m16n8k8-tile";
    seen.insert(sketch.name);
    for (size_t i = 0; i < sketch.decisions.size(); ++i) {
      const std::string& name = sketch.decisions[i].name;
      const int32_t value = candidate.decisions[i];
      const auto is = [&](const char* end) { return name.ends_with(end); };
      if (is(".i.fragments")) {
        EXPECT_EQ(value % (small ? 2 : 1), 0);
      }
      if (is(".j.fragments")) {
        EXPECT_EQ(value % (small ? 4 : 2), 0);
      }
      if (is(".buffers")) {
        EXPECT_EQ(value, small ? 3 : 2);
      }
      if (is(".epilogue")) {
        EXPECT_EQ(value, small ? 0 : 1);
      }
      if (is(".raster")) {
        EXPECT_EQ(value, 1);
      }
    }
  }
  EXPECT_EQ(seen.size(), 2u);
}

TEST(MetaScheduleSpace, MutatesTilesOfWarpsWithinItself) {
  const Space space = make_space(a100_task("matmul 128 256 512 bits=16"));
  const MetaScheduleSpace own(space);
  Rng rng(3);
  int changed = 0;
  for (const Candidate& candidate : legal_draws(space, 100)) {
    const std::optional<Candidate> child = own.mutate(candidate, rng);
    if (!child) continue;
    changed += child->decisions != candidate.decisions ? 1 : 0;
    for (size_t i = 0; i < child->decisions.size(); ++i)
      if (space[child->sketch].decisions[i].name.ends_with(".j.fragments")) {
        EXPECT_EQ(child->decisions[i] % 2, 0);
      }
  }
  EXPECT_GT(changed, 50);
}

// Fewer outputs than terms, and than 16 a core.
TEST(MetaScheduleSpace, AddsAnRfactorWhereOutputsAreFew) {
  const auto splits = [](const char* op) {
    const Names names = sketches_of(make_space(operator_task(op)));
    return names.contains("split-k+register-tile");
  };
  EXPECT_TRUE(splits("matmul 2 16 4096"));
  EXPECT_FALSE(splits("matmul 4 16 4096"));
}

// Extents of the loops over each axis of a stage, multiplied.
std::map<int, int64_t> covered(const NestStage& stage) {
  std::map<int, int64_t> covered;
  for (const NestLoop& loop : stage.loops)
    covered.try_emplace(loop.axis, 1).first->second *= loop.extent;
  return covered;
}

TEST(MetaScheduleSpace, TilesDivideTheirAxesAndAnnotationsAreItsOwn) {
  for (const char* op : {"matmul 96 128 512 +bias", "conv2d 1 64 56 56 64 3 3 padding=1 +relu"}) {
    const Task task = operator_task(op);
    const Space space = make_space(task);
    const std::vector<Candidate> draws = legal_draws(space);
    ASSERT_GT(draws.size(), 50u) << op;
    std::set<int32_t> unrolled;
    for (const Candidate& candidate : draws) {
      const LoopNest nest = make_loop_nest(space, candidate);
      for (const NestStage& stage : nest.stages) {
        for (const NestLoop& loop : stage.loops) {
          EXPECT_LT(loop.clamp, 0) << op;
          EXPECT_FALSE(loop.ragged) << op;
          // Unrolled loops are of the innermost S.
          const bool innermost = loop.kind == LoopKind::kUnroll;
          EXPECT_LE(innermost ? loop.extent * loop.step : 0, 64);
        }
        if (stage.at.valid()) continue;
        const std::vector<Iterator>& axes = nest.dag->stages[stage.stage.value].axes;
        for (const auto& [axis, extent] : covered(stage)) {
          if (axis < std::ssize(axes)) {
            EXPECT_EQ(extent, axes[axis].extent);
          }
        }
      }
      const Sketch& sketch = space[candidate.sketch];
      for (size_t i = 0; i < sketch.decisions.size(); ++i) {
        const DecisionKind kind = sketch.decisions[i].kind;
        const int32_t value = candidate.decisions[i];
        if (kind == DecisionKind::kUnroll) unrolled.insert(value);
        const bool lacked = kind == DecisionKind::kPrefetch || kind == DecisionKind::kStreaming ||
                            kind == DecisionKind::kOrder;
        EXPECT_EQ(lacked ? value : 0, 0) << sketch.decisions[i].name;
        EXPECT_LE(kind == DecisionKind::kChunk ? value : 0, 64);
      }
    }
    EXPECT_EQ(unrolled, (std::set<int32_t>{16, 64})) << "what {0, 16, 64, 512} and ours share";
  }
}

// A candidate of it with another value of a decision whose name ends so.
bool contains_with(const std::string& end, int32_t value) {
  const Task task = operator_task("dense 96 128 512 +bias");
  const Space space = make_space(task);
  const MetaScheduleSpace own(space);
  for (Candidate candidate : legal_draws(space)) {
    const Sketch& sketch = space[candidate.sketch];
    for (size_t i = 0; i < sketch.decisions.size(); ++i) {
      if (!sketch.decisions[i].name.ends_with(end)) continue;
      EXPECT_TRUE(own.contains(candidate));
      candidate.decisions[i] = value;
      return own.contains(candidate);
    }
  }
  ADD_FAILURE() << "no decision " << end;
  return true;
}

TEST(MetaScheduleSpace, IsLeftByAnyOtherValue) {
  EXPECT_FALSE(contains_with(".prefetch", 1024));
  EXPECT_FALSE(contains_with(".order", 1));
  EXPECT_FALSE(contains_with(".parallel_order", 1));
  EXPECT_FALSE(contains_with(".unroll", 32));
  EXPECT_FALSE(contains_with(".middle", 5));
  EXPECT_FALSE(contains_with(".vectors", 8)) << "128 elements are more than 64";
}

// An operator that is not tiled has one vector of up to 64 elements and plain loops around it.
TEST(MetaScheduleSpace, DoesNotTileAPooling) {
  const Task task = operator_task("max_pool2d 1 64 28 28 3 3 stride=2 padding=1");
  const Space space = make_space(task);
  for (const Candidate& candidate : legal_draws(space, 50)) {
    const Sketch& sketch = space[candidate.sketch];
    for (size_t i = 0; i < sketch.decisions.size(); ++i) {
      const Decision& decision = sketch.decisions[i];
      if (decision.kind != DecisionKind::kTile) continue;
      EXPECT_EQ(candidate.decisions[i], decision.name.ends_with("vectors") ? 4 : 1)
          << decision.name;
    }
  }
}

TEST(MetaScheduleSpace, HasSomethingLegalOfEveryOperator) {
  const Target arm = *parse_target("llvm -mcpu=neoverse-v1 --threads=2", 0);
  for (const Target& target : {test_target(), test_target(32), amx_target(), arm}) {
    for (const char* op : kSmallOperators) {
      const Task task = operator_task(op, target);
      EXPECT_FALSE(legal_draws(make_space(task), 200).empty()) << op << " on " << target.mcpu;
    }
  }
  for (const char* op : {"matmul 128 128 128 +bias",
                         "conv2d 1 64 28 28 128 3 3 padding=1",
                         "softmax 64 1000",
                         "add 513 528"}) {
    const Task task = gpu_task(op);
    EXPECT_FALSE(legal_draws(make_space(task), 4000).empty()) << op;
  }
}

TEST(MetaScheduleSpace, MutatesTilesNineTimesInTen) {
  const Task task = operator_task("conv2d 1 64 56 56 64 3 3 padding=1 +bias +relu");
  const Space space = make_space(task);
  const MetaScheduleSpace own(space);
  const std::vector<Candidate> parents = legal_draws(space);
  Rng rng(0);
  std::map<DecisionKind, int> changed;
  int without_place = 0, inside = 0;
  constexpr int kMutations = 4000;
  for (int i = 0; i < kMutations; ++i) {
    const Candidate& parent = parents[rng.below(std::ssize(parents))];
    const std::optional<Candidate> child = own.mutate(parent, rng);
    if (!child) {
      ++without_place;
      continue;
    }
    inside += own.contains(*child);
    const Sketch& sketch = space[parent.sketch];
    std::set<int> groups;
    std::optional<DecisionKind> kind;
    for (size_t d = 0; d < sketch.decisions.size(); ++d) {
      if (child->decisions[d] == parent.decisions[d]) continue;
      kind = sketch.decisions[d].kind == DecisionKind::kChunk ? DecisionKind::kTile
                                                              : sketch.decisions[d].kind;
      groups.insert(sketch.decisions[d].group);
    }
    ASSERT_TRUE(kind) << "a mutation that changes nothing";
    EXPECT_EQ(groups.size(), 1u) << "two axes at once";
    ++changed[*kind];
  }
  EXPECT_NEAR(changed[DecisionKind::kTile], 0.9 * kMutations, 0.03 * kMutations);
  EXPECT_NEAR(changed[DecisionKind::kUnroll], 0.03 * kMutations, 0.01 * kMutations);
  EXPECT_GT(changed[DecisionKind::kLocation], 0);
  EXPECT_GT(without_place, 0) << "of its parallel loop";
  EXPECT_GT(inside, kMutations / 3);
}

}  // namespace
}  // namespace pruner
