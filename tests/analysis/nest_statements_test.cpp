#include <cmath>
#include <functional>
#include <set>

#include "analysis/features.h"
#include "analysis/gpu_limits.h"
#include "analysis/symbols.h"
#include "ansor/own_points.h"
#include "golden_programs.h"
#include "space/gpu/warp_space.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

const std::vector<int64_t> kHardware = {-1, 16, 64, 49152, 2147483647, 1024, 8, 32};

// The candidate that computes as a record does has the record's symbols; its features differ in
// how many loops a copy runs over and in integer operations, which are those of other code.
TEST(NestStatements, OfACandidateAreThoseOfTheSameRecord) {
  int rows_seen = 0;
  double difference = 0, numbers = 0;
  ansor::OwnPoints points;
  for_golden_programs([&](const GoldenProgram& golden) {
    const auto point = points.find(golden.nest, kHardware);
    if (!point.ok() || !point->same()) return;
    Target target;
    target.backend = Backend::kCuda;
    const Space space = make_space(make_task(golden.nest.structure->task, target, ""));
    const LoopNest nest = make_loop_nest(space, point->candidate);
    const Statements own = make_statements(nest), replayed = make_statements(golden.nest);
    const std::vector<Symbols> rows = symbols(own), expected = symbols(replayed);
    const ProgramFeatures f = features(own, {}), g = features(replayed, {});
    for (size_t r = 0; r < rows.size(); ++r) {
      const std::string name = (*nest.dag)[rows[r].buffer].name;
      const auto same = std::ranges::find_if(expected, [&](const Symbols& other) {
        return golden.nest.structure->dag[other.buffer].name == name;
      });
      ASSERT_NE(same, expected.end()) << golden.name << ": " << name;
      EXPECT_EQ(rows[r].values(), same->values()) << golden.name << ": " << name;
      const auto at = static_cast<size_t>(same - expected.begin());
      for (size_t i = 0; i < kStatementFeatures; ++i) {
        if (i >= 7 && i < 14) continue;  // integer operations
        difference += std::abs(f.rows[r * kRowFeatures + i] - g.rows[at * kRowFeatures + i]);
        ++numbers;
      }
      ++rows_seen;
    }
    for (size_t i = 0; i < f.dataflow.size(); ++i) {
      difference += std::abs(f.dataflow[i] - g.dataflow[i]);
      ++numbers;
    }
  });
  EXPECT_GE(rows_seen, 20);
  EXPECT_LT(difference / numbers, 0.05);  // the numbers are log2
}

Space space_of(const std::string& op, const Target& target) {
  return make_space(make_task(*parse_operator(op), target, op));
}

Target unit_target() {
  Target target = *parse_target("llvm -mcpu=sapphirerapids --threads=2", 0);
  target.features.clear();
  target.dots = {2, 4, 16, 32};
  return target;
}

// The loops of a unit's instruction count as any others: rows, lanes, steps and terms.
TEST(NestStatements, CountTheProductsOfUnits) {
  std::set<int> units;
  for (const auto& [op, products, bits] :
       {std::tuple("dense 33 100 64 bits=16 exponent=8 +bias", 33.0 * 100 * 64, 16),
        {"dense 48 64 128 bits=8", 48.0 * 64 * 128, 8},
        {"conv2d 1 16 7 7 32 3 3 padding=1 bits=8 +relu", 49.0 * 32 * 9 * 16, 8}}) {
    const Space space = space_of(op, unit_target());
    Rng rng(5);
    for (int n = 0; n < 40; ++n) {
      const Candidate candidate = sample(space, rng);
      const LoopNest nest = make_loop_nest(space, candidate);
      const Statements program = make_statements(nest);
      const ProgramFeatures f = features(program, {}), compat = features(program, {}, true);
      const std::vector<Symbols> rows = symbols(program);
      for (const Statement& s : program.statements) {
        if (s.unit.unit < 0) continue;
        units.insert(s.unit.unit);
        double iterations = 1, parallel = 1;
        for (const StatementLoop& loop : program.loops_of(s)) {
          iterations *= static_cast<double>(loop.extent);
          if (loop.role == LoopRole::kParallel) parallel *= static_cast<double>(loop.extent);
        }
        EXPECT_EQ(s.iterations, static_cast<float>(iterations));
        EXPECT_GE(iterations, products) << op;
        EXPECT_NEAR(s.unit.useful, products / iterations, 1e-5) << op;
        EXPECT_GT(s.unit.useful, 0.1) << op;
        EXPECT_EQ(s.counts.float_operations() > 0, bits == 16) << op << ": of bytes they are whole";
        EXPECT_EQ(s.unit.factor_bits, bits);
        EXPECT_EQ(s.unit.sum_bits, 32);
        // One instruction makes two products of a lane to 4 of each of 16 x 16 sums from 16 steps.
        const double of_one = iterations / parallel / s.unit.instructions;
        EXPECT_GE(of_one, 2) << op;
        EXPECT_LE(of_one, 16 * 16 * 16 * 4) << op;
        const auto at =
            static_cast<size_t>(std::ranges::find(rows, s.buffer, &Symbols::buffer) - rows.begin());
        const float* unit = f.rows.data() + at * kRowFeatures + kPublishedRowFeatures;
        EXPECT_EQ(unit[s.unit.unit], 1) << op;
        EXPECT_EQ(std::count(unit, unit + kUnits, 0.0f), kUnits - 1);
        EXPECT_EQ(unit[kUnits + 2], s.unit.useful);
        EXPECT_GT(unit[kUnits + 4], 0);
        EXPECT_LE(unit[kUnits + 4], 2);
        const float* none = compat.rows.data() + at * kRowFeatures + kPublishedRowFeatures;
        EXPECT_EQ(std::count(none, none + kUnitFeatures, 0.0f), kUnitFeatures);
      }
    }
  }
  EXPECT_EQ(units.size(), 4u) << "of bfloat16 and int8, vectors and tiles";
}

// So do those of a warp's, of whose tile the row has what its pipeline keeps.
TEST(NestStatements, CountTheProductsOfWarps) {
  std::set<int> shapes;
  for (const WarpOperator& op : kWarpOperators) {
    SCOPED_TRACE(std::string(op.arch) + " " + op.op);
    const Task task = warp_task(op);
    const Space space = warp_space(task, op.structure);
    Rng rng(5);
    for (int n = 0; n < 10; ++n) {
      const Candidate candidate = sample(space, rng);
      const LoopNest nest = make_loop_nest(space, candidate);
      const Statements program = make_statements(nest);
      const ProgramFeatures f = features(program, {}), compat = features(program, {}, true);
      EXPECT_TRUE(std::ranges::any_of(f.dataflow, [](float v) { return v != 0; }));
      const std::vector<Symbols> rows = symbols(program);
      int of_warps = 0;
      for (const Statement& s : program.statements) {
        if (s.unit.mma == nullptr) continue;
        ++of_warps;
        const MmaInstruction& mma = *s.unit.mma;
        shapes.insert(shape_number(mma));
        EXPECT_LE(s.unit.useful, 1);
        EXPECT_GT(s.unit.useful, 0.1);
        EXPECT_EQ(s.unit.factor_bits, 8 * dtype_bytes(mma.a));
        EXPECT_EQ(s.unit.sum_bits, 8 * dtype_bytes(mma.sum));
        const Bindings bound = bindings_of(program.loops_of(s));
        EXPECT_EQ(s.unit.warps * 32, bound.threads());
        EXPECT_FLOAT_EQ(s.unit.instructions * s.unit.warps / static_cast<float>(mma.warps) *
                            bound.blocks() * static_cast<float>(mma.m * mma.n * mma.k),
                        s.iterations);
        // The bytes that a block's warps read of a chunk are those that a stage holds. Attention's
        // queries are no part of a chunk.
        const auto& attention = space[candidate.sketch].tables->attention;
        double tile = 0, shared = 0;
        for (const StatementAccess& a : program.accesses_of(s)) {
          if (a.kind != AccessKind::kRead || (attention && a.buffer == attention->query)) continue;
          const NestStage& stage = nest.of(a.buffer);
          if (stage.scope != Scope::kShared) continue;
          shared += program.buffer(a.buffer).allocated * program.buffer(a.buffer).element_bytes;
          double elements = 1;
          for (const int64_t extent : stage.extents) elements *= static_cast<double>(extent);
          tile += elements * static_cast<double>(dtype_bytes(mma.a));
        }
        EXPECT_EQ(s.unit.stage_bytes, tile);
        EXPECT_EQ(shared, tile * static_cast<double>(s.unit.stages));
        const auto at =
            static_cast<size_t>(std::ranges::find(rows, s.buffer, &Symbols::buffer) - rows.begin());
        const float* unit = f.rows.data() + at * kRowFeatures + kPublishedRowFeatures;
        EXPECT_EQ(std::count(unit, unit + kUnits, 0.0f), kUnits);
        EXPECT_EQ(unit[kUnits + 2], s.unit.useful);
        const float* warp = unit + kUnitFeatures;
        const float* group = warp + kWarpFeatures;
        EXPECT_EQ(std::count(warp, warp + kWarpShapes, 0.0f) +
                      std::count(group, group + kGroupFeatures, 0.0f),
                  kMmaShapes - 1);
        const int shape = shape_number(mma);
        EXPECT_EQ(shape < kWarpShapes ? warp[shape] : group[shape - kWarpShapes], 1);
        EXPECT_FLOAT_EQ(warp[kWarpShapes], std::log2(static_cast<float>(s.unit.stages) + 1));
        EXPECT_FLOAT_EQ(warp[kWarpShapes + 3], std::log2(s.unit.stage_bytes + 1));
        const float* none = compat.rows.data() + at * kRowFeatures + kPublishedRowFeatures;
        constexpr int kOfUnits = kUnitFeatures + kWarpFeatures + kGroupFeatures;
        EXPECT_EQ(std::count(none, none + kOfUnits, 0.0f), kOfUnits);
      }
      EXPECT_EQ(of_warps, space[candidate.sketch].tables->attention ? 2 : 1);
    }
  }
  EXPECT_EQ(shapes.size(), size_t{kMmaShapes});
}

// The boxes of a contraction's accesses, by running its loops.
TEST(NestStatements, RegionsAreWhatTheLoopsTouch) {
  int compared = 0;
  for (const char* op : {"matmul 12 20 9", "conv2d 1 8 6 6 16 3 3 padding=1"}) {
    const Space space = space_of(op, host_target(2));
    Rng rng(3);
    for (int n = 0; n < 60; ++n) {
      const Candidate candidate = sample(space, rng);
      const LoopNest nest = make_loop_nest(space, candidate);
      const Statements program = make_statements(nest);
      for (const Statement& s : program.statements) {
        const NestStage& stage = nest.of(s.buffer);
        const Stage& body = (*nest.dag)[s.buffer];
        const bool anchor = body.is_reduction() && stage.at.valid() && s.accesses > 1 &&
                            nest.of(stage.at).parallel_loops <= stage.depth;
        if (!anchor || body.shape() != (*nest.dag)[stage.at].shape()) continue;
        const NestStage& root = nest.of(stage.at);
        std::vector<NestLoop> loops(root.loops.begin(), root.loops.begin() + stage.depth);
        loops.insert(loops.end(), stage.loops.begin(), stage.loops.end());
        const size_t iterators = body.axes.size() + body.reduce_axes.size();
        for (int g = 0; g < s.loops; ++g) {
          // The parallel loops are one group.
          const size_t fused = static_cast<size_t>(std::max(1, root.parallel_loops));
          const size_t first = g == 0 ? 0 : fused + static_cast<size_t>(g) - 1;
          for (const StatementAccess& a : program.accesses_of(s)) {
            if (a.kind != AccessKind::kRead) continue;
            const Stage& tensor = (*nest.dag)[a.buffer];
            const auto region = program.region(a, g);
            if (region.size() != tensor.axes.size()) continue;  // packed
            const auto& accesses = nest.tables->accesses[s.buffer];
            const auto access = std::ranges::find(accesses, a.buffer, &Access::producer);
            for (size_t d = 0; d < region.size(); ++d) {
              int64_t low = 1 << 20, high = -1;
              std::vector<int64_t> values(iterators, 0);
              const std::function<void(size_t)> run = [&](size_t i) {
                if (i < loops.size()) {
                  const NestLoop& loop = loops[i];
                  const auto axis = static_cast<size_t>(loop.axis);
                  const int64_t before = values[axis];
                  for (int64_t k = 0; k < loop.extent; ++k) {
                    const int64_t start = k * loop.step;
                    values[axis] = before + (loop.clamp < 0 ? start : std::min(start, loop.clamp));
                    run(i + 1);
                  }
                  values[axis] = before;
                  return;
                }
                int64_t index = access->indices[d]->constant;
                for (const auto& [var, c] : access->indices[d]->terms)
                  index += c * values[static_cast<size_t>(var.value)];
                if (index < 0 || index >= tensor.axes[d].extent) return;
                low = std::min(low, index);
                high = std::max(high, index);
              };
              run(first);
              EXPECT_EQ(region[d], high - low + 1)
                  << op << ": " << tensor.name << " dimension " << d << " in loop " << g << " of "
                  << print(space, candidate);
              ++compared;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 1000);
}

// All points are computed, some twice where tiles overlap or reach over the end.
TEST(NestStatements, OperationsAreAtLeastTheTasks) {
  for (const Target& target : {host_target(2), *parse_target("cuda --arch=sm_80", 0)}) {
    const Space space = space_of("matmul 64 96 80", target);
    Rng rng(1);
    float least = INFINITY;
    for (int n = 0; n < 200; ++n) {
      const LoopNest nest = make_loop_nest(space, sample(space, rng));
      float operations = 0;
      for (const Symbols& row : symbols(make_statements(nest))) operations += row.f_total;
      EXPECT_GE(operations, 2.0f * 64 * 96 * 80);
      least = std::min(least, operations);
    }
    EXPECT_EQ(least, 2.0f * 64 * 96 * 80);
  }
}

// A packed operand's innermost loop reads neighbours, whatever the operand's own order.
TEST(NestStatements, SeesThePackedOrder) {
  Target target = host_target(2);
  target.dots = {};  // whose terms would come last
  const Space space = space_of("dense 64 96 80", target);
  Rng rng(1);
  int packed = 0;
  for (int n = 0; n < 50; ++n) {
    const LoopNest nest = make_loop_nest(space, sample(space, rng));
    const Statements program = make_statements(nest);
    for (const PackedOperand& operand : nest.packed) {
      for (const Statement& s : program.statements) {
        for (const StatementAccess& a : program.accesses_of(s)) {
          if (a.buffer != operand.operand || a.kind != AccessKind::kRead) continue;
          EXPECT_EQ(program.loops_of(s).back().role, LoopRole::kVectorize);
          EXPECT_EQ(program.uses_of(s, a).back().stride, 1);
          EXPECT_EQ(program.shape_of(a.buffer).size(),
                    (*nest.dag)[a.buffer].axes.size() + operand.spec.blocks.size());
          ++packed;
        }
      }
    }
  }
  EXPECT_GT(packed, 20);
}

}  // namespace
}  // namespace pruner
